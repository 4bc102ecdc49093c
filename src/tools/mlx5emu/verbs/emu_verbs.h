/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED. See LICENSE for terms (BSD-3-Clause). */

/*
 * Objects behind the pointers that programs get from ibv_* and mlx5dv_*
 * functions. Private to verbs/ and mlx5dv/: each starts with, or contains, the
 * public structure, and refers to the engine's object.
 *
 *   program --> ibv_qp  (emu_vqp_t)  --> emu_qp_t   in shared memory
 *               ibv_cq  (emu_vcq_t)  --> emu_cq_t
 *               ibv_srq (emu_vsrq_t) --> emu_srq_t
 *               ibv_context (emu_vctx_t) --> emu_ctx_t, UAR page
 *
 * The verbs-level data path (post, poll) reads and writes the same mlx5 queues
 * which a program using direct verbs handles itself.
 */

#ifndef EMU_VERBS_H_
#define EMU_VERBS_H_

#include "emu_refuse.h"
#include "emu_vlife.h"
#include "../base/emu_def.h"
#include "../core/emu_chan.h"
#include "../core/emu_cq.h"
#include "../core/emu_ctx.h"
#include "../core/emu_dmabuf.h"
#include "../core/emu_fabric.h"
#include "../core/emu_mr.h"
#include "../core/emu_nic.h"
#include "../core/emu_port.h"
#include "../core/emu_proc.h"
#include "../core/emu_qp.h"
#include "../core/emu_route.h"
#include "../core/emu_srq.h"
#include "../proto/emu_engine.h"

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#define EMU_VERBS_PORT_NUM    1     /* Each device has one port */
#define EMU_VERBS_COMP_VECTORS 4
#define EMU_VERBS_MAX_INLINE  512
#define EMU_VERBS_MAX_SEND_SGE 30
#define EMU_VERBS_MAX_RECV_SGE 16

/* The visible part of a public function when its header makes it a macro */
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define emu_container_of(_ptr, _type, _member) \
    ((_type*)((char*)(_ptr) - offsetof(_type, _member)))


typedef struct emu_vdevice {
    struct ibv_device ibv;
    unsigned          link;
    int               is_ready;
} emu_vdevice_t;


typedef struct emu_vctx {
    emu_vdevice_t        *dev;
    emu_ctx_t            *ctx;
    emu_port_t           *port;
    void                 *uar;
    unsigned             fork_gen;
    int                  devx;      /* Opened for DEVX */
    struct verbs_context verbs;
} emu_vctx_t;


typedef struct emu_vpd {
    struct ibv_pd  ibv;
    emu_pd_t       *pd;
    struct emu_vpd *parent;      /* Of a parent domain, otherwise NULL */
    unsigned       refs;         /* Parent domains made from it */
} emu_vpd_t;


typedef struct emu_vmr {
    struct ibv_mr ibv;
    emu_mr_t      *mr;
    emu_dmabuf_t  dmabuf;        /* If it was registered by one */
} emu_vmr_t;


typedef struct emu_vchan {
    struct ibv_comp_channel ibv;
    emu_chan_t              *chan;
} emu_vchan_t;


typedef struct emu_vah {
    struct ibv_ah      ibv;
    struct mlx5_wqe_av av;
} emu_vah_t;


typedef struct emu_vcq {
    union {
        struct ibv_cq    ibv;
        struct ibv_cq_ex ex;
    };
    emu_cq_t        *cq;
    uint64_t        cookie;
    pthread_mutex_t lock;        /* Protects what follows */
    uint32_t        ci;
    int             direct;      /* The program polls it by itself */
    unsigned        comp_events; /* Events given out by ibv_get_cq_event() */
    unsigned        async_events;
    struct ibv_wc   wc;          /* Present entry of ibv_next_poll() */
} emu_vcq_t;


/* Receive side of a work queue, own or shared */
typedef struct emu_vrq {
    uint8_t           *buf;
    volatile uint32_t *dbrec;
    uint32_t          wqe_cnt;
    uint32_t          stride;
    uint32_t          max_sge;
    uint32_t          head;      /* Posted */
    uint32_t          tail;      /* Completed; SRQ: last free entry */
    uint64_t          *wrid;
} emu_vrq_t;


typedef struct emu_vsrq {
    struct ibv_srq  ibv;
    emu_srq_t       *srq;
    uint64_t        cookie;
    pthread_mutex_t lock;        /* Protects what follows */
    emu_vrq_t       rq;
    uint16_t        counter;     /* Entries ever posted */
    uint32_t        limit;
    unsigned        async_events;
} emu_vsrq_t;


/* emu_vqp_wr.c */
typedef struct emu_vqp_batch emu_vqp_batch_t;


typedef struct emu_vqp {
    union {
        struct ibv_qp       ibv;
        struct ibv_qp_ex    ex;
    };
    emu_vqp_batch_t         *batch;    /* NULL without extended posting */
    emu_qp_t                *qp;
    uint64_t                cookie;
    emu_qp_type_t           type;
    struct ibv_qp_init_attr init;
    unsigned                async_events;

    pthread_mutex_t         sq_lock;   /* Protects sq_*: post and completion */
    uint8_t                 *sq_buf;
    volatile uint32_t       *dbrec;
    uint32_t                sq_bb_cnt;
    uint32_t                sq_head;   /* Basic blocks ever posted */
    uint32_t                sq_tail;   /* ... and completed */
    uint64_t                *sq_wrid;  /* By first basic block */
    uint16_t                *sq_num_bb;

    pthread_mutex_t         rq_lock;   /* Protects rq */
    emu_vrq_t               rq;
} emu_vqp_t;



static inline emu_vctx_t *emu_vctx(struct ibv_context *context)
{
    return emu_container_of(context, emu_vctx_t, verbs.context);
}

/* Whether this process opened the context, rather than its parent */
static inline int emu_vctx_is_mine(struct ibv_context *context)
{
    return emu_vctx(context)->fork_gen == emu_verbs_fork_gen;
}

/* Ask the device to do something for a context. It is done all the same where the
 * device does not answer, if the caller does not care for the result. */
static inline int emu_vctx_command(struct ibv_context *context)
{
    const emu_ctx_t *ctx = emu_vctx(context)->ctx;

    return emu_nic_command(ctx->port, ctx->nic_gen);
}

static inline emu_vcq_t *emu_vcq(struct ibv_cq *cq)
{
    return emu_container_of(cq, emu_vcq_t, ibv);
}

static inline emu_vqp_t *emu_vqp(struct ibv_qp *qp)
{
    return emu_container_of(qp, emu_vqp_t, ibv);
}

static inline emu_vsrq_t *emu_vsrq(struct ibv_srq *srq)
{
    return emu_container_of(srq, emu_vsrq_t, ibv);
}

static inline emu_vpd_t *emu_vpd(struct ibv_pd *pd)
{
    return emu_container_of(pd, emu_vpd_t, ibv);
}

/* Set errno from an engine's status and return NULL */
static inline void *emu_verbs_fail(int error)
{
    errno = (error < 0) ? -error : error;
    return NULL;
}

/* Set errno and return it, as functions returning errno values do */
static inline int emu_verbs_error(int error)
{
    return errno = (error < 0) ? -error : error;
}

static inline uint32_t emu_roundup_pow2(uint32_t value)
{
    return (value <= 1) ? 1 : (2u << (31 - __builtin_clz(value - 1)));
}


/* emu_vreg.c: names of objects in events. A name is never used twice, so that
 * an event which was raised before its object was destroyed finds nothing. */
uint64_t emu_vreg_add(void *obj);
void emu_vreg_remove(uint64_t cookie);
void *emu_vreg_find_count(uint64_t cookie, size_t counter_offset);

/* emu_vqp_table.c: queue pair of this process by number, NULL if there is none */
emu_vqp_t *emu_vqp_find(uint32_t qpn);
void emu_vqp_set(uint32_t qpn, emu_vqp_t *vqp);

/* emu_refuse_dv.c: whether a device has no direct verbs of mlx5. If so, counts the request
 * for them and sets errno to EOPNOTSUPP. */
int emu_vctx_refuses_dv(struct ibv_context *context, const char *func);

/* emu_vqp.c */
struct ibv_qp *emu_vqp_create(struct ibv_context *context,
                              struct ibv_qp_init_attr_ex *attr,
                              const struct mlx5dv_qp_init_attr *dv_attr);
struct ibv_qp *emu_vqp_create_ex(struct ibv_context *context,
                                 struct ibv_qp_init_attr_ex *attr);

/* emu_vqp_wr.c: extended posting; send_ops are IBV_QP_EX_WITH_ */
int emu_vqp_ex_check(emu_qp_type_t type, uint64_t send_ops);
int emu_vqp_ex_init(emu_vqp_t *vqp, uint64_t send_ops);

/* emu_vqp_post.c: the steps of emu_vqp_post_send(). The first wants the
 * sq_lock, nothing is seen by the engine before the second and a doorbell. */
int emu_vqp_can_post(const emu_vqp_t *vqp);
int emu_vqp_post_locked(emu_vqp_t *vqp, const struct ibv_send_wr *wr);
void emu_vqp_write_dbrec(emu_vqp_t *vqp);

/* emu_vqp_post.c, emu_vsrq.c */
int emu_vqp_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
                      struct ibv_send_wr **bad_wr);
int emu_vqp_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
                      struct ibv_recv_wr **bad_wr);
int emu_vsrq_post_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
                       struct ibv_recv_wr **bad_wr);
struct ibv_srq *emu_vsrq_create_ex(struct ibv_context *context,
                                   struct ibv_srq_init_attr_ex *attr);
int emu_vsrq_get_num(struct ibv_srq *srq, uint32_t *srq_num);

/* emu_vsrq.c: give a completed entry back. The lock must not be held. */
void emu_vsrq_free_wqe(emu_vsrq_t *vsrq, uint16_t index);

/* emu_vcq.c, emu_vcq_poll.c */
unsigned emu_vcq_cqe_size(void); /* unless something else is asked for */
struct ibv_cq_ex *emu_vcq_create(struct ibv_context *context,
                                 const struct ibv_cq_init_attr_ex *attr,
                                 unsigned cqe_size);
struct ibv_cq_ex *emu_vcq_create_ex(struct ibv_context *context,
                                    struct ibv_cq_init_attr_ex *attr);
int emu_vcq_modify(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
int emu_vcq_req_notify(struct ibv_cq *cq, int solicited_only);
int emu_vcq_poll(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
void emu_vcq_init_ex(emu_vcq_t *vcq);
void emu_vcq_clean(emu_vcq_t *vcq, const emu_vqp_t *vqp);

/* emu_vrefused.c: operations of a context that are not modelled */
void emu_vrefused_init_ops(struct verbs_context *verbs);

/* emu_vmem.c */
struct ibv_td *emu_vtd_alloc(struct ibv_context *context,
                             struct ibv_td_init_attr *attr);
int emu_vtd_dealloc(struct ibv_td *td);
struct ibv_pd *emu_vpd_alloc_parent(struct ibv_context *context,
                                    struct ibv_parent_domain_init_attr *attr);

/* emu_vport.c */
int emu_vctx_query_port(struct ibv_context *context, uint8_t port_num,
                        struct ibv_port_attr *attr, size_t attr_len);
int emu_vctx_query_device_ex(struct ibv_context *context,
                             const struct ibv_query_device_ex_input *input,
                             struct ibv_device_attr_ex *attr,
                             size_t attr_size);

#endif
