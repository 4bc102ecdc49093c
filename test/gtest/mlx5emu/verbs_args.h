/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What the groups of checks of verbs_args share: how a check fails, and a device
 * with one of each object. verbs_args.cc has the groups about wrong arguments, and
 * main(); verbs_objects.cc those about what objects do, verbs_change.cc those about
 * objects that change, verbs_pin.cc those about memory that cannot be registered, and dmabufs.
 */

#ifndef VERBS_ARGS_H_
#define VERBS_ARGS_H_

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include <errno.h>
#include <stdio.h>

extern int failures;

/* errno is compared too, where a function fails by returning NULL or -1 */
#define CHECK(_expr) \
    do { \
        errno = 0; \
        if (!(_expr)) { \
            int saved_errno = errno; \
            printf("line %d: %s (errno is %d)\n", __LINE__, #_expr, \
                   saved_errno); \
            ++failures; \
        } \
    } while (0)


/* A device with one of each object */
struct device {
    device(int index = 0)
    {
        int num           = 0;
        ibv_device **list = ibv_get_device_list(&num);

        CHECK((list != NULL) && (num == 2) && (list[2] == NULL));
        ctx = ibv_open_device(list[index]);
        ibv_free_device_list(list);
        CHECK(ctx != NULL);

        channel = ibv_create_comp_channel(ctx);
        pd      = ibv_alloc_pd(ctx);
        mr      = ibv_reg_mr(pd, buffer, sizeof(buffer),
                             IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
        cq      = ibv_create_cq(ctx, 100, this, channel, 0);
        CHECK((channel != NULL) && (pd != NULL) && (mr != NULL) &&
              (cq != NULL));

        ibv_srq_init_attr srq_attr = {};
        srq_attr.attr.max_wr       = 10;
        srq_attr.attr.max_sge      = 1;
        srq                        = ibv_create_srq(pd, &srq_attr);
        srq_size                   = srq_attr.attr.max_wr;
        CHECK((srq != NULL) && (srq_size >= 10));

        ibv_qp_init_attr attr = qp_attr();
        qp                    = ibv_create_qp(pd, &attr);
        CHECK((qp != NULL) && (attr.cap.max_send_wr >= 10) &&
              (attr.cap.max_inline_data >= 64));
    }

    ~device()
    {
        CHECK(ibv_destroy_qp(qp) == 0);
        CHECK(ibv_destroy_srq(srq) == 0);
        CHECK(ibv_destroy_cq(cq) == 0);
        CHECK(ibv_dereg_mr(mr) == 0);
        CHECK(ibv_dealloc_pd(pd) == 0);
        CHECK(ibv_destroy_comp_channel(channel) == 0);
        CHECK(ibv_close_device(ctx) == 0);
    }

    ibv_qp_init_attr qp_attr() const
    {
        ibv_qp_init_attr attr    = {};
        attr.send_cq             = cq;
        attr.recv_cq             = cq;
        attr.qp_type             = IBV_QPT_RC;
        attr.cap.max_send_wr     = 10;
        attr.cap.max_recv_wr     = 10;
        attr.cap.max_send_sge    = 2;
        attr.cap.max_recv_sge    = 2;
        attr.cap.max_inline_data = 64;
        return attr;
    }

    char             buffer[4096];
    ibv_context      *ctx;
    ibv_comp_channel *channel;
    ibv_pd           *pd;
    ibv_mr           *mr;
    ibv_cq           *cq;
    ibv_srq          *srq;
    ibv_qp           *qp;
    unsigned         srq_size;
};

/* verbs_objects.cc */
void check_device_list();
void check_dv_cq();
void check_caps();
void check_srq_default();

/* verbs_change.cc */
void check_resize_cq();
void check_resize_refused();
void check_rereg_mr();
void check_rereg_refused();

/* verbs_pin.cc */
void check_pin();
void check_pin_umem();
void check_dmabuf();

#endif
