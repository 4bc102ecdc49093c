/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * An imitation of rc_varuna's control plane with only UCX: plain dc_mlx5 interfaces,
 * one for each link. It sends valid and invalid messages, built from varuna_wire.h, and
 * receives the answers. Whole messages: ft_ctl_msg.h. A second interface of each link is
 * the data lane that it announces: it receives messages, and nothing is sent from it.
 *
 *     ft_ctl_open(&ctl, func, arg);
 *     ft_ctl_meet(&peer, &address);               from "ft: address"
 *     ft_ctl_begin(&ctl, &peer, UCT_VARUNA_CTL_PING, &msg);
 *     ft_ctl_hdr(&msg)->epoch = 1;
 *     ft_ctl_end(&ctl, link, &msg);               length, then our address
 *     ft_ctl_send(&ctl, &peer, link, &msg);
 */
#ifndef FT_CTL_H_
#define FT_CTL_H_

#include "ft_uct.h"

#include <uct/ib/varuna/core/varuna_wire.h>

/* Longer than rc_varuna's messages: the maximum that its interfaces receive */
#define FT_CTL_MAX_MSG 8000

/* Maximum bytes of a full address */
#define FT_CTL_MAX_ADDR 600

typedef struct {
    size_t  length;
    uint8_t data[FT_CTL_MAX_MSG];
} ft_ctl_msg_t;

/* Called by ft_ctl_progress() for each received message. AM id DATA: the first 8 bytes
 * are uct_varuna_am_hdr_t. */
typedef void (*ft_ctl_received_func_t)(void *arg, unsigned link, unsigned am_id,
                                       const void *data, size_t length);

typedef struct ft_ctl ft_ctl_t;

/* The local end of a link */
typedef struct {
    ft_ctl_t *ctl;
    unsigned index;                            /* Also the NIC index */
    ft_uct_t uct;
    uint8_t  device[UCT_VARUNA_DEVICE_ADDR_MAX];
    uint8_t  addr[UCT_VARUNA_CTL_ADDR_MAX];    /* Of the control lane */
    ft_uct_t data_uct;                         /* A data lane; device as above */
    uint8_t  data_addr[UCT_VARUNA_CTL_ADDR_MAX];
} ft_ctl_link_t;

struct ft_ctl {
    ft_ctl_received_func_t func;
    void                   *arg;
    uint64_t               uuid;               /* Ours */
    uint64_t               secret;             /* Ours for all peers */
    unsigned               num_links;
    ft_ctl_link_t          links[UCT_VARUNA_MAX_LINKS];
    uint64_t               sent, failed;       /* Messages, endpoints */
    struct ft_ctl_peer     *peers;             /* Peers with an endpoint */
};

/* The address of a process on the link of a NIC index */
typedef struct ft_ctl_peer {
    struct ft_ctl_peer *next;                  /* In ctl->peers */
    int                is_known;               /* The process has this link */
    uint64_t uuid;
    unsigned link_map;
    struct {
        uint8_t  device[FT_ADDR_MAX];
        uint8_t  addr[FT_ADDR_MAX];
        uct_ep_h ep;                           /* Created by the first message */
    } links[UCT_VARUNA_MAX_LINKS];
} ft_ctl_peer_t;

/** Open all links. @a func is called with @a arg for received messages. */
void ft_ctl_open(ft_ctl_t *ctl, ft_ctl_received_func_t func, void *arg);

/** Close all links, and destroy the endpoints of all peers before. */
void ft_ctl_close(ft_ctl_t *ctl, ft_ctl_peer_t *peers, unsigned num_peers);

/** @return Number of events. */
unsigned ft_ctl_progress(ft_ctl_t *ctl);

/** Learn a process from the address that it publishes. @return 0, or -1. */
int ft_ctl_meet(ft_ctl_peer_t *peer, const ft_address_t *address);

/** The same from a full address, as messages carry it. */
int ft_ctl_meet_full(ft_ctl_peer_t *peer, const void *addr, size_t length);

/** Write our full address, for OPEN_REQ and OPEN_REP. @return Its length. */
size_t ft_ctl_pack_address(const ft_ctl_t *ctl, void *buffer);

/** Write the short address, for a process that calls uct_ep_create(); the device
 *  address is link 0's. @return Its length. */
size_t ft_ctl_pack_short_address(const ft_ctl_t *ctl, void *buffer);

/** Start a message to @a peer: its header with an empty body. */
void ft_ctl_begin(const ft_ctl_t *ctl, const ft_ctl_peer_t *peer, unsigned type,
                  ft_ctl_msg_t *msg);

static inline uct_varuna_ctl_hdr_t *ft_ctl_hdr(ft_ctl_msg_t *msg)
{
    return (uct_varuna_ctl_hdr_t*)msg->data;
}

/** Append to the body. */
void ft_ctl_append(ft_ctl_msg_t *msg, const void *data, size_t length);

/** Set the length of the body, and append the address on @a link if messages of this
 *  type contain it. */
void ft_ctl_end(const ft_ctl_t *ctl, unsigned link, ft_ctl_msg_t *msg);

/**
 * Post a message with any contents.
 *
 * @return UCS_ERR_NO_RESOURCE: try again after some progress; another error: it cannot
 * be
 *         sent over this link.
 */
ucs_status_t ft_ctl_send(ft_ctl_t *ctl, ft_ctl_peer_t *peer, unsigned link,
                         const ft_ctl_msg_t *msg);

/** The same for any AM id. */
ucs_status_t ft_ctl_send_am(ft_ctl_t *ctl, ft_ctl_peer_t *peer, unsigned link,
                            unsigned am_id, const void *data, size_t length);

#endif
