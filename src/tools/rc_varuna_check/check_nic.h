/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * This host's ports, and queue pairs on them, through libibverbs and mlx5dv.
 */
#ifndef CHECK_NIC_H_
#define CHECK_NIC_H_

#include "check_proto.h"

#include <infiniband/verbs.h>

#define CHECK_SQ_LEN         256 /* Work requests of a queue pair */
#define CHECK_QP_TIMEOUT     14  /* 4.096 us x 2^14 = 67 ms, up to four times that */
#define CHECK_QP_RETRIES     6   /* For busy hosts. Soft-RoCE takes 7 as unlimited */
#define CHECK_QP_RNR_RETRIES 7
#define CHECK_PKEY_FULL      0x8000 /* Member, which may talk to limited ones */
#define CHECK_PKEY_PARTITION 0x7fff

typedef struct check_devx check_devx_t;


typedef struct check_nic {
    struct ibv_context     *context;
    struct ibv_device_attr attr;
    struct ibv_port_attr   port_attr;
    check_wire_port_t      wire;
    uint8_t                port;
    uint8_t                gid_index;
    uint16_t               pkey_index;
    int                    has_dv;    /**< mlx5dv supports it */
    int                    has_devx;
    struct ibv_pd          *pd;
    struct ibv_mr          *mr;
    char                   *mem;      /**< CHECK_MEM_SIZE */
} check_nic_t;

typedef struct check_nics {
    check_nic_t nic[CHECK_MAX_PORTS];
    unsigned    count;
} check_nics_t;

/** How a queue pair is made. */
typedef enum check_qp_kind {
    CHECK_QP_RQ,   /**< By verbs, with a receive queue of its own */
    CHECK_QP_SRQ,  /**< By verbs, with a shared one */
    CHECK_QP_UCX   /**< As UCX makes it: by DEVX where it does, else as CHECK_QP_SRQ */
} check_qp_kind_t;

/** What the context of a queue pair or DC target says of packets that come early. */
typedef struct check_order_bits {
    unsigned placement; /**< dp_ordering: 0 is the order of the specification */
    int      is_forced; /**< ... whatever the administrator of the device has set */
} check_order_bits_t;

/** A queue pair with its completion queue. */
typedef struct check_qp {
    check_nic_t    *nic;
    struct ibv_cq  *cq;
    struct ibv_srq *srq;
    struct ibv_qp  *qp;
    check_devx_t   *devx;    /**< Made by DEVX: cq and qp are NULL then */
    uint32_t       qpn;
    int            is_strong; /**< Each write is to be placed after all before it */
    uint64_t       remote_addr;
    uint32_t       rkey;
    uint32_t       psn;      /**< Of our first packet */
    uint32_t       mtu;      /**< Bytes */
    uint64_t       posted;   /**< Work requests */
    uint64_t       done;     /**< Completed with success */
    uint64_t       failed;   /**< ... with an error */
    int            status;   /**< Of the first of these, an ibv_wc_status */
} check_qp_t;


/** Open the ports that @a devices names, or all. @return 0, or -1 with a message. */
int check_nics_open(check_nics_t *nics, const char *devices);

/** Read the port's state and addresses again. @return 0 or errno. */
int check_nic_refresh(check_nic_t *nic);

/** Execute a DEVX command. @return 0 or errno. */
int check_nic_command(const check_nic_t *nic, unsigned opcode, unsigned op_mod,
                      uint32_t word2, void *out, size_t out_length);

/** Create a queue pair in state INIT. @return 0 or errno. */
int check_qp_create(check_nic_t *nic, check_qp_kind_t kind, check_qp_t *qp);

/** Connect it. If @a is_ordered, a queue pair by DEVX is forced to the order of the
 *  specification. @return 0 or errno. */
int check_qp_connect(check_qp_t *qp, const check_wire_port_t *peer, uint32_t qpn,
                     uint32_t psn, int is_ordered);

/** Connect it with itself. @return 0 or errno. */
int check_qp_connect_self(check_qp_t *qp);

/** Read how it places what comes early. @return 0 or errno. */
int check_qp_order(const check_qp_t *qp, check_order_bits_t *order_p);

/** @return Completions, as ibv_poll_cq(). Those by DEVX have a status, and in wr_id the
 *  number of the request, from 0. */
int check_qp_poll(check_qp_t *qp, int max, struct ibv_wc *wc);

/** @return 0 or errno. */
int check_qp_modify(check_qp_t *qp, enum ibv_qp_state state);

void check_qp_destroy(check_qp_t *qp);

/** Read the next expected PSN by verbs and by DEVX. */
void check_qp_psn(const check_qp_t *qp, check_psn_t *psn);

/** @return That by which UCX's kind of queue pair is queried. */
uint32_t check_qp_psn_value(const check_psn_t *psn);

/** Write local memory at an offset to the other host's. @return 0 or errno. */
int check_qp_write(check_qp_t *qp, uint32_t local, uint32_t length,
                   uint32_t remote);

/** Poll until all requests have completed, or one has failed. @return 0; ETIMEDOUT;
 *  EIO. */
int check_qp_wait(check_qp_t *qp, double seconds);

/** Fill slots of local memory according to check_scan_t. */
void check_nic_fill(check_nic_t *nic, const check_scan_t *scan);

double check_now(void);

#endif
