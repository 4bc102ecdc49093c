/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Gives wrong arguments to the entry points of the emulator: each must return an error,
 * and correct uses after it must still work. Started on an emulated host by
 * test_emu_args.cc, with the name of a group of checks. Prints errors, with exit status
 * 1.
 */

#include "verbs_args.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

int failures = 0;

namespace {

void check_device()
{
    device d;
    ibv_port_attr port;
    ibv_gid_entry entry;
    ibv_gid gid;
    __be16 pkey;

    CHECK((ibv_open_device(NULL) == NULL) && (errno == EINVAL));
    CHECK(ibv_close_device(NULL) == EINVAL);
    CHECK(!strcmp(ibv_get_device_name(d.ctx->device), "mlx5_0"));
    CHECK(ibv_get_device_index(d.ctx->device) == -1);
    CHECK(ibv_query_port(d.ctx, 0, &port) == EINVAL);
    CHECK(ibv_query_port(d.ctx, 2, &port) == EINVAL);
    CHECK(ibv_query_port(d.ctx, 1, &port) == 0);
    CHECK(ibv_query_gid(d.ctx, 1, port.gid_tbl_len, &gid) == -1);
    CHECK(ibv_query_gid(d.ctx, 1, -1, &gid) == -1);
    CHECK(ibv_query_gid(d.ctx, 1, 0, &gid) == 0);
    CHECK(ibv_query_gid_ex(d.ctx, 1, 0, &entry, 0) == 0);
    CHECK(!memcmp(&entry.gid, &gid, sizeof(gid)));
    CHECK(ibv_query_gid_ex(d.ctx, 1, 99, &entry, 0) == EINVAL);
    CHECK(ibv_query_pkey(d.ctx, 1, 0, &pkey) == 0);
    CHECK(ibv_query_pkey(d.ctx, 1, port.pkey_tbl_len, &pkey) == -1);
}

void check_memory()
{
    device d;

    CHECK((ibv_alloc_pd(NULL) == NULL) && (errno == EINVAL));
    CHECK(ibv_dealloc_pd(NULL) == EINVAL);
    CHECK(ibv_dealloc_pd(d.pd) == EBUSY);
    CHECK((ibv_reg_mr(d.pd, d.buffer, 8, IBV_ACCESS_REMOTE_WRITE) == NULL) &&
          (errno == EINVAL));
    CHECK((ibv_reg_mr(d.pd, d.buffer, 8, IBV_ACCESS_ON_DEMAND) == NULL) &&
          (errno == EOPNOTSUPP));
    CHECK((ibv_reg_mr(d.pd, (void*)-4096, 8192, 0) == NULL) &&
          (errno == EINVAL));
    CHECK(ibv_dereg_mr(NULL) == EINVAL);
}

void check_cq()
{
    device d;
    ibv_wc wc;

    CHECK((ibv_create_cq(NULL, 1, NULL, NULL, 0) == NULL) && (errno == EINVAL));
    CHECK((ibv_create_cq(d.ctx, 0, NULL, NULL, 0) == NULL) &&
          (errno == EINVAL));
    CHECK(ibv_create_cq(d.ctx, -1, NULL, NULL, 0) == NULL);
    CHECK(ibv_create_cq(d.ctx, 1 << 30, NULL, NULL, 0) == NULL);
    CHECK(ibv_create_cq(d.ctx, 1, NULL, NULL, 1000) == NULL);
    CHECK(ibv_destroy_cq(NULL) == EINVAL);
    CHECK(ibv_destroy_cq(d.cq) == EBUSY);
    CHECK(ibv_destroy_comp_channel(d.channel) == EBUSY);
    CHECK(ibv_poll_cq(d.cq, 1, &wc) == 0);
    CHECK(ibv_poll_cq(d.cq, 1, NULL) == -1);
}

void check_qp()
{
    device d;
    ibv_qp_init_attr attr;
    ibv_qp_attr modify;

    attr         = d.qp_attr();
    attr.qp_type = IBV_QPT_UC;
    CHECK((ibv_create_qp(d.pd, &attr) == NULL) && (errno == EOPNOTSUPP));
    attr.qp_type = static_cast<ibv_qp_type>(77);
    CHECK((ibv_create_qp(d.pd, &attr) == NULL) && (errno == EOPNOTSUPP));
    attr.qp_type = IBV_QPT_DRIVER;
    CHECK((ibv_create_qp(d.pd, &attr) == NULL) && (errno == EINVAL));

    attr                     = d.qp_attr();
    attr.cap.max_inline_data = 100000;
    CHECK((ibv_create_qp(d.pd, &attr) == NULL) && (errno == EINVAL));
    attr                 = d.qp_attr();
    attr.cap.max_send_wr = 1u << 31;
    CHECK(ibv_create_qp(d.pd, &attr) == NULL);
    attr                  = d.qp_attr();
    attr.cap.max_recv_sge = 1000;
    CHECK(ibv_create_qp(d.pd, &attr) == NULL);
    attr         = d.qp_attr();
    attr.recv_cq = NULL;
    CHECK((ibv_create_qp(d.pd, &attr) == NULL) && (errno == EINVAL));
    attr         = d.qp_attr();
    attr.send_cq = NULL;
    CHECK((ibv_create_qp(d.pd, &attr) == NULL) && (errno == EINVAL));
    CHECK((ibv_create_qp(NULL, &attr) == NULL) && (errno == EINVAL));

    device other(1);
    attr         = d.qp_attr();
    attr.send_cq = other.cq;
    CHECK((ibv_create_qp(d.pd, &attr) == NULL) && (errno == EINVAL));

    memset(&modify, 0, sizeof(modify));
    modify.qp_state = IBV_QPS_RTS;
    CHECK(ibv_modify_qp(d.qp, &modify, IBV_QP_STATE) == EINVAL);
    modify.qp_state = static_cast<ibv_qp_state>(99);
    CHECK(ibv_modify_qp(d.qp, &modify, IBV_QP_STATE) == EINVAL);
    CHECK(ibv_modify_qp(d.qp, NULL, IBV_QP_STATE) == EINVAL);
    CHECK(ibv_query_qp(d.qp, NULL, 0, NULL) == EINVAL);
    CHECK(ibv_destroy_qp(NULL) == EINVAL);
}

void check_srq()
{
    device d;
    ibv_srq_init_attr attr = {};
    ibv_srq_attr modify    = {};
    ibv_recv_wr wr         = {};
    ibv_recv_wr *bad       = NULL;
    unsigned i;

    attr.attr.max_wr  = 1u << 30;
    attr.attr.max_sge = 1;
    CHECK((ibv_create_srq(d.pd, &attr) == NULL) && (errno == EINVAL));
    attr.attr.max_wr  = 1;
    attr.attr.max_sge = 1000;
    CHECK((ibv_create_srq(d.pd, &attr) == NULL) && (errno == EINVAL));

    wr.num_sge = 100;
    CHECK((ibv_post_srq_recv(d.srq, &wr, &bad) == EINVAL) && (bad == &wr));
    wr.num_sge = 0;
    for (i = 0; i < d.srq_size; ++i) {
        CHECK(ibv_post_srq_recv(d.srq, &wr, &bad) == 0);
    }
    CHECK((ibv_post_srq_recv(d.srq, &wr, &bad) == ENOMEM) && (bad == &wr));

    modify.srq_limit = 1u << 20;
    CHECK(ibv_modify_srq(d.srq, &modify, IBV_SRQ_LIMIT) == EINVAL);
    CHECK(ibv_destroy_srq(NULL) == EINVAL);
}

void check_post()
{
    device d;
    ibv_send_wr send      = {};
    ibv_recv_wr recv      = {};
    ibv_send_wr *bad_send = NULL;
    ibv_recv_wr *bad_recv = NULL;
    ibv_ah_attr ah        = {};

    send.opcode = IBV_WR_SEND;
    CHECK((ibv_post_send(d.qp, &send, &bad_send) == EINVAL) &&
          (bad_send == &send));
    CHECK((ibv_post_recv(d.qp, &recv, &bad_recv) == EINVAL) &&
          (bad_recv == &recv));

    ah.port_num = 2;
    CHECK((ibv_create_ah(d.pd, &ah) == NULL) && (errno == EINVAL));
    ah.port_num       = 1;
    ah.is_global      = 1;
    ah.grh.sgid_index = 9;
    CHECK((ibv_create_ah(d.pd, &ah) == NULL) && (errno == EINVAL));
    CHECK(ibv_destroy_ah(NULL) == EINVAL);
}

void check_direct()
{
    device d;
    mlx5dv_obj obj              = {};
    mlx5dv_qp qp                = {};
    mlx5dv_srq srq              = {};
    mlx5dv_context_attr attr    = {};
    ibv_cq_init_attr_ex cq      = {};
    mlx5dv_cq_init_attr dv_cq   = {};
    ibv_qp_init_attr_ex dct     = {};
    mlx5dv_qp_init_attr dv_dct  = {};

    CHECK(mlx5dv_is_supported(d.ctx->device));
    CHECK((mlx5dv_open_device(NULL, &attr) == NULL) && (errno == EINVAL));
    CHECK((mlx5dv_open_device(d.ctx->device, NULL) == NULL) &&
          (errno == EINVAL));
    obj.qp.in  = d.qp;
    obj.qp.out = &qp;
    CHECK(mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP) == 0);
    CHECK((qp.bf.size == 0) && (qp.sq.stride == 64));
    CHECK(mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ) == EINVAL);
    CHECK(mlx5dv_init_obj(&obj, MLX5DV_OBJ_DM) == EOPNOTSUPP);
    CHECK(mlx5dv_init_obj(NULL, MLX5DV_OBJ_QP) == EINVAL);

    obj.srq.in    = d.srq;
    obj.srq.out   = &srq;
    srq.comp_mask = MLX5DV_SRQ_MASK_SRQN;
    CHECK(mlx5dv_init_obj(&obj, MLX5DV_OBJ_SRQ) == 0);
    CHECK((srq.stride == 32) && (srq.head == 0) && (srq.srqn != 0));

    cq.cqe          = 10;
    dv_cq.comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE;
    dv_cq.cqe_size  = 100;
    CHECK((mlx5dv_create_cq(d.ctx, &cq, &dv_cq) == NULL) && (errno == EINVAL));
    dv_cq.comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_COMPRESSED_CQE;
    CHECK((mlx5dv_create_cq(d.ctx, &cq, &dv_cq) == NULL) &&
          (errno == EOPNOTSUPP));

    /* A DC target without a shared receive queue */
    dct.qp_type                 = IBV_QPT_DRIVER;
    dct.comp_mask               = IBV_QP_INIT_ATTR_PD;
    dct.pd                      = d.pd;
    dct.send_cq                 = d.cq;
    dct.recv_cq                 = d.cq;
    dv_dct.comp_mask            = MLX5DV_QP_INIT_ATTR_MASK_DC;
    dv_dct.dc_init_attr.dc_type = MLX5DV_DCTYPE_DCT;
    CHECK((mlx5dv_create_qp(d.ctx, &dct, &dv_dct) == NULL) &&
          (errno == EINVAL));
    dv_dct.dc_init_attr.dc_type = static_cast<mlx5dv_dc_type>(9);
    CHECK((mlx5dv_create_qp(d.ctx, &dct, &dv_dct) == NULL) &&
          (errno == EINVAL));
}

/* Stores that no driver makes: of unknown numbers, of other sizes, to other places of
 * the page */
void check_doorbell()
{
    device d;
    mlx5dv_obj obj = {};
    mlx5dv_qp qp   = {};
    volatile uint64_t *page;
    unsigned i;

    obj.qp.in  = d.qp;
    obj.qp.out = &qp;
    CHECK(mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP) == 0);

    page = reinterpret_cast<uint64_t*>(reinterpret_cast<uintptr_t>(qp.bf.reg) &
                                       ~4095ul);
    for (i = 0; i < 4096 / sizeof(*page); ++i) {
        page[i] = 0;
        page[i] = ~0ul;
        *reinterpret_cast<volatile uint32_t*>(&page[i]) = i;
        *reinterpret_cast<volatile uint8_t*>(&page[i])  = i;
    }

    /* Of a queue pair that isn't connected, with nonsense as its index */
    *qp.dbrec = ~0u;
    page[0x800 / sizeof(*page)] = htobe64(0x0800ul << 32 |
                                          (uint64_t)d.qp->qp_num << 8 | 1);
}

void check_unsupported()
{
    device d;
    ibv_xrcd_init_attr xrcd = {};
    ibv_alloc_dm_attr dm    = {};
    ibv_wq_init_attr wq     = {};
    ibv_flow_attr flow      = {};
    ibv_values_ex values    = {};
    ibv_gid gid             = {};
    void *(*create_channel)();

    dm.length = 64;
    CHECK((ibv_open_xrcd(d.ctx, &xrcd) == NULL) && (errno == EOPNOTSUPP));
    CHECK((ibv_alloc_dm(d.ctx, &dm) == NULL) && (errno == EOPNOTSUPP));
    CHECK((ibv_alloc_mw(d.pd, IBV_MW_TYPE_1) == NULL) && (errno == EOPNOTSUPP));
    CHECK((ibv_alloc_null_mr(d.pd) == NULL) && (errno == EOPNOTSUPP));
    CHECK((ibv_create_wq(d.ctx, &wq) == NULL) && (errno == EOPNOTSUPP));
    CHECK((ibv_create_flow(d.qp, &flow) == NULL) && (errno == EOPNOTSUPP));
    CHECK(ibv_query_rt_values_ex(d.ctx, &values) == EOPNOTSUPP);
    CHECK(ibv_advise_mr(d.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, NULL, 0) ==
          EOPNOTSUPP);
    CHECK(ibv_attach_mcast(d.qp, &gid, 1) == EOPNOTSUPP);

    /* Of librdmacm, which may be missing */
    create_channel = reinterpret_cast<void *(*)()>(
            dlsym(RTLD_DEFAULT, "rdma_create_event_channel"));
    CHECK(create_channel != NULL);
    CHECK((create_channel() == NULL) && (errno == ENODEV));
}

/* A child has no resources of its parent, may clean up, and may open its own */
void check_fork()
{
    device *parent = new device();
    ibv_wc wc;
    int status;
    pid_t pid;

    pid = fork();
    if (pid == 0) {
        CHECK(ibv_poll_cq(parent->cq, 1, &wc) == -1);
        CHECK((ibv_alloc_pd(parent->ctx) == NULL) && (errno == EINVAL));
        delete parent;
        check_qp();
        fflush(stdout);
        _exit(failures ? 1 : 0);
    }

    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && (WEXITSTATUS(status) == 0));
    CHECK(ibv_poll_cq(parent->cq, 1, &wc) == 0);
    delete parent;
}

/* Memory that a device shares, opened for DEVX */
struct umem_page {
    umem_page()
    {
        int num                 = 0;
        ibv_device **list       = ibv_get_device_list(&num);
        mlx5dv_context_attr attr = {};

        attr.flags = MLX5DV_CONTEXT_FLAGS_DEVX;
        ctx        = mlx5dv_open_device(list[0], &attr);
        ibv_free_device_list(list);
        CHECK(ctx != NULL);
        words = reinterpret_cast<volatile uint64_t*>(
                mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    }

    ~umem_page()
    {
        munmap((void*)words, SIZE);
        CHECK(ibv_close_device(ctx) == 0);
    }

    mlx5dv_devx_umem *reg()
    {
        return mlx5dv_devx_umem_reg(ctx, (void*)words, SIZE,
                                    IBV_ACCESS_LOCAL_WRITE);
    }

    static const size_t SIZE = 65536;
    ibv_context         *ctx;
    volatile uint64_t   *words;
};

volatile bool is_counting;

void *count_up(void *arg)
{
    volatile uint64_t *words = reinterpret_cast<volatile uint64_t*>(arg);
    uint64_t count           = 0;

    while (is_counting || (count == 0)) {
        words[8000] = ++count;
        if (words[8000] != count) {
            return NULL; /* A store that was lost */
        }
    }

    return (void*)count;
}

/* A thread that writes to pages while their owner changes loses nothing */
void check_umem()
{
    umem_page page;
    mlx5dv_devx_umem *umem;
    pthread_t thread;
    void *count;

    is_counting = true;
    CHECK(pthread_create(&thread, NULL, count_up, (void*)page.words) == 0);
    for (int i = 0; i < 300; ++i) {
        umem = page.reg();
        CHECK(umem != NULL);
        CHECK(mlx5dv_devx_umem_dereg(umem) == 0);
    }

    is_counting = false;
    CHECK(pthread_join(thread, &count) == 0);
    CHECK((uint64_t)count > 0);
    CHECK(page.words[8000] == (uint64_t)count);
}

/* A child's writes there are its own */
void check_umem_fork()
{
    umem_page page;
    mlx5dv_devx_umem *umem = page.reg();
    int status;
    pid_t pid;

    CHECK(umem != NULL);
    page.words[0] = 1;
    pid           = fork();
    if (pid == 0) {
        CHECK(page.words[0] == 1);
        page.words[0] = 2;
        CHECK(mlx5dv_devx_umem_dereg(umem) == 0);
        CHECK(page.words[0] == 2);
        fflush(stdout);
        _exit(failures ? 1 : 0);
    }

    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && (WEXITSTATUS(status) == 0));
    CHECK(page.words[0] == 1);
    CHECK(mlx5dv_devx_umem_dereg(umem) == 0);
    CHECK(page.words[0] == 1);
}

volatile int num_faults = 0;

void on_fault(int)
{
    ++num_faults;
    signal(SIGSEGV, SIG_DFL);
}

/* The program's own handler gets its own faults, and only those */
void check_signal()
{
    struct sigaction act = {}, current = {};

    act.sa_handler = on_fault;
    CHECK(sigaction(SIGSEGV, &act, NULL) == 0);
    check_doorbell();
    CHECK(num_faults == 0);
    CHECK(sigaction(SIGSEGV, NULL, &current) == 0);
    CHECK(current.sa_handler == on_fault);

    raise(SIGSEGV);
    CHECK(num_faults == 1);
    check_doorbell();
    CHECK(num_faults == 1);

    sigset_t all;
    sigfillset(&all);
    CHECK(sigprocmask(SIG_BLOCK, &all, NULL) == 0);
    check_doorbell();
}

const struct {
    const char *name;
    void       (*func)();
} groups[] = {
    {"device",      check_device},
    {"device_list", check_device_list},
    {"memory",      check_memory},
    {"cq",          check_cq},
    {"dv_cq",       check_dv_cq},
    {"caps",        check_caps},
    {"resize_cq",   check_resize_cq},
    {"no_resize",   check_resize_refused},
    {"rereg_mr",    check_rereg_mr},
    {"no_rereg",    check_rereg_refused},
    {"pin",         check_pin},
    {"pin_umem",    check_pin_umem},
    {"dmabuf",      check_dmabuf},
    {"srq_default", check_srq_default},
    {"qp",          check_qp},
    {"srq",         check_srq},
    {"post",        check_post},
    {"direct",      check_direct},
    {"doorbell",    check_doorbell},
    {"unsupported", check_unsupported},
    {"fork",        check_fork},
    {"umem",        check_umem},
    {"umem_fork",   check_umem_fork},
    {"signal",      check_signal}
};

} /* namespace */

int main(int argc, char **argv)
{
    for (const auto &group : groups) {
        if ((argc == 2) && !strcmp(argv[1], group.name)) {
            group.func();
            return failures ? 1 : 0;
        }
    }

    fprintf(stderr, "usage: verbs_args GROUP\n");
    return 2;
}
