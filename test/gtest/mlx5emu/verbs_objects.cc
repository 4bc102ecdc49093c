/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Groups of checks of verbs_args about the behavior of objects in correct uses, and
 * their errors in others.
 */

#include "verbs_args.h"


#include <stdlib.h>
#include <string.h>

/* A device is the same in all lists, and stays when they are freed: libibverbs keeps
 * it as long as the kernel has it */
void check_device_list()
{
    ibv_device **list   = ibv_get_device_list(NULL);
    ibv_device **again  = ibv_get_device_list(NULL);
    ibv_device *devices[] = {list[0], list[1]};
    ibv_context *ctx;

    CHECK((again[0] == list[0]) && (again[1] == list[1]));
    CHECK(list[0] != list[1]);
    ibv_free_device_list(list);
    ibv_free_device_list(again);

    for (int i = 0; i < 2; ++i) {
        CHECK(ibv_get_device_name(devices[i])[5] == '0' + i);
        ctx = ibv_open_device(devices[i]);
        CHECK((ctx != NULL) && (ctx->device == devices[i]));
        list = ibv_get_device_list(NULL);
        CHECK(list[i] == devices[i]);
        ibv_free_device_list(list);
        CHECK(ibv_close_device(ctx) == 0);
    }

    ctx = ibv_open_device(devices[1]);
    CHECK(ctx != NULL);
    CHECK(!strcmp(ctx->device->name, "mlx5_1"));
    CHECK(ibv_close_device(ctx) == 0);
}

/* Of that size and with those flags; 0: not said. The size that it has, or -errno. */
static int dv_cq(device &d, unsigned cqe_size, unsigned flags)
{
    ibv_cq_init_attr_ex attr    = {};
    mlx5dv_cq_init_attr dv_attr = {};
    mlx5dv_cq dv                = {};
    mlx5dv_obj obj              = {};
    ibv_cq_ex *cq;

    attr.cqe          = 10;
    dv_attr.cqe_size  = cqe_size;
    dv_attr.flags     = flags;
    dv_attr.comp_mask = (cqe_size ? MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE : 0) |
                        (flags ? MLX5DV_CQ_INIT_ATTR_MASK_FLAGS : 0);
    cq                = mlx5dv_create_cq(d.ctx, &attr, &dv_attr);
    if (cq == NULL) {
        return -errno;
    }

    obj.cq.in  = ibv_cq_ex_to_cq(cq);
    obj.cq.out = &dv;
    CHECK(mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ) == 0);
    CHECK(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)) == 0);
    return dv.cqe_size;
}

/* Entries are of 64 or 128 bytes, as the attributes say or libmlx5's environment; only
 * those of 128 are padded */
void check_dv_cq()
{
    device d;

    CHECK(dv_cq(d, 0, 0) == 64);
    CHECK(dv_cq(d, 128, 0) == 128);
    CHECK(dv_cq(d, 100, 0) == -EINVAL);
    CHECK(dv_cq(d, 256, 0) == -EINVAL);
    CHECK(dv_cq(d, 128, MLX5DV_CQ_INIT_ATTR_FLAGS_CQE_PAD) == 128);
    CHECK(dv_cq(d, 64, MLX5DV_CQ_INIT_ATTR_FLAGS_CQE_PAD) == -EINVAL);
    CHECK(dv_cq(d, 0, MLX5DV_CQ_INIT_ATTR_FLAGS_CQE_PAD) == -EINVAL);

    setenv("MLX5_CQE_SIZE", "128", 1);
    CHECK(dv_cq(d, 0, 0) == 128);
    CHECK(dv_cq(d, 64, 0) == 64);
    CHECK(dv_cq(d, 0, MLX5DV_CQ_INIT_ATTR_FLAGS_CQE_PAD) == 128);
    setenv("MLX5_CQE_SIZE", "100", 1);
    CHECK(dv_cq(d, 0, 0) == -EINVAL);
    CHECK(dv_cq(d, 64, 0) == 64);
    CHECK((ibv_create_cq(d.ctx, 10, NULL, NULL, 0) == NULL) && (errno == EINVAL));
    unsetenv("MLX5_CQE_SIZE");
}

/* QUERY_HCA_CAP, which mlx5's kernel driver lets all contexts ask; queries of ports, and
 * doorbell registers. What makes objects needs DEVX. */
void check_caps()
{
    device d;
    uint8_t in[16] = {0x01, 0x00};
    uint8_t out[16 + 4096];
    mlx5dv_devx_uar *uar;
    uint32_t eqn;

    in[7] = 1; /* Present ones, general */
    CHECK(mlx5dv_devx_general_cmd(d.ctx, in, sizeof(in), out, sizeof(out)) == 0);
    CHECK((out[0] == 0) && (out[16 + 0x1b8 / 8] == 1)); /* num_ports */
    CHECK(out[16 + 0x220 / 8] & 0x40);                  /* cq_resize */
    in[7] = 2 * 0x7f + 1;
    CHECK(mlx5dv_devx_general_cmd(d.ctx, in, sizeof(in), out, sizeof(out)) ==
          EREMOTEIO);

    in[0] = 0x08; /* QUERY_LAG */
    in[1] = 0x42;
    CHECK(mlx5dv_devx_general_cmd(d.ctx, in, sizeof(in), out, sizeof(out)) == EINVAL);
    in[0] = 0x04; /* CREATE_CQ */
    in[1] = 0x00;
    CHECK((mlx5dv_devx_obj_create(d.ctx, in, sizeof(in), out, sizeof(out)) == NULL) &&
          (errno == EINVAL));
    CHECK((mlx5dv_devx_umem_reg(d.ctx, d.buffer, 64, IBV_ACCESS_LOCAL_WRITE) == NULL) &&
          (errno == EINVAL));

    uar = mlx5dv_devx_alloc_uar(d.ctx, MLX5_IB_UAPI_UAR_ALLOC_TYPE_NC);
    CHECK((uar != NULL) && (uar->reg_addr != NULL));
    mlx5dv_devx_free_uar(uar);
    CHECK((mlx5dv_devx_alloc_uar(d.ctx, MLX5_IB_UAPI_UAR_ALLOC_TYPE_BF) == NULL) &&
          (errno == EOPNOTSUPP));
    CHECK((mlx5dv_devx_alloc_uar(d.ctx, 0x40) == NULL) && (errno == EOPNOTSUPP));
    CHECK(mlx5dv_devx_query_eqn(d.ctx, 0, &eqn) == 0);
}

/* A shared receive queue for nothing has room for something, and takes it */
void check_srq_default()
{
    device d;
    ibv_srq_init_attr attr = {};
    ibv_recv_wr wr         = {};
    ibv_recv_wr *bad       = NULL;
    ibv_sge sge            = {};
    ibv_srq *srq           = ibv_create_srq(d.pd, &attr);

    CHECK(srq != NULL);
    CHECK((attr.attr.max_wr >= 1) && (attr.attr.max_sge >= 1));
    wr.sg_list = &sge;
    wr.num_sge = 1;
    for (unsigned i = 0; i < attr.attr.max_wr; ++i) {
        CHECK(ibv_post_srq_recv(srq, &wr, &bad) == 0);
    }
    CHECK((ibv_post_srq_recv(srq, &wr, &bad) == ENOMEM) && (bad == &wr));
    CHECK(ibv_destroy_srq(srq) == 0);
}
