/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Memory that a kernel could not pin is not registered: see Linux, ib_umem_get(). The same of
 * dmabufs: see ib_umem_dmabuf_get().
 */

#include "verbs_args.h"

#include <initializer_list>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

namespace {

const size_t PAGE   = 4096;
const size_t SIZE   = 1 << 20;
const int    WRITE  = IBV_ACCESS_LOCAL_WRITE;
const int    READ   = IBV_ACCESS_REMOTE_READ;

alignas(4096) const char constant[SIZE] = {1};

char *map(int prot, int flags, int fd = -1, size_t size = SIZE)
{
    void *p = mmap(NULL, size, prot, flags, fd, 0);

    CHECK(p != MAP_FAILED);
    return (char*)p;
}

char *map_memory(int prot)
{
    return map(prot, MAP_PRIVATE | MAP_ANONYMOUS);
}

/* A file of SIZE bytes, which are 5 */
int open_file()
{
    char name[] = "/tmp/verbs_pin.XXXXXX";
    int fd      = mkstemp(name);
    char *text  = (char*)malloc(SIZE);

    CHECK((fd >= 0) && (unlink(name) == 0));
    memset(text, 5, SIZE);
    CHECK(write(fd, text, SIZE) == (ssize_t)SIZE);
    free(text);
    return fd;
}

char *make_hole()
{
    char *p = map_memory(PROT_READ | PROT_WRITE);

    CHECK(munmap(p + SIZE / 2, PAGE) == 0);
    return p;
}

/* Memory that is registered with the rights to write, and without */
struct memory {
    char   *addr;
    size_t length;
    bool   is_writable;
    bool   is_readable;
    char   value;        /* of all of it, if it is readable; -1: any */
};

void expect_mr(ibv_pd *pd, const memory &m, int access, bool is_good)
{
    ibv_mr *mr;

    errno = 0;
    mr    = ibv_reg_mr(pd, m.addr, m.length, access);
    if ((mr != NULL) != is_good) {
        printf("access %d of %p: %s\n", access, m.addr, strerror(errno));
        ++failures;
    }
    if (mr == NULL) {
        CHECK((errno = 0, ibv_reg_mr(pd, m.addr, m.length, access) == NULL) &&
              (errno == EFAULT));
    } else {
        CHECK(ibv_dereg_mr(mr) == 0);
    }
}

/* It is what it was */
void expect_value(const memory &m)
{
    for (size_t i = 0; m.is_readable && (m.value != -1) && (i < m.length); ++i) {
        if (m.addr[i] != m.value) {
            printf("byte %zu is %d, not %d\n", i, m.addr[i], m.value);
            ++failures;
            return;
        }
    }
}

void expect_rereg(ibv_pd *pd)
{
    char *p = map_memory(PROT_READ | PROT_WRITE);
    ibv_mr *mr;
    uint32_t key;

    /* New rights need pages that can be written */
    mr = ibv_reg_mr(pd, (void*)constant, SIZE, READ);
    CHECK(mr != NULL);
    CHECK((ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, WRITE) ==
           IBV_REREG_MR_ERR_CMD) && (errno == EFAULT));
    CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0) == 0);

    /* ... and so does other memory; a failure leaves the region as it was */
    key = mr->rkey;
    CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, p, SIZE, 0) == 0);
    CHECK(mr->rkey != key);
    key = mr->rkey;
    CHECK((ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION |
                        IBV_REREG_MR_CHANGE_ACCESS, NULL, (void*)constant, SIZE,
                        WRITE) == IBV_REREG_MR_ERR_CMD) && (errno == EFAULT));
    CHECK((mr->rkey == key) && (mr->addr == p));

    /* What is pinned stays so, whatever the program may do with it */
    CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, WRITE) == 0);
    CHECK(mprotect(p, SIZE, PROT_NONE) == 0);
    CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, WRITE | READ) ==
          0);
    CHECK(ibv_dereg_mr(mr) == 0);
}

} /* namespace */

void check_pin()
{
    device d;
    int fd             = open_file();
    const memory all[] = {
        {map_memory(PROT_READ | PROT_WRITE), SIZE, true, true, 0},
        {map_memory(PROT_READ), SIZE, false, true, 0},
        {map(PROT_READ | PROT_WRITE, MAP_SHARED, fd), SIZE, true, true, 5},
        {map(PROT_READ, MAP_SHARED, fd), SIZE, false, true, 5},
        {map(PROT_READ, MAP_PRIVATE, fd), SIZE, false, true, 5},
        {map(PROT_READ | PROT_WRITE, MAP_PRIVATE, fd) + 3, SIZE - 5, true, true, 5},
        {(char*)constant, SIZE, false, true, -1},
        {map_memory(PROT_NONE), SIZE, false, false, -1},
        {make_hole(), SIZE, false, false, -1},
        {make_hole(), SIZE / 2, true, true, 0},
        {map(PROT_READ | PROT_WRITE, MAP_SHARED, fd, 2 * SIZE), 2 * SIZE, false, false,
         -1},
        {(char*)0x10000, 8, false, false, -1}};

    for (const auto &m : all) {
        for (int access : {WRITE, WRITE | IBV_ACCESS_REMOTE_WRITE | READ,
                           WRITE | IBV_ACCESS_REMOTE_ATOMIC}) {
            expect_mr(d.pd, m, access, m.is_writable);
        }
        for (int access : {0, READ}) {
            expect_mr(d.pd, m, access, m.is_readable);
        }
        expect_value(m);
    }

    /* Wrong arguments come first, and nothing is pinned for on-demand paging */
    CHECK((ibv_reg_mr(d.pd, (void*)0x10000, 8, IBV_ACCESS_REMOTE_WRITE) == NULL) &&
          (errno == EINVAL));
    CHECK((ibv_reg_mr(d.pd, (void*)0x10000, 8, IBV_ACCESS_ON_DEMAND) == NULL) &&
          (errno == EOPNOTSUPP));

    expect_rereg(d.pd);
    close(fd);
}

void check_pin_umem()
{
    mlx5dv_context_attr attr = {};
    ibv_device **list        = ibv_get_device_list(NULL);
    ibv_context *ctx;

    attr.flags = MLX5DV_CONTEXT_FLAGS_DEVX;
    ctx        = mlx5dv_open_device(list[0], &attr);
    CHECK(ctx != NULL);

    char *none = map_memory(PROT_NONE);
    for (char *p : {(char*)constant, none, make_hole(), (char*)0x10000}) {
        CHECK((mlx5dv_devx_umem_reg(ctx, p, SIZE, WRITE) == NULL) && (errno == EFAULT));
    }

    /* They are as they were */
    expect_mr(ibv_alloc_pd(ctx), {(char*)constant, SIZE, false, true, -1}, WRITE, false);
    expect_mr(ibv_alloc_pd(ctx), {none, SIZE, false, false, -1}, 0, false);

    char *p                = map_memory(PROT_READ | PROT_WRITE);
    mlx5dv_devx_umem *umem = mlx5dv_devx_umem_reg(ctx, p, SIZE, WRITE);
    CHECK((umem != NULL) && (mlx5dv_devx_umem_dereg(umem) == 0));
    ibv_free_device_list(list);
}

void check_dmabuf()
{
    const int access = WRITE | READ | IBV_ACCESS_REMOTE_WRITE;
    device d;
    int file         = open_file();
    int fd           = memfd_create("dmabuf", MFD_CLOEXEC);
    ibv_mr *mr;

    CHECK((fd >= 0) && (ftruncate(fd, SIZE) == 0));
    CHECK((ibv_reg_dmabuf_mr(d.pd, 0, PAGE, 0, -1, access) == NULL) && (errno == EBADF));
    const struct {
        uint64_t offset;
        size_t   length;
        uint64_t iova;
        int      fd;
        int      access;
    } wrong[] = {
        {0, PAGE, 0, file, access},
        {0, SIZE + 1, 0, fd, access},
        {SIZE, 1, 0, fd, access},
        {UINT64_MAX - PAGE + 1, SIZE, 0, fd, access},
        {0, 0, 0, fd, access},
        {0, PAGE, 8, fd, access},
        {8, PAGE, 0, fd, access},
        {0, PAGE, 0, fd, IBV_ACCESS_REMOTE_WRITE},
        {0, PAGE, 0, fd, access | IBV_ACCESS_ON_DEMAND}};
    for (const auto &w : wrong) {
        CHECK((ibv_reg_dmabuf_mr(d.pd, w.offset, w.length, w.iova, w.fd, w.access) == NULL) &&
              (errno == EINVAL));
    }

    /* Any part of it, at any address */
    mr = ibv_reg_dmabuf_mr(d.pd, PAGE + 8, SIZE - PAGE - 8, 1ul << 40 | 8, fd, access);
    CHECK((mr != NULL) && (mr->length == SIZE - PAGE - 8) && (mr->lkey == mr->rkey));

    /* Rights change in place, and other memory is another region */
    CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, READ) == 0);
    CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, map_memory(PROT_READ), SIZE,
                       0) == 0);
    CHECK(ibv_dereg_mr(mr) == 0);
    close(file);
    close(fd);
}
