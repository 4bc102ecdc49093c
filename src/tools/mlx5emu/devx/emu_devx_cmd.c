/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED. See LICENSE for terms (BSD-3-Clause). */

/*
 * Commands to the device: checks of what every command has, and which handler
 * it goes to. Called by programs.
 */

#include "emu_devx.h"

#include <stdio.h>
#include <stdlib.h>

/* Syndromes identify checks of the firmware; here, those of the emulator */
#define EMU_DEVX_SYNDROME 0xe30000u


/* By which call a command may come */
typedef enum emu_devx_how {
    EMU_DEVX_GENERAL,
    EMU_DEVX_CREATE,
    EMU_DEVX_MODIFY,
    EMU_DEVX_QUERY
} emu_devx_how_t;


typedef struct emu_devx_op {
    uint16_t        opcode;
    uint16_t        min_in;    /* Bytes */
    emu_devx_how_t  how;
    emu_devx_type_t type;      /* Of the object */
} emu_devx_op_t;


static const emu_devx_op_t emu_devx_ops[] = {
    {EMU_CMD_QUERY_HCA_CAP, EMU_CMD_MIN_LEN, EMU_DEVX_GENERAL, EMU_DEVX_LAST},
    {EMU_CMD_QUERY_HCA_VPORT, EMU_CMD_MIN_LEN, EMU_DEVX_GENERAL, EMU_DEVX_LAST},
    {EMU_CMD_QUERY_LAG,     EMU_CMD_MIN_LEN, EMU_DEVX_GENERAL, EMU_DEVX_LAST},
    {EMU_CMD_CREATE_MKEY,   EMU_MKEY_CMD_LEN, EMU_DEVX_CREATE, EMU_DEVX_MKEY},
    {EMU_CMD_CREATE_CQ,     EMU_CQ_CMD_LEN,  EMU_DEVX_CREATE,  EMU_DEVX_CQ},
    {EMU_CMD_QUERY_CQ,      EMU_CMD_MIN_LEN, EMU_DEVX_QUERY,   EMU_DEVX_CQ},
    {EMU_CMD_CREATE_QP,     EMU_QP_CMD_LEN,  EMU_DEVX_CREATE,  EMU_DEVX_QP},
    {EMU_CMD_RST2INIT_QP,   EMU_CMD_MIN_LEN, EMU_DEVX_MODIFY,  EMU_DEVX_QP},
    {EMU_CMD_INIT2INIT_QP,  EMU_CMD_MIN_LEN, EMU_DEVX_MODIFY,  EMU_DEVX_QP},
    {EMU_CMD_INIT2RTR_QP,   EMU_CMD_MIN_LEN, EMU_DEVX_MODIFY,  EMU_DEVX_QP},
    {EMU_CMD_RTR2RTS_QP,    EMU_CMD_MIN_LEN, EMU_DEVX_MODIFY,  EMU_DEVX_QP},
    {EMU_CMD_RTS2RTS_QP,    EMU_CMD_MIN_LEN, EMU_DEVX_MODIFY,  EMU_DEVX_QP},
    {EMU_CMD_2ERR_QP,       EMU_CMD_MIN_LEN, EMU_DEVX_MODIFY,  EMU_DEVX_QP},
    {EMU_CMD_2RST_QP,       EMU_CMD_MIN_LEN, EMU_DEVX_MODIFY,  EMU_DEVX_QP},
    {EMU_CMD_QUERY_QP,      EMU_CMD_MIN_LEN, EMU_DEVX_QUERY,   EMU_DEVX_QP},
    {EMU_CMD_CREATE_DCT,    EMU_DCT_CMD_LEN, EMU_DEVX_CREATE,  EMU_DEVX_DCT},
    {EMU_CMD_DRAIN_DCT,     EMU_CMD_MIN_LEN, EMU_DEVX_MODIFY,  EMU_DEVX_DCT},
    {EMU_CMD_QUERY_DCT,     EMU_CMD_MIN_LEN, EMU_DEVX_QUERY,   EMU_DEVX_DCT},
    {EMU_CMD_CREATE_RMP,    EMU_RMP_CMD_LEN, EMU_DEVX_CREATE,  EMU_DEVX_RMP},
    {EMU_CMD_QUERY_RMP,     EMU_CMD_MIN_LEN, EMU_DEVX_QUERY,   EMU_DEVX_RMP}
};


/* errno is what the kernel gives for a command that it doesn't know */
static void emu_devx_refuse(unsigned opcode)
{
    char what[32];

    snprintf(what, sizeof(what), "command 0x%x is", opcode);
    emu_refuse("DEVX", what);
    errno = EINVAL;
}

/* Contexts that were not opened for DEVX may ask what the device can do, if the kernel
 * has DEVX at all. Sets errno if not. */
static int emu_devx_is_allowed(const emu_devx_cmd_t *cmd)
{
    if (emu_vctx(cmd->context)->devx) {
        return 1;
    }

    if (emu_ifc_get(cmd->in, EMU_CMD_OPCODE) != EMU_CMD_QUERY_HCA_CAP) {
        errno = EINVAL;
        return 0;
    }

    return !emu_fabric->cfg.no_devx ||
           !emu_refuse("mlx5dv_devx_general_cmd", "DEVX is, by --no-devx,");
}

/* Whether the driver answers a command for a NIC that is dead */
static int emu_devx_is_answered(const emu_devx_cmd_t *cmd, const emu_ctx_t *ctx)
{
    unsigned opcode = emu_ifc_get(cmd->in, EMU_CMD_OPCODE);

    return ((opcode == EMU_CMD_2ERR_QP) || (opcode == EMU_CMD_2RST_QP)) &&
           emu_nic_lies(ctx->port, ctx->nic_gen);
}

/* What the kernel checks of every command before the device sees it. @return NULL with
 * errno set if the command is refused. */
static const emu_devx_op_t *
emu_devx_check(const emu_devx_cmd_t *cmd, emu_devx_how_t how)
{
    const emu_ctx_t *ctx;
    unsigned opcode;
    size_t i;

    if ((cmd->context != NULL) &&
        emu_vctx_refuses_dv(cmd->context, "mlx5dv_devx")) {
        return NULL;
    }

    errno = EINVAL;
    if ((cmd->context == NULL) || !emu_vctx_is_mine(cmd->context) ||
        (cmd->in == NULL) || (cmd->out == NULL) ||
        (cmd->inlen < EMU_CMD_MIN_LEN) || (cmd->outlen < EMU_CMD_MIN_LEN) ||
        !emu_devx_is_allowed(cmd)) {
        return NULL;
    }

    ctx = emu_vctx(cmd->context)->ctx;
    if (!emu_devx_is_answered(cmd, ctx) &&
        (emu_nic_command(ctx->port, ctx->nic_gen) != 0)) {
        errno = EIO;
        return NULL;
    }

    opcode = emu_ifc_get(cmd->in, EMU_CMD_OPCODE);
    for (i = 0; i < sizeof(emu_devx_ops) / sizeof(emu_devx_ops[0]); ++i) {
        if ((emu_devx_ops[i].opcode == opcode) &&
            (emu_devx_ops[i].how == how)) {
            memset(cmd->out, 0, cmd->outlen);
            return &emu_devx_ops[i];
        }
    }

    emu_devx_refuse(opcode);
    return NULL;
}

static int emu_devx_general(const emu_devx_cmd_t *cmd, unsigned opcode)
{
    switch (opcode) {
    case EMU_CMD_QUERY_HCA_CAP:
        return emu_devx_query_hca_cap(cmd);
    case EMU_CMD_QUERY_HCA_VPORT:
        return emu_devx_query_vport(cmd);
    default:
        return emu_devx_query_lag(cmd);
    }
}

/* The device's answer. Output of a command that failed is its header alone. */
static int emu_devx_answer(const emu_devx_cmd_t *cmd, int status)
{
    unsigned opcode;

    if (status == EMU_CMD_ST_OK) {
        return 0;
    }

    opcode = emu_ifc_get(cmd->in, EMU_CMD_OPCODE);
    memset(cmd->out, 0, cmd->outlen);
    emu_ifc_set(cmd->out, EMU_CMD_STATUS, status);
    emu_ifc_set(cmd->out, EMU_CMD_SYNDROME, EMU_DEVX_SYNDROME | opcode);
    return emu_verbs_error(EREMOTEIO);
}

int mlx5dv_devx_general_cmd(struct ibv_context *context, const void *in,
                            size_t inlen, void *out, size_t outlen)
{
    const emu_devx_cmd_t cmd = { context, in, inlen, out, outlen };
    const emu_devx_op_t *op  = emu_devx_check(&cmd, EMU_DEVX_GENERAL);

    if (op == NULL) {
        return errno;
    }

    return emu_devx_answer(&cmd, emu_devx_general(&cmd, op->opcode));
}

static int emu_devx_create(emu_devx_obj_t *obj, const emu_devx_cmd_t *cmd,
                           const emu_devx_op_t *op)
{
    if (cmd->inlen < op->min_in) {
        return EMU_CMD_ST_BAD_INP_LEN;
    }

    switch (op->type) {
    case EMU_DEVX_QP:
        return emu_devx_create_qp(obj, cmd);
    case EMU_DEVX_CQ:
        return emu_devx_create_cq(obj, cmd);
    case EMU_DEVX_DCT:
        return emu_devx_create_dct(obj, cmd);
    case EMU_DEVX_MKEY:
        return emu_devx_create_mkey(obj, cmd);
    default:
        return emu_devx_create_rmp(obj, cmd);
    }
}

static void emu_devx_obj_free(emu_devx_obj_t *obj)
{
    unsigned i;

    emu_vreg_remove(obj->cookie);
    for (i = 0; i < EMU_DEVX_MAX_UMEMS; ++i) {
        if (obj->umems[i] != NULL) {
            emu_umem_put(obj->umems[i]);
        }
    }
    free(obj);
}

struct mlx5dv_devx_obj *
mlx5dv_devx_obj_create(struct ibv_context *context, const void *in,
                       size_t inlen, void *out, size_t outlen)
{
    const emu_devx_cmd_t cmd = { context, in, inlen, out, outlen };
    const emu_devx_op_t *op  = emu_devx_check(&cmd, EMU_DEVX_CREATE);
    emu_devx_obj_t *obj;
    int status;

    if (op == NULL) {
        return NULL;
    }

    obj = calloc(1, sizeof(*obj));
    if (obj == NULL) {
        return emu_verbs_fail(ENOMEM);
    }

    obj->context = context;
    obj->type    = op->type;
    obj->cookie  = emu_vreg_add(obj);
    if (obj->cookie == 0) {
        free(obj);
        return emu_verbs_fail(ENOMEM);
    }

    status = emu_devx_create(obj, &cmd, op);
    if (status != EMU_CMD_ST_OK) {
        emu_devx_obj_free(obj);
        emu_devx_answer(&cmd, status);
        return NULL;
    }

    emu_ifc_set(out, EMU_CMD_OBJ_NUM, obj->num);
    return obj;
}

int mlx5dv_devx_obj_destroy(struct mlx5dv_devx_obj *obj)
{
    int ret = 0;

    if (obj == NULL) {
        return emu_verbs_error(EINVAL);
    }

    emu_devx_unsubscribe(obj);
    if (emu_vctx_is_mine(obj->context)) {
        (void)emu_vctx_command(obj->context);
        switch (obj->type) {
        case EMU_DEVX_CQ:
            ret = emu_cq_destroy(obj->cq);
            break;
        case EMU_DEVX_RMP:
            ret = emu_srq_destroy(obj->srq);
            break;
        case EMU_DEVX_MKEY:
            emu_mr_dereg(obj->mr);
            break;
        default:
            emu_qp_destroy(obj->qp);
            break;
        }
    }

    if (ret != 0) {
        return emu_verbs_error(ret);
    }

    emu_devx_obj_free(obj);
    return 0;
}

/* A command about an existing object must name that object */
static const emu_devx_op_t *
emu_devx_check_obj(const emu_devx_cmd_t *cmd, emu_devx_how_t how,
                   emu_devx_type_t type, uint32_t num)
{
    const emu_devx_op_t *op = emu_devx_check(cmd, how);

    if ((op != NULL) && ((op->type != type) ||
                         (emu_ifc_get(cmd->in, EMU_CMD_OBJ_NUM) != num))) {
        errno = EINVAL;
        return NULL;
    }

    return op;
}

int mlx5dv_devx_obj_modify(struct mlx5dv_devx_obj *obj, const void *in,
                           size_t inlen, void *out, size_t outlen)
{
    emu_devx_cmd_t cmd = { NULL, in, inlen, out, outlen };

    if (obj == NULL) {
        return emu_verbs_error(EINVAL);
    }

    cmd.context = obj->context;
    if (emu_devx_check_obj(&cmd, EMU_DEVX_MODIFY, obj->type, obj->num) ==
        NULL) {
        return errno;
    }

    return emu_devx_answer(&cmd, (obj->type == EMU_DEVX_DCT) ?
                                 emu_devx_drain_dct(obj->qp) :
                                 emu_devx_modify_qp(obj->qp, &cmd));
}

int mlx5dv_devx_obj_query(struct mlx5dv_devx_obj *obj, const void *in,
                          size_t inlen, void *out, size_t outlen)
{
    emu_devx_cmd_t cmd = { NULL, in, inlen, out, outlen };
    int status;

    if (obj == NULL) {
        return emu_verbs_error(EINVAL);
    }

    cmd.context = obj->context;
    if (emu_devx_check_obj(&cmd, EMU_DEVX_QUERY, obj->type, obj->num) ==
        NULL) {
        return errno;
    }

    switch (obj->type) {
    case EMU_DEVX_QP:
        status = emu_devx_query_qp(obj->qp, &cmd);
        break;
    case EMU_DEVX_CQ:
        status = emu_devx_query_cq(obj->cq, &cmd);
        break;
    case EMU_DEVX_DCT:
        status = emu_devx_query_dct(obj->qp, &cmd);
        break;
    default:
        status = emu_devx_query_rmp(obj, &cmd);
        break;
    }

    return emu_devx_answer(&cmd, status);
}

/* Queue pairs that verbs made take the same commands. NULL with errno set if
 * this one doesn't take this command. */
static emu_qp_t *emu_devx_verbs_qp(struct ibv_qp *ibv_qp, emu_devx_cmd_t *cmd,
                                   emu_devx_how_t how)
{
    emu_qp_t *qp;

    if (ibv_qp == NULL) {
        return emu_verbs_fail(EINVAL);
    }

    cmd->context = ibv_qp->context;
    qp           = emu_vqp(ibv_qp)->qp;
    if (emu_devx_check_obj(cmd, how, EMU_DEVX_QP, ibv_qp->qp_num) == NULL) {
        return NULL;
    }

    return ((qp->type == EMU_QPT_RC) || (qp->type == EMU_QPT_DCI)) ?
           qp : emu_verbs_fail(EINVAL);
}

int mlx5dv_devx_qp_modify(struct ibv_qp *ibv_qp, const void *in, size_t inlen,
                          void *out, size_t outlen)
{
    emu_devx_cmd_t cmd = { NULL, in, inlen, out, outlen };
    emu_qp_t *qp       = emu_devx_verbs_qp(ibv_qp, &cmd, EMU_DEVX_MODIFY);

    return (qp == NULL) ? errno :
           emu_devx_answer(&cmd, emu_devx_modify_qp(qp, &cmd));
}

int mlx5dv_devx_qp_query(struct ibv_qp *ibv_qp, const void *in, size_t inlen,
                         void *out, size_t outlen)
{
    emu_devx_cmd_t cmd = { NULL, in, inlen, out, outlen };
    emu_qp_t *qp       = emu_devx_verbs_qp(ibv_qp, &cmd, EMU_DEVX_QUERY);

    return (qp == NULL) ? errno :
           emu_devx_answer(&cmd, emu_devx_query_qp(qp, &cmd));
}
