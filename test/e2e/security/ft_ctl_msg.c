/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Whole messages of rc_varuna's control plane. See ft_ctl_msg.h.
 */
#include "ft_ctl_msg.h"

#include <uct/ib/varuna/core/varuna_held.h>
#include <uct/ib/varuna/core/extended/varuna_amo_sm.h>
#include <uct/ib/varuna/core/varuna_msg.h>

#include <string.h>

/* --- Requests --- */

void ft_ctl_begin_vqp(const ft_ctl_t *ctl, const ft_ctl_peer_t *peer, unsigned type,
                      const ft_ctl_vqp_t *vqp, uint32_t epoch, ft_ctl_msg_t *msg)
{
    ft_ctl_begin(ctl, peer, type, msg);
    ft_ctl_hdr(msg)->vqp     = vqp->id;
    ft_ctl_hdr(msg)->epoch   = epoch;
    ft_ctl_hdr(msg)->opening = vqp->opening;
}

void ft_ctl_open_req(const ft_ctl_t *ctl, const ft_ctl_peer_t *peer, unsigned link,
                     const ft_ctl_vqp_t *vqp, ft_ctl_msg_t *msg)
{
    uint8_t addr[FT_CTL_MAX_ADDR];
    uct_varuna_ctl_open_req_t req = {
        .addr_len = ft_ctl_pack_address(ctl, addr)
    };

    ft_ctl_begin_vqp(ctl, peer, UCT_VARUNA_CTL_OPEN_REQ, vqp, vqp->instance, msg);
    ft_ctl_hdr(msg)->opening = 0;
    ft_ctl_append(msg, &req, sizeof(req));
    ft_ctl_append(msg, addr, req.addr_len);
    ft_ctl_end(ctl, link, msg);
}

static void ft_ctl_append_rc(ft_ctl_msg_t *msg, const ft_ctl_rc_t *rc)
{
    uct_varuna_ctl_connect_t body = {
        .link       = rc->nic,
        .device_len = rc->device_len,
        .ep_len     = rc->ep_len
    };

    ft_ctl_append(msg, &body, sizeof(body));
    ft_ctl_append(msg, rc->device, rc->device_len);
    ft_ctl_append(msg, rc->ep, rc->ep_len);
}

void ft_ctl_connect_req(const ft_ctl_t *ctl, const ft_ctl_peer_t *peer,
                        unsigned link, const ft_ctl_vqp_t *vqp,
                        const ft_ctl_rc_t *rc, ft_ctl_msg_t *msg)
{
    ft_ctl_begin_vqp(ctl, peer, UCT_VARUNA_CTL_CONNECT_REQ, vqp, vqp->epoch, msg);
    ft_ctl_append_rc(msg, rc);
    ft_ctl_end(ctl, link, msg);
}

void ft_ctl_fence_req(const ft_ctl_t *ctl, const ft_ctl_peer_t *peer, unsigned link,
                      const ft_ctl_vqp_t *vqp,
                      const uct_varuna_ctl_fence_req_t *req, ft_ctl_msg_t *msg)
{
    ft_ctl_begin_vqp(ctl, peer, UCT_VARUNA_CTL_FENCE_REQ, vqp, vqp->epoch, msg);
    ft_ctl_append(msg, req, sizeof(*req));
    ft_ctl_end(ctl, link, msg);
}

void ft_ctl_atomic_fill(const ft_address_t *address, size_t offset,
                        uct_varuna_ctl_atomic_op_t *op)
{
    const uct_varuna_packed_rkey_t *rkey = (const void*)address->rkey;

    memset(op, 0, sizeof(*op));
    op->addr  = address->base + offset;
    op->token = rkey->token;
    op->op    = UCT_ATOMIC_OP_ADD;
    op->width = sizeof(uint64_t);
}

void ft_ctl_atomic_req(const ft_ctl_t *ctl, const ft_ctl_peer_t *peer, unsigned link,
                       const ft_ctl_vqp_t *vqp,
                       const uct_varuna_ctl_atomic_req_t *req,
                       const uct_varuna_ctl_atomic_op_t *ops, ft_ctl_msg_t *msg)
{
    ft_ctl_begin_vqp(ctl, peer, UCT_VARUNA_CTL_ATOMIC_REQ, vqp, 0, msg);
    ft_ctl_append(msg, req, sizeof(*req));
    ft_ctl_append(msg, ops, req->count * sizeof(*ops));
    ft_ctl_end(ctl, link, msg);
}

void ft_ctl_close_vqp(const ft_ctl_t *ctl, const ft_ctl_peer_t *peer, unsigned link,
                      const ft_ctl_vqp_t *vqp, ft_ctl_msg_t *msg)
{
    ft_ctl_begin_vqp(ctl, peer, UCT_VARUNA_CTL_CLOSE, vqp, vqp->instance, msg);
    ft_ctl_end(ctl, link, msg);
}

void ft_ctl_ping(const ft_ctl_t *ctl, const ft_ctl_peer_t *peer, unsigned link,
                 uint32_t number, ft_ctl_msg_t *msg)
{
    ft_ctl_begin(ctl, peer, UCT_VARUNA_CTL_PING, msg);
    ft_ctl_hdr(msg)->vqp   = link;
    ft_ctl_hdr(msg)->epoch = number;
    ft_ctl_end(ctl, link, msg);
}

const void *ft_ctl_opened(ft_ctl_vqp_t *vqp, const void *data, size_t *length_p)
{
    const uct_varuna_ctl_hdr_t *hdr      = data;
    const uct_varuna_ctl_open_rep_t *rep = (const void*)(hdr + 1);

    vqp->opening   = hdr->opening;
    vqp->target    = rep->target;
    vqp->epoch     = 1;
    vqp->seq       = uct_varuna_am_seq_first(hdr->opening);
    vqp->atomic    = 1;
    *length_p      = rep->addr_len;
    return UCS_PTR_BYTE_OFFSET(rep + 1, rep->rkey_len);
}


/* --- Answers --- */

size_t ft_ctl_pack_rkey(const ft_ctl_t *ctl, const uct_mem_h *memhs, void *buffer)
{
    uct_varuna_packed_rkey_t *rkey = buffer;
    uct_varuna_packed_key_t *key   = (void*)(rkey + 1);
    uint64_t inner;
    unsigned i;

    memset(rkey, 0, sizeof(*rkey));
    rkey->magic       = UCT_VARUNA_WIRE_MAGIC;
    rkey->version     = UCT_VARUNA_WIRE_VERSION;
    rkey->num_keys    = ctl->num_links;
    rkey->nic_map     = UCS_MASK(ctl->num_links);
    rkey->atomic_mode = UCT_VARUNA_ATOMIC_CPU;
    rkey->key_size    = sizeof(*key);
    for (i = 0; i < ctl->num_links; ++i, ++key) {
        if ((ctl->links[i].uct.md_attr.rkey_packed_size != sizeof(inner)) ||
            (uct_md_mkey_pack(ctl->links[i].uct.md, memhs[i], &inner) != UCS_OK)) {
            ft_die("a key can't be packed");
        }
        key->key        = inner;
        key->generation = 0;
    }

    return UCS_PTR_BYTE_DIFF(buffer, key);
}

void ft_ctl_reply(const ft_ctl_t *ctl, const ft_ctl_peer_t *peer, unsigned link,
                  const uct_varuna_ctl_hdr_t *req, unsigned type,
                  const void *body, size_t length, ft_ctl_msg_t *msg)
{
    ft_ctl_begin(ctl, peer, type, msg);
    ft_ctl_hdr(msg)->secret  = req->secret;
    ft_ctl_hdr(msg)->vqp     = req->vqp;
    ft_ctl_hdr(msg)->epoch   = req->epoch;
    ft_ctl_hdr(msg)->opening = req->opening;
    ft_ctl_append(msg, body, length);
    ft_ctl_end(ctl, link, msg);
}

void ft_ctl_open_rep(const ft_ctl_t *ctl, const ft_ctl_peer_t *peer, unsigned link,
                     const uct_varuna_ctl_hdr_t *req, uint64_t opening,
                     const void *log, const uct_mem_h *memhs, ft_ctl_msg_t *msg)
{
    uint8_t rkey[FT_ADDR_MAX], addr[FT_CTL_MAX_ADDR];
    uct_varuna_ctl_open_rep_t body = {
        .log_addr    = (uintptr_t)log,
        .target      = opening % UCT_VARUNA_TARGET_ID_MAX,
        .log_size    = UCT_VARUNA_LOG_SIZE,
        .log_count   = UCT_VARUNA_LOG_COUNT,
        .rkey_len    = ft_ctl_pack_rkey(ctl, memhs, rkey),
        .addr_len    = ft_ctl_pack_address(ctl, addr),
        .atomic_mode = UCT_VARUNA_ATOMIC_CPU
    };

    ft_ctl_reply(ctl, peer, link, req, UCT_VARUNA_CTL_OPEN_REP, &body,
                 sizeof(body), msg);
    ft_ctl_hdr(msg)->opening = opening;
    ft_ctl_append(msg, rkey, body.rkey_len);
    ft_ctl_append(msg, addr, body.addr_len);
    ft_ctl_end(ctl, link, msg);
}

void ft_ctl_connect_rep(const ft_ctl_t *ctl, const ft_ctl_peer_t *peer,
                        unsigned link, const uct_varuna_ctl_hdr_t *req,
                        const ft_ctl_rc_t *rc, ft_ctl_msg_t *msg)
{
    ft_ctl_reply(ctl, peer, link, req, UCT_VARUNA_CTL_CONNECT_REP, NULL, 0, msg);
    ft_ctl_append_rc(msg, rc);
    ft_ctl_end(ctl, link, msg);
}

void ft_ctl_fence_rep(const ft_ctl_t *ctl, const ft_ctl_peer_t *peer, unsigned link,
                      const uct_varuna_ctl_hdr_t *req, uint32_t epsn,
                      const void *log, ft_ctl_msg_t *msg)
{
    const uct_varuna_ctl_fence_req_t *asked = (const void*)(req + 1);
    uct_varuna_ctl_fence_rep_t body         = {
        .flags    = UCT_VARUNA_FENCE_FLAG_QP | UCT_VARUNA_FENCE_FLAG_PSN,
        .epsn     = epsn & UCS_MASK(24),
        .log_size = UCT_VARUNA_LOG_SIZE,
        .round    = asked->round
    };

    ft_ctl_reply(ctl, peer, link, req, UCT_VARUNA_CTL_FENCE_REP, &body,
                 sizeof(body), msg);
    ft_ctl_append(msg, log, UCT_VARUNA_LOG_SIZE * sizeof(uint64_t));
    ft_ctl_end(ctl, link, msg);
}

void ft_ctl_reject(const ft_ctl_t *ctl, const ft_ctl_peer_t *peer, unsigned link,
                   const uct_varuna_ctl_hdr_t *req, ucs_status_t status,
                   ft_ctl_msg_t *msg)
{
    uct_varuna_ctl_reject_t body = {
        .dest   = req->dest,
        .type   = req->type,
        .status = status
    };

    ft_ctl_reply(ctl, peer, link, req, UCT_VARUNA_CTL_REJECT, &body, sizeof(body),
                 msg);
}


/* --- Active messages --- */

int ft_ctl_meet_data(ft_ctl_peer_t *peer, const void *addr, size_t length)
{
    uct_varuna_parsed_addr_t parsed;
    const uct_varuna_parsed_link_t *link;
    const char *reason;
    unsigned i;

    if ((ft_ctl_meet_full(peer, addr, length) != 0) ||
        (uct_varuna_parse_addr(NULL, addr, length, &parsed, &reason) != UCS_OK)) {
        return -1;
    }

    for (i = 0; i < parsed.num_links; ++i) {
        link = &parsed.links[i];
        memcpy(peer->links[link->nic].addr, link->dc_addr, link->dc_len);
    }

    return 0;
}

void ft_ctl_data(ft_ctl_vqp_t *vqp, uint8_t am_id, ft_ctl_msg_t *msg)
{
    uct_varuna_am_hdr_t *hdr = (uct_varuna_am_hdr_t*)msg->data;

    hdr->seq    = vqp->seq++;
    hdr->target = (vqp->target << UCT_VARUNA_AM_ID_BITS) | am_id;
    msg->length = sizeof(*hdr);
}
