/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Whole messages of rc_varuna's control plane, as a correct peer sends them. Only these
 * files and ft_ctl.c know their layout.
 *
 *     ft_ctl_open_req(&ctl, &peer, link, &vqp, &msg);
 *     ft_ctl_send(&ctl, &peer, link, &msg);
 *     ...                                         the answer is an OPEN_REP
 *     ft_ctl_opened(&vqp, data, length);
 */
#ifndef FT_CTL_MSG_H_
#define FT_CTL_MSG_H_

#include "ft_ctl.h"

/* A vQP to a process that answers */
typedef struct {
    uint32_t id;
    uint32_t instance;
    uint32_t epoch;    /* Epoch of the next message */
    uint64_t opening;  /* 0: not open */
    uint32_t target;   /* In the header of active messages */
    uint32_t seq;      /* Number of the next active message */
    uint64_t atomic;   /* Number of the next atomic */
} ft_ctl_vqp_t;

/* The local address of a vQP, in CONNECT_REQ and CONNECT_REP */
typedef struct {
    uint8_t  nic;      /* The responder's */
    unsigned device_len;
    unsigned ep_len;
    uint8_t  device[UCT_VARUNA_DEVICE_ADDR_MAX];
    uint8_t  ep[FT_ADDR_MAX];
} ft_ctl_rc_t;

/** As ft_ctl_begin(), about a vQP. */
void ft_ctl_begin_vqp(const ft_ctl_t *ctl, const ft_ctl_peer_t *peer, unsigned type,
                      const ft_ctl_vqp_t *vqp, uint32_t epoch, ft_ctl_msg_t *msg);

/* Complete requests, ready to be sent */

void ft_ctl_open_req(const ft_ctl_t *ctl, const ft_ctl_peer_t *peer, unsigned link,
                     const ft_ctl_vqp_t *vqp, ft_ctl_msg_t *msg);

void ft_ctl_connect_req(const ft_ctl_t *ctl, const ft_ctl_peer_t *peer,
                        unsigned link, const ft_ctl_vqp_t *vqp,
                        const ft_ctl_rc_t *rc, ft_ctl_msg_t *msg);

void ft_ctl_fence_req(const ft_ctl_t *ctl, const ft_ctl_peer_t *peer, unsigned link,
                      const ft_ctl_vqp_t *vqp,
                      const uct_varuna_ctl_fence_req_t *req, ft_ctl_msg_t *msg);

/** An atomic on a word of the memory that @a address describes; the caller sets the
 *  operands. */
void ft_ctl_atomic_fill(const ft_address_t *address, size_t offset,
                        uct_varuna_ctl_atomic_op_t *op);

/** @a req->count of them in one message. */
void ft_ctl_atomic_req(const ft_ctl_t *ctl, const ft_ctl_peer_t *peer, unsigned link,
                       const ft_ctl_vqp_t *vqp,
                       const uct_varuna_ctl_atomic_req_t *req,
                       const uct_varuna_ctl_atomic_op_t *ops, ft_ctl_msg_t *msg);

void ft_ctl_close_vqp(const ft_ctl_t *ctl, const ft_ctl_peer_t *peer, unsigned link,
                      const ft_ctl_vqp_t *vqp, ft_ctl_msg_t *msg);

void ft_ctl_ping(const ft_ctl_t *ctl, const ft_ctl_peer_t *peer, unsigned link,
                 uint32_t number, ft_ctl_msg_t *msg);

/** Store the contents of an OPEN_REP that passes uct_varuna_parse_ctl(). @return Its
 *  full address, and the length. */
const void *ft_ctl_opened(ft_ctl_vqp_t *vqp, const void *data, size_t *length_p);

/**
 * The packed key of memory that is registered on all links. @a memhs has one handle for
 * each of them. @return Its length.
 */
size_t ft_ctl_pack_rkey(const ft_ctl_t *ctl, const uct_mem_h *memhs, void *buffer);

/* Complete answers to the request @a req, ready to be sent. Other answers have a body
 * of one structure. */

void ft_ctl_reply(const ft_ctl_t *ctl, const ft_ctl_peer_t *peer, unsigned link,
                  const uct_varuna_ctl_hdr_t *req, unsigned type,
                  const void *body, size_t length, ft_ctl_msg_t *msg);

/** @a log has room for the rings of a target. */
void ft_ctl_open_rep(const ft_ctl_t *ctl, const ft_ctl_peer_t *peer, unsigned link,
                     const uct_varuna_ctl_hdr_t *req, uint64_t opening,
                     const void *log, const uct_mem_h *memhs, ft_ctl_msg_t *msg);

void ft_ctl_connect_rep(const ft_ctl_t *ctl, const ft_ctl_peer_t *peer,
                        unsigned link, const uct_varuna_ctl_hdr_t *req,
                        const ft_ctl_rc_t *rc, ft_ctl_msg_t *msg);

void ft_ctl_fence_rep(const ft_ctl_t *ctl, const ft_ctl_peer_t *peer, unsigned link,
                      const uct_varuna_ctl_hdr_t *req, uint32_t epsn,
                      const void *log, ft_ctl_msg_t *msg);

void ft_ctl_reject(const ft_ctl_t *ctl, const ft_ctl_peer_t *peer, unsigned link,
                   const uct_varuna_ctl_hdr_t *req, ucs_status_t status,
                   ft_ctl_msg_t *msg);

/* Active messages on the data lane */

/** Get the data lanes of a process from its full address. @return 0, or -1. */
int ft_ctl_meet_data(ft_ctl_peer_t *peer, const void *addr, size_t length);

/** The next message of @a vqp: its header with an empty payload. */
void ft_ctl_data(ft_ctl_vqp_t *vqp, uint8_t am_id, ft_ctl_msg_t *msg);

#endif
