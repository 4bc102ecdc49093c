/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * DEVX: commands with any contents and lengths, and valid ones with modified bytes, on
 * objects that are created and destroyed, and work for their queue pairs. Mailboxes
 * have exactly the given size, and queues are in a umem. A command succeeds, fails with
 * a status, or does not reach the device. In the end all objects can be destroyed.
 */
#include "fuzz.h"
#include "../engine/engine.h"
#include "devx/emu_devx.h"
#include "uar/emu_signal.h"

#include <fcntl.h>
#include <sys/mman.h>

#define DEVX_UMEM     (256u << 10)
#define DEVX_ACTIONS  32
#define DEVX_OBJS     16
#define DEVX_MAX_BOX  512

/* Where templates put their queues in the umem */
#define DEVX_CQ_OFFSET  0x10000
#define DEVX_RMP_OFFSET 0x20000
#define DEVX_DBR_OFFSET 0x30000


static engine_t engine;
static emu_vctx_t vctx;
static emu_vqp_t vqp;
static struct mlx5dv_devx_umem *umem;
static struct mlx5dv_devx_event_channel *channel;
static uint8_t *umem_mem;
static struct mlx5dv_devx_obj *objs[DEVX_OBJS];

/* Stand-ins for the trap of doorbells */
void emu_signal_pause_begin(void)
{
}

void emu_signal_pause_end(void)
{
}

static void setup(void)
{
    engine_open(&engine, 1 << 16);
    vctx.ctx      = engine.ctx;
    vctx.port     = &emu_fabric->ports[engine.ctx->port];
    vctx.devx     = 1;
    vctx.fork_gen = emu_verbs_fork_gen;

    umem_mem = mmap(NULL, DEVX_UMEM, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    FUZZ_CHECK(umem_mem != MAP_FAILED);
    umem = mlx5dv_devx_umem_reg(&vctx.verbs.context, umem_mem, DEVX_UMEM,
                                IBV_ACCESS_LOCAL_WRITE);
    FUZZ_CHECK(umem != NULL);
    channel = mlx5dv_devx_create_event_channel(
            &vctx.verbs.context, MLX5_IB_UAPI_DEVX_CR_EV_CH_FLAGS_OMIT_DATA);
    FUZZ_CHECK(channel != NULL);
    FUZZ_CHECK(fcntl(channel->fd, F_SETFL, O_NONBLOCK) == 0);

    vqp.qp          = engine_qp(&engine, EMU_QPT_RC, NULL);
    vqp.ibv.context = &vctx.verbs.context;
    vqp.ibv.qp_num  = vqp.qp->qpn;
}

/* The newest object of a kind, so that templates refer to existing objects */
static struct mlx5dv_devx_obj *find(emu_devx_type_t type)
{
    unsigned i;

    for (i = DEVX_OBJS; i > 0; --i) {
        if ((objs[i - 1] != NULL) && (objs[i - 1]->type == type)) {
            return objs[i - 1];
        }
    }
    return NULL;
}

static uint32_t find_num(emu_devx_type_t type)
{
    const struct mlx5dv_devx_obj *obj = find(type);

    return (obj == NULL) ? 0 : obj->num;
}

#define SET(_base, ...) emu_ifc_set((_base), __VA_ARGS__)

static void make_qp(uint8_t *in, unsigned variant)
{
    uint8_t *qpc = in + EMU_QP_CMD_QPC;
    uint32_t cqn = find_num(EMU_DEVX_CQ);

    SET(in, EMU_QP_CMD_WQ_UMEM_ID, umem->umem_id);
    SET(qpc, EMU_QPC_ST, (variant & 1) ? EMU_QPC_ST_DCI : EMU_QPC_ST_RC);
    SET(qpc, EMU_QPC_PD, engine.pd->index);
    SET(qpc, EMU_QPC_UAR_PAGE, EMU_DEVX_UAR_PAGE);
    SET(qpc, EMU_QPC_CQN_SND, (cqn != 0) ? cqn : vqp.qp->send_cq->cqn);
    SET(qpc, EMU_QPC_CQN_RCV, (cqn != 0) ? cqn : vqp.qp->recv_cq->cqn);
    SET(qpc, EMU_QPC_LOG_SQ_SIZE, variant & 6);
    SET(qpc, EMU_QPC_LOG_RQ_SIZE, variant & 3);
    SET(qpc, EMU_QPC_DBR_UMEM_ID, umem->umem_id);
    SET(qpc, EMU_QPC_DBR_ADDR, DEVX_DBR_OFFSET);
    SET(qpc, EMU_QPC_RQ_TYPE, (find(EMU_DEVX_RMP) != NULL) ?
                              EMU_QPC_RQ_TYPE_SRQ : EMU_QPC_RQ_TYPE_REGULAR);
    SET(qpc, EMU_QPC_SRQN, find_num(EMU_DEVX_RMP));
}

static void make_modify_qp(uint8_t *in)
{
    uint8_t *qpc = in + EMU_QP_CMD_QPC;

    SET(qpc, EMU_QPC_PORT, 1);
    SET(qpc, EMU_QPC_MTU, IBV_MTU_1024);
    SET(qpc, EMU_QPC_RLID, 1);
    SET(qpc, EMU_QPC_REMOTE_QPN, find_num(EMU_DEVX_QP));
    SET(qpc, EMU_QPC_RWE, 1);
    SET(qpc, EMU_QPC_RETRY_COUNT, 1);
    SET(qpc, EMU_QPC_ACK_TIMEOUT, 1);
}

static void make_cq(uint8_t *in, unsigned variant)
{
    uint8_t *cqc = in + EMU_CQ_CMD_CQC;

    SET(in, EMU_CQ_CMD_UMEM_ID, umem->umem_id);
    SET(in, EMU_CQ_CMD_UMEM_OFFSET, DEVX_CQ_OFFSET);
    SET(cqc, EMU_CQC_LOG_SIZE, variant & 7);
    SET(cqc, EMU_CQC_CQE_SZ, (variant >> 3) & 1);
    SET(cqc, EMU_CQC_IGNORE_OVERRUN, (variant >> 4) & 1);
    SET(cqc, EMU_CQC_UAR_PAGE, EMU_DEVX_UAR_PAGE);
    SET(cqc, EMU_CQC_EQN, EMU_DEVX_EQN);
    SET(cqc, EMU_CQC_DBR_UMEM_ID, umem->umem_id);
    SET(cqc, EMU_CQC_DBR_ADDR, DEVX_DBR_OFFSET + 64);
}

static void make_rmp(uint8_t *in, unsigned variant)
{
    uint8_t *rmpc = in + EMU_RMP_CMD_RMPC;

    SET(rmpc, EMU_RMPC_STATE, EMU_RMPC_STATE_RDY);
    SET(rmpc, EMU_RMPC_WQ_TYPE, variant & 1);
    SET(rmpc, EMU_RMPC_PD, engine.pd->index);
    SET(rmpc, EMU_RMPC_LOG_STRIDE, 5 + ((variant >> 1) & 3));
    SET(rmpc, EMU_RMPC_LOG_SIZE, (variant >> 3) & 7);
    SET(rmpc, EMU_RMPC_WQ_UMEM_ID, umem->umem_id);
    SET(rmpc, EMU_RMPC_WQ_UMEM_OFFSET, DEVX_RMP_OFFSET);
    SET(rmpc, EMU_RMPC_DBR_UMEM_ID, umem->umem_id);
    SET(rmpc, EMU_RMPC_DBR_ADDR, DEVX_DBR_OFFSET + 128);
}

static void make_dct(uint8_t *in)
{
    uint8_t *dctc = in + EMU_DCT_CMD_DCTC;
    uint32_t cqn  = find_num(EMU_DEVX_CQ);

    SET(dctc, EMU_DCTC_PD, engine.pd->index);
    SET(dctc, EMU_DCTC_CQN, (cqn != 0) ? cqn : vqp.qp->recv_cq->cqn);
    SET(dctc, EMU_DCTC_SRQN, find_num(EMU_DEVX_RMP));
    SET(dctc, EMU_DCTC_KEY, ENGINE_DC_KEY);
    SET(dctc, EMU_DCTC_PORT, 1);
    SET(dctc, EMU_DCTC_MTU, IBV_MTU_1024);
    SET(dctc, EMU_DCTC_RWE, 1);
}

static void make_mkey(uint8_t *in)
{
    uint8_t *mkc = in + EMU_MKEY_CMD_MKC;

    SET(in, EMU_MKEY_CMD_COUNT, 1);
    SET(mkc, EMU_MKC_MODE_1_0, EMU_MKC_MODE_KSM);
    SET(mkc, EMU_MKC_PD, engine.pd->index);
    SET(mkc, EMU_MKC_LEN, 4096);
    SET(mkc, EMU_MKC_LOG_ENTITY_SIZE, 12);
    SET(in + EMU_MKEY_CMD_KLM, EMU_KLM_MKEY, engine.mr->key);
    SET(in + EMU_MKEY_CMD_KLM, EMU_KLM_ADDRESS, (uintptr_t)engine.mem);
}

/* A valid command, if its objects exist */
static void make(uint8_t *in, unsigned opcode, uint32_t num, unsigned variant)
{
    memset(in, 0, DEVX_MAX_BOX);
    SET(in, EMU_CMD_OPCODE, opcode);
    SET(in, EMU_CMD_OBJ_NUM, num);
    switch (opcode) {
    case EMU_CMD_CREATE_QP:
        make_qp(in, variant);
        break;
    case EMU_CMD_CREATE_CQ:
        make_cq(in, variant);
        break;
    case EMU_CMD_CREATE_RMP:
        make_rmp(in, variant);
        break;
    case EMU_CMD_CREATE_DCT:
        make_dct(in);
        break;
    case EMU_CMD_CREATE_MKEY:
        make_mkey(in);
        break;
    case EMU_CMD_QUERY_HCA_CAP:
        SET(in, EMU_CMD_OP_MOD, variant & 7);
        break;
    default:
        make_modify_qp(in);
        break;
    }
}

static const uint16_t opcodes[] = {
    EMU_CMD_CREATE_QP,    EMU_CMD_CREATE_CQ,    EMU_CMD_CREATE_RMP,
    EMU_CMD_CREATE_DCT,   EMU_CMD_CREATE_MKEY,  EMU_CMD_RST2INIT_QP,
    EMU_CMD_INIT2RTR_QP,  EMU_CMD_RTR2RTS_QP,   EMU_CMD_INIT2INIT_QP,
    EMU_CMD_RTS2RTS_QP,   EMU_CMD_2ERR_QP,      EMU_CMD_2RST_QP,
    EMU_CMD_DRAIN_DCT,    EMU_CMD_QUERY_QP,     EMU_CMD_QUERY_CQ,
    EMU_CMD_QUERY_RMP,    EMU_CMD_QUERY_DCT,    EMU_CMD_QUERY_HCA_CAP,
    EMU_CMD_QUERY_LAG
};

#define NUM_CREATE 5

/* A call and its two mailboxes */
typedef struct call {
    unsigned opcode;
    size_t   inlen;
    size_t   outlen;
    uint8_t  *in;
    uint8_t  *out;
} call_t;

static size_t pick_length(fuzz_input_t *in, size_t right)
{
    return (fuzz_u64(in, 1) & 7) ? right : (fuzz_u64(in, 2) % DEVX_MAX_BOX);
}

static void call_begin(fuzz_input_t *in, unsigned opcode, uint32_t num,
                       call_t *call)
{
    uint8_t box[DEVX_MAX_BOX];
    unsigned edits, i;

    call->opcode = opcode;
    make(box, opcode, num, fuzz_u64(in, 1));
    edits = fuzz_u64(in, 1) % 8;
    edits = (edits < 4) ? 0 : (edits - 3);
    for (i = 0; i < edits; ++i) {
        box[fuzz_u64(in, 2) % 320] = fuzz_u64(in, 1);
    }

    call->inlen  = pick_length(in, 320);
    call->outlen = pick_length(in, 320);
    call->in     = malloc(call->inlen);
    call->out    = malloc(call->outlen);
    memcpy(call->in, box, call->inlen);
}

static void call_end(call_t *call, int error)
{
    FUZZ_CHECK((error == 0) || (error == EINVAL) || (error == EREMOTEIO));
    if (error != EINVAL) {
        FUZZ_CHECK((emu_ifc_get(call->out, EMU_CMD_STATUS) == 0) ==
                   (error == 0));
    }
    free(call->in);
    free(call->out);
}

static void act_create(fuzz_input_t *in, unsigned i)
{
    unsigned opcode = opcodes[fuzz_u64(in, 1) % NUM_CREATE];
    call_t call;

    if (objs[i] != NULL) {
        return;
    }

    call_begin(in, opcode, 0, &call);
    errno   = 0;
    objs[i] = mlx5dv_devx_obj_create(&vctx.verbs.context, call.in, call.inlen,
                                     call.out, call.outlen);
    call_end(&call, (objs[i] == NULL) ? errno : 0);
}

/* Mostly commands for the object's kind */
static unsigned pick_opcode(fuzz_input_t *in)
{
    return opcodes[fuzz_u64(in, 1) % (sizeof(opcodes) / sizeof(opcodes[0]))];
}

static void act_modify(fuzz_input_t *in, unsigned i)
{
    call_t call;

    call_begin(in, pick_opcode(in), (objs[i] == NULL) ? 1 : objs[i]->num,
               &call);
    call_end(&call, mlx5dv_devx_obj_modify(objs[i], call.in, call.inlen,
                                           call.out, call.outlen));
}

static void act_query(fuzz_input_t *in, unsigned i)
{
    call_t call;

    call_begin(in, pick_opcode(in), (objs[i] == NULL) ? 1 : objs[i]->num,
               &call);
    call_end(&call, mlx5dv_devx_obj_query(objs[i], call.in, call.inlen,
                                          call.out, call.outlen));
}

static void act_general(fuzz_input_t *in, unsigned i)
{
    call_t call;

    call_begin(in, pick_opcode(in), 0, &call);
    call_end(&call, mlx5dv_devx_general_cmd(&vctx.verbs.context, call.in,
                                            call.inlen, call.out,
                                            call.outlen));
}

static void act_verbs_qp(fuzz_input_t *in, unsigned i)
{
    call_t call;

    call_begin(in, pick_opcode(in), vqp.qp->qpn, &call);
    call_end(&call, ((i & 1) ? mlx5dv_devx_qp_modify : mlx5dv_devx_qp_query)
                    (&vqp.ibv, call.in, call.inlen, call.out, call.outlen));
}

/* Take a queue pair to the next state, so that it can work */
static void act_start(fuzz_input_t *in, unsigned i)
{
    static const unsigned steps[] = { EMU_CMD_2RST_QP, EMU_CMD_RST2INIT_QP,
                                      EMU_CMD_INIT2RTR_QP,
                                      EMU_CMD_RTR2RTS_QP };
    uint8_t box[DEVX_MAX_BOX], out[64];
    unsigned k;

    for (k = 0; (k < 4) && (objs[i] != NULL) && (objs[i]->type == EMU_DEVX_QP);
         ++k) {
        make(box, steps[k], objs[i]->num, 0);
        mlx5dv_devx_obj_modify(objs[i], box, EMU_QP_CMD_LEN, out, sizeof(out));
    }
}

/* Any bytes in any queue or doorbell record, and a doorbell */
static void act_work(fuzz_input_t *in, unsigned i)
{
    uint32_t offset = (fuzz_u64(in, 1) & 3) * 0x10000 + fuzz_u64(in, 1);
    unsigned size   = fuzz_u64(in, 1);

    fuzz_take(in, umem_mem + offset, size);
    if (objs[i] != NULL) {
        if (objs[i]->type == EMU_DEVX_CQ) {
            emu_cq_arm(objs[i]->num, fuzz_u64(in, 4));
        } else {
            emu_sq_doorbell(objs[i]->num);
        }
    }
}

static void act_event(fuzz_input_t *in, unsigned i)
{
    struct mlx5dv_devx_async_event_hdr event;
    uint16_t number = fuzz_u64(in, 1) & 0x1f;

    if ((objs[i] != NULL) && (fuzz_u64(in, 1) & 1)) {
        mlx5dv_devx_subscribe_devx_event(channel, objs[i], sizeof(number),
                                         &number, i + 1);
    } else if (mlx5dv_devx_get_event(channel, &event, sizeof(event)) >= 0) {
        FUZZ_CHECK((event.cookie > 0) && (event.cookie <= DEVX_OBJS));
    }
}

static void act_destroy(fuzz_input_t *in, unsigned i)
{
    if ((objs[i] != NULL) && (mlx5dv_devx_obj_destroy(objs[i]) == 0)) {
        objs[i] = NULL;
    }
}

static void destroy_all(void)
{
    unsigned i, pass;

    for (pass = 0; pass < 2; ++pass) { /* queue pairs refer to the others */
        for (i = 0; i < DEVX_OBJS; ++i) {
            if ((objs[i] != NULL) &&
                ((pass == 1) || (objs[i]->type == EMU_DEVX_QP) ||
                 (objs[i]->type == EMU_DEVX_DCT))) {
                FUZZ_CHECK(mlx5dv_devx_obj_destroy(objs[i]) == 0);
                objs[i] = NULL;
            }
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const actions[])(fuzz_input_t*, unsigned) = {
        act_create, act_modify, act_query, act_general, act_verbs_qp,
        act_start, act_work, act_event, act_destroy, act_create, act_create,
        act_start, act_work, act_create, act_modify, act_work
    };
    struct mlx5dv_devx_async_event_hdr event;
    fuzz_input_t in = { data, size };
    unsigned n, head;

    if (engine.mem == NULL) {
        setup();
    }

    memset(umem_mem, 0, DEVX_UMEM);
    for (n = 0; (n < DEVX_ACTIONS) && (in.size > 0); ++n) {
        head = fuzz_u64(&in, 1);
        actions[head >> 4](&in, head % DEVX_OBJS);
    }

    destroy_all();
    while (mlx5dv_devx_get_event(channel, &event, sizeof(event)) >= 0) {
        FUZZ_CHECK(0); /* of an unknown object */
    }
    return 0;
}

/* Each command, alone and after others */
void fuzz_seeds(void (*add)(const void *data, size_t size))
{
    uint8_t data[1024];
    unsigned i, k;

    for (i = 0; i < NUM_CREATE; ++i) {
        memset(data, 0, sizeof(data));
        data[0] = i;              /* create into slot i */
        data[1] = i;
        data[4] = data[5] = 1;    /* lengths are right */
        add(data, 64);
    }

    for (k = 0; k < 64; ++k) {
        for (i = 0; i < sizeof(data); ++i) {
            data[i] = (i * 73 + k * 29) ^ (i >> 2) ^ (k << 3);
        }
        add(data, sizeof(data));
    }
}
