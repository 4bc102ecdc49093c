/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * This host's ports, and queue pairs on them, through libibverbs and mlx5dv.
 */
#ifndef CHECK_NIC_H_
#define CHECK_NIC_H_

#include "check_proto.h"

#include <infiniband/verbs.h>

#define CHECK_SQ_LEN 256 /* Work requests of a queue pair */


typedef struct check_nic {
    struct ibv_context     *context;
    struct ibv_device_attr attr;
    struct ibv_port_attr   port_attr;
    check_wire_port_t      wire;
    uint8_t                port;
    uint8_t                gid_index;
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

/** A queue pair with its completion queue. */
typedef struct check_qp {
    check_nic_t    *nic;
    struct ibv_cq  *cq;
    struct ibv_srq *srq;
    struct ibv_qp  *qp;
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

/** Create a queue pair in state INIT, with a shared receive queue if @a with_srq.
 *  @return 0 or errno. */
int check_qp_create(check_nic_t *nic, int with_srq, check_qp_t *qp);

/** Connect it. @return 0 or errno. */
int check_qp_connect(check_qp_t *qp, const check_wire_port_t *peer, uint32_t qpn,
                     uint32_t psn);

/** @return 0 or errno. */
int check_qp_modify(check_qp_t *qp, enum ibv_qp_state state);

void check_qp_destroy(check_qp_t *qp);

/** Read the next expected PSN by verbs and by DEVX. */
void check_qp_psn(const check_qp_t *qp, check_psn_t *psn);

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
