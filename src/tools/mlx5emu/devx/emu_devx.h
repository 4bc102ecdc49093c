/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED. See LICENSE for terms (BSD-3-Clause). */

/*
 * DEVX: programs pass commands to the device in its own format, and supply the memory of
 * the queues that they create.
 *
 *   program --> mlx5dv_devx_general_cmd, ..._obj_create/modify/query
 *                    |
 *               emu_devx_cmd.c   lengths, opcodes, objects
 *                    |
 *               emu_devx_qp.c, _cq.c, _dct.c, ...   one object's commands
 *                    |
 *               core/            the same objects that verbs/ makes
 *
 * Handlers of commands return a status of the device (EMU_CMD_ST_x), which the program
 * finds in the command's output while the call returns EREMOTEIO, as from the kernel.
 * Commands that the kernel refuses fail with EINVAL and have no status.
 */

#ifndef EMU_DEVX_H_
#define EMU_DEVX_H_

#include "../verbs/emu_verbs.h"
#include "emu_ifc.h"

#define EMU_DEVX_MAX_UMEMS  2
#define EMU_DEVX_MAX_EVENTS 4
#define EMU_DEVX_UAR_PAGE   1   /* Number of the page of a device's context */
#define EMU_DEVX_EQN        1   /* Event queue of completion vector 0 */


typedef enum emu_devx_type {
    EMU_DEVX_QP,
    EMU_DEVX_CQ,
    EMU_DEVX_DCT,
    EMU_DEVX_RMP,
    EMU_DEVX_MKEY,
    EMU_DEVX_LAST
} emu_devx_type_t;


typedef struct emu_umem emu_umem_t;
typedef struct mlx5dv_devx_obj emu_devx_obj_t;


/* A subscription to one kind of event of an object */
typedef struct emu_devx_sub {
    int      is_used;
    unsigned event;            /* EMU_DEVX_EVENT_x */
    uint64_t cookie;           /* What the program wants to get */
} emu_devx_sub_t;


/* What a program holds as struct mlx5dv_devx_obj */
struct mlx5dv_devx_obj {
    struct ibv_context *context;
    emu_devx_type_t    type;
    uint32_t           num;
    uint64_t           cookie;  /* Name in events of the engine */
    unsigned           events;  /* Events which were found to be for it */
    union {
        emu_qp_t       *qp;     /* QP, DCT */
        emu_cq_t       *cq;     /* CQ */
        emu_srq_t      *srq;    /* RMP */
        emu_mr_t       *mr;     /* MKEY */
    };
    emu_umem_t         *umems[EMU_DEVX_MAX_UMEMS];
    struct mlx5dv_devx_event_channel *channel;
    struct mlx5dv_devx_obj *next_obj; /* Subscribed to the same channel */
    emu_devx_sub_t     subs[EMU_DEVX_MAX_EVENTS];
};


/** A command and where its answer goes. Both are long enough. */
typedef struct emu_devx_cmd {
    struct ibv_context *context;
    const void         *in;
    size_t             inlen;
    void               *out;    /* Zeroed */
    size_t             outlen;
} emu_devx_cmd_t;


/* emu_devx_cap.c */
int emu_devx_query_hca_cap(const emu_devx_cmd_t *cmd);
int emu_devx_query_lag(const emu_devx_cmd_t *cmd);
int emu_devx_query_vport(const emu_devx_cmd_t *cmd);

/* emu_devx_qp.c: commands of queue pairs, made by DEVX or by verbs */
int emu_devx_create_qp(emu_devx_obj_t *obj, const emu_devx_cmd_t *cmd);
int emu_devx_modify_qp(emu_qp_t *qp, const emu_devx_cmd_t *cmd);
int emu_devx_query_qp(emu_qp_t *qp, const emu_devx_cmd_t *cmd);

/* emu_devx_cq.c */
int emu_devx_create_cq(emu_devx_obj_t *obj, const emu_devx_cmd_t *cmd);
int emu_devx_query_cq(emu_cq_t *cq, const emu_devx_cmd_t *cmd);

/* emu_devx_dct.c, emu_devx_rmp.c */
int emu_devx_create_dct(emu_devx_obj_t *obj, const emu_devx_cmd_t *cmd);
int emu_devx_drain_dct(emu_qp_t *qp);
int emu_devx_query_dct(emu_qp_t *qp, const emu_devx_cmd_t *cmd);
int emu_devx_create_rmp(emu_devx_obj_t *obj, const emu_devx_cmd_t *cmd);
int emu_devx_query_rmp(const emu_devx_obj_t *obj, const emu_devx_cmd_t *cmd);

/* emu_devx_mkey.c */
int emu_devx_create_mkey(emu_devx_obj_t *obj, const emu_devx_cmd_t *cmd);

/* emu_devx_obj.c: status of the device for an engine's status; objects by number,
 * of this process and of the context */
int emu_devx_status(int error);
emu_pd_t *emu_devx_find_pd(struct ibv_context *context, uint32_t pdn);
emu_cq_t *emu_devx_find_cq(struct ibv_context *context, uint32_t cqn);
emu_srq_t *emu_devx_find_srq(struct ibv_context *context, uint32_t srqn);

/* emu_devx_event.c: the object is about to be destroyed */
void emu_devx_unsubscribe(emu_devx_obj_t *obj);

/* emu_devx_umem.c */

/**
 * Memory inside a umem, as the engine reaches it from all processes.
 *
 * @param [in]  id      Number of the umem.
 * @param [in]  offset  Where it begins in the umem.
 * @param [in]  length  Its length.
 * @param [out] umem_p  The umem, referenced: @ref emu_umem_put.
 *
 * @return The memory, NULL if there is no such umem or not that much of it.
 */
void *emu_umem_get(struct ibv_context *context, uint32_t id, uint64_t offset,
                   uint64_t length, emu_umem_t **umem_p);
void emu_umem_put(emu_umem_t *umem);

#endif
