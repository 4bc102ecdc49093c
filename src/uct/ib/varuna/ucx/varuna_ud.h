/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The bus of NICs without DC: an interface of UCT that sends control messages as
 * datagrams of one UD queue pair. UCX's ud_verbs makes connections of its own, repeats
 * what was lost silently for 30 s, and remembers each process that ever wrote to it;
 * control messages are repeated by whoever asks (varuna_retry.h), so nothing is kept
 * here but what is on its way to the NIC.
 */
#ifndef UCT_VARUNA_UD_H_
#define UCT_VARUNA_UD_H_

#include <uct/api/uct.h>
#include <uct/ib/varuna/core/varuna_frag.h>
#include <infiniband/verbs.h>
#include <ucs/type/status.h>
#include <stddef.h>
#include <stdint.h>

/**
 * Open the bus of a link.
 *
 * @param [in]  data     Inner interface of a data lane on the same port, which stays open
 *                       for longer: its address, service level and partition are used.
 * @param [in]  worker   Its progress calls ours.
 * @param [in]  params   As for uct_iface_open().
 * @param [out] iface_p  To be closed by uct_iface_close().
 */
ucs_status_t uct_varuna_ud_open(uct_iface_h data, uct_worker_h worker,
                                const uct_iface_params_t *params,
                                uct_iface_h *iface_p);

/** @return Whether all datagrams of an endpoint have left. */
int uct_varuna_ud_is_drained(uct_ep_h ep, unsigned kind);

/** Its queue cannot be looked at without the lock of its worker. @return 1 */
int uct_varuna_ud_has_input(uct_iface_h iface);

/* --- Address handles --- */

/* What a thread needs to create one */
typedef struct uct_varuna_ah {
    struct ibv_pd              *pd;
    struct ibv_ah_attr         attr;
} uct_varuna_ah_t;

/**
 * Prepare an address handle for another port.
 *
 * @param [in]  iface  An interface of ib, whose memory domain stays open for longer.
 * @param [in]  addr   The port's address, which was checked.
 */
void uct_varuna_ah_init(uct_varuna_ah_t *ah, uct_iface_h iface,
                        const uct_device_addr_t *addr);

/**
 * Create it once. On Ethernet the system asks the other host for its MAC address, which may
 * take a second, and remembers that: the next handle for this port takes no time. Any thread.
 *
 * @return UCS_ERR_UNREACHABLE if the other host does not answer, UCS_ERR_NO_MEMORY if the NIC
 *         has no handle.
 */
ucs_status_t uct_varuna_ah_try(const uct_varuna_ah_t *ah);

/* --- The queue pair --- */

/* The UD queue pair of a bus, with its buffers. The lock of the control
 * plane protects it. varuna_ud.c creates it, varuna_ud_msg.c starts it, also after a
 * failure, and varuna_ud_msg.c sends and receives. */

/* Messages on their way to the NIC, messages that wait to be polled, and at most so many
 * datagrams of these */
#define UCT_VARUNA_UD_NUM_SENDS      64
#define UCT_VARUNA_UD_NUM_RECVS      256
#define UCT_VARUNA_UD_MAX_RECVS      1024

/* Completions that are polled at once */
#define UCT_VARUNA_UD_MAX_POLL       16

/* Work requests of receives; those of sends are numbers of messages */
#define UCT_VARUNA_UD_RECV           UCS_BIT(63)

struct uct_ib_iface;

/* Where datagrams go */
typedef struct uct_varuna_ud_addr {
    uint8_t                    qp_num[3];
    uint8_t                    qkey[4];    /* The same of all queue pairs of a process,
                                              random: a stray datagram does not match */
} UCS_S_PACKED uct_varuna_ud_addr_t;

/* One destination. Its messages have a name and numbers of their own, so a receiver cannot
 * guess those of others' messages. */
typedef struct uct_varuna_ud_dest {
    struct ibv_ah              *ah;
    uct_varuna_ud_addr_t       addr;
    size_t                     room;       /* In each datagram */
    uint64_t                   sender;     /* Random */
    uint32_t                   number;     /* Of the next message: no two have the same,
                                              whatever became of them */
    uint32_t                   last;       /* Of the queue pair's messages, the newest one
                                              that goes there, plus 1 */
} uct_varuna_ud_dest_t;

typedef struct uct_varuna_ud_send {
    uct_varuna_frag_hdr_t      hdrs[UCT_VARUNA_FRAG_MAX];
    char                       data[UCT_VARUNA_FRAG_MAX_LENGTH];
} uct_varuna_ud_send_t;

typedef struct uct_varuna_ud_qp {
    struct ibv_qp              *qp;
    struct ibv_cq              *cq;        /* Of both directions */
    struct ibv_comp_channel    *channel;
    struct ibv_mr              *mr;        /* Of all buffers */
    uct_varuna_ud_send_t       *sends;
    char                       *recvs;
    size_t                     recv_size;
    unsigned                   num_recvs;
    size_t                     room;       /* For parts of messages, in a datagram of the
                                              port's MTU */
    uint32_t                   qkey;       /* The same of all of this process */
    uint16_t                   pkey_index;
    uint8_t                    port_num;
    uint8_t                    has_failed; /* A send has, and nothing was sent since then */
    uint32_t                   posted;     /* Messages, whole or in part, */
    uint32_t                   completed;  /* of which these have left */
    uint8_t                    left[UCT_VARUNA_UD_NUM_SENDS]; /* Fragments in each buffer
                                              that the NIC has still to send */
    unsigned                   num_frags;  /* In the send queue, */
    unsigned                   max_frags;  /* which has room for so many */
    uct_varuna_ud_addr_t       addr;       /* Ours */
    uct_varuna_frags_t         frags;
} uct_varuna_ud_qp_t;

/* A message has come */
typedef void (*uct_varuna_ud_received_t)(void *arg, uint8_t am_id, void *msg,
                                         size_t length);

/** @return A buffer for the next message, NULL if all are in use. */
uct_varuna_ud_send_t *uct_varuna_ud_qp_get(uct_varuna_ud_qp_t *qp);

/**
 * Post the message in the buffer that uct_varuna_ud_qp_get() has just returned. If the NIC
 * takes a part of its fragments only, the buffer is in use until these have left, and the
 * receiver drops them.
 *
 * @return UCS_ERR_NO_RESOURCE if the send queue has no room for all fragments: progress
 *         makes room.
 */
ucs_status_t uct_varuna_ud_qp_post(uct_varuna_ud_qp_t *qp, uct_varuna_ud_send_t *send,
                                   uct_varuna_ud_dest_t *dest, uint8_t am_id,
                                   size_t length);

/** Poll. @return Number of completions. */
unsigned uct_varuna_ud_qp_progress(uct_varuna_ud_qp_t *qp,
                                   uct_varuna_ud_received_t received, void *arg);

/** Have the queue pair send and receive: after it was created, or after RESET. */
ucs_status_t uct_varuna_ud_qp_start(uct_varuna_ud_qp_t *qp);

/** Take the events that were raised; with @a again, ask for another one.
 *  @return UCS_ERR_BUSY if there were some. */
ucs_status_t uct_varuna_ud_qp_arm(uct_varuna_ud_qp_t *qp, int again);

#endif
