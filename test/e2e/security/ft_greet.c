/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Uses rc_varuna's control protocol correctly, without rc_varuna (ft_ctl.h): checks the
 * answers of a process to a peer that has its address, and to one that has not. Started
 * by test/e2e/security/test_hostile.sh, with "ft: address" of the process on stdin.
 */
#include "ft_ctl_msg.h"
#include "ft_clock.h"

#include <stdio.h>
#include <string.h>

#define FT_VQP      7
#define FT_INSTANCE 1

static struct {
    uct_varuna_ctl_hdr_t hdr; /* Of the last answer; type 0: none yet */
    uint8_t              body[FT_CTL_MAX_MSG];
} ft_answer;

static uint64_t ft_forged_opening = 1;
static int ft_closing; /* A repeated CLOSE gets another answer */

static void ft_greet_received(void *arg, unsigned link, unsigned am_id,
                              const void *data, size_t length)
{
    const uct_varuna_ctl_hdr_t *hdr = data;

    if ((hdr->secret != ((const ft_ctl_t*)arg)->secret) ||
        (hdr->opening == ft_forged_opening)) {
        return; /* The answer to a forged message */
    }

    if ((hdr->type == UCT_VARUNA_CTL_CLOSE_REP) && !ft_closing) {
        return;
    }

    memcpy(&ft_answer, data, length);
    printf("ft: link %u type %u length %zu\n", link, ft_answer.hdr.type, length);
}

/* Repeat a message, as a requester does, until the answer arrives */
static void ft_ask(ft_ctl_t *ctl, ft_ctl_peer_t *peer, unsigned link,
                   ft_ctl_msg_t *msg, unsigned type)
{
    double end = ft_now() + 60, again = 0;

    memset(&ft_answer, 0, sizeof(ft_answer));
    while (ft_answer.hdr.type == 0) {
        if (ft_now() > end) {
            ft_die("no answer to type %u on link %u", ft_ctl_hdr(msg)->type, link);
        }

        if ((ft_now() > again) &&
            (ft_ctl_send(ctl, peer, link, msg) == UCS_OK)) {
            again = ft_now() + 1;
        }
        ft_ctl_progress(ctl);
    }

    if ((ft_answer.hdr.type != type) || (ft_answer.hdr.dest != ctl->uuid) ||
        (ft_answer.hdr.secret != ctl->secret) ||
        (ft_answer.hdr.magic != UCT_VARUNA_WIRE_MAGIC)) {
        ft_die("type %u was answered with type %u", ft_ctl_hdr(msg)->type,
               ft_answer.hdr.type);
    }
}

static void ft_ask_ping(ft_ctl_t *ctl, ft_ctl_peer_t *peer, unsigned link,
                        unsigned type)
{
    ft_ctl_msg_t msg;

    ft_ctl_ping(ctl, peer, link, 1, &msg);
    ft_ask(ctl, peer, link, &msg, type);
}

static void ft_ask_open(ft_ctl_t *ctl, ft_ctl_peer_t *peer, unsigned link,
                        ft_ctl_vqp_t *vqp)
{
    ft_ctl_msg_t msg;
    size_t length;

    ft_ctl_open_req(ctl, peer, link, vqp, &msg);
    ft_ask(ctl, peer, link, &msg, UCT_VARUNA_CTL_OPEN_REP);
    ft_ctl_opened(vqp, &ft_answer, &length);
}

static void ft_ask_fence(ft_ctl_t *ctl, ft_ctl_peer_t *peer, unsigned link,
                         const ft_ctl_vqp_t *vqp, unsigned type)
{
    uct_varuna_ctl_fence_req_t req = {
        .newest = 1, .round = 1, .am_acked = vqp->seq
    };
    ft_ctl_msg_t msg;

    ft_ctl_fence_req(ctl, peer, link, vqp, &req, &msg);
    ft_ask(ctl, peer, link, &msg, type);
}

static void ft_send(ft_ctl_t *ctl, ft_ctl_peer_t *peer, unsigned link,
                    const ft_ctl_msg_t *msg)
{
    while (ft_ctl_send(ctl, peer, link, msg) == UCS_ERR_NO_RESOURCE) {
        ft_ctl_progress(ctl);
    }
}

static void ft_close(ft_ctl_t *ctl, ft_ctl_peer_t *peer, unsigned link,
                     const ft_ctl_vqp_t *vqp)
{
    ft_ctl_msg_t msg;

    ft_ctl_close_vqp(ctl, peer, link, vqp, &msg);
    ft_closing = 1;
    ft_ask(ctl, peer, link, &msg, UCT_VARUNA_CTL_CLOSE_REP);
    ft_closing = 0;
}

/* Messages of an attacker that has the process's address and ours, and even our
 * opening, but not our secret; or that has the secret but not the opening. Prints how
 * many of them must be counted. */
static void ft_forge(ft_ctl_t *ctl, ft_ctl_peer_t *peer, unsigned link,
                     const ft_ctl_vqp_t *vqp)
{
    static unsigned count            = 0;
    uct_varuna_ctl_fence_req_t req   = {
        .newest = 9, .round = 1, .am_acked = vqp->seq + 9
    };
    uct_varuna_ctl_atomic_req_t amos = {.first = 1, .acked = 1, .count = 1};
    uct_varuna_ctl_atomic_op_t amo   = {.width = 8, .addr = 8};
    ft_ctl_vqp_t forged              = *vqp;
    uint64_t secret                  = ctl->secret;
    ft_ctl_msg_t msg;

    for (ctl->secret = ~secret; ; ctl->secret = secret) {
        forged.epoch = 9;
        ft_ctl_fence_req(ctl, peer, link, &forged, &req, &msg);
        ft_send(ctl, peer, link, &msg);
        ft_ctl_atomic_req(ctl, peer, link, &forged, &amos, &amo, &msg);
        ft_send(ctl, peer, link, &msg);
        ft_ctl_close_vqp(ctl, peer, link, &forged, &msg);
        ft_send(ctl, peer, link, &msg);
        count += 3;
        if (ctl->secret == secret) {
            break;
        }
        /* Opens another vQP instead of replacing ours */
        forged.instance += 1;
        ft_ctl_open_req(ctl, peer, link, &forged, &msg);
        ft_send(ctl, peer, link, &msg);
        forged.opening   ^= 1ul << 40;
        ft_forged_opening = forged.opening;
    }

    printf("ft: forged %u\n", count);
}

int main(void)
{
    static char text[8 * FT_ADDR_MAX];
    static ft_ctl_peer_t peer;
    static ft_ctl_t ctl;
    ft_address_t address;
    ft_ctl_vqp_t vqp, other;
    unsigned link;
    uint64_t uuid;

    setvbuf(stdout, NULL, _IOLBF, 0);
    ft_ctl_open(&ctl, ft_greet_received, &ctl);
    if ((fgets(text, sizeof(text), stdin) == NULL) ||
        (ft_uct_parse_address(text, &address) != 0) ||
        (ft_ctl_meet(&peer, &address) != 0)) {
        ft_die("there is no address");
    }

    uuid = peer.uuid;
    for (link = 0; link < ctl.num_links; ++link) {
        vqp = (ft_ctl_vqp_t){.id = FT_VQP, .instance = FT_INSTANCE};
        ft_ask_open(&ctl, &peer, link, &vqp);
        ft_ask_ping(&ctl, &peer, link, UCT_VARUNA_CTL_PONG);
        ft_forge(&ctl, &peer, link, &vqp);
        ft_ask_fence(&ctl, &peer, link, &vqp, UCT_VARUNA_CTL_FENCE_REP);
        other          = vqp;
        other.opening += 1;
        ft_ask_fence(&ctl, &peer, link, &other, UCT_VARUNA_CTL_REJECT);

        /* Another process */
        peer.uuid ^= 1;
        ft_ask_ping(&ctl, &peer, link, UCT_VARUNA_CTL_REJECT);
        peer.uuid = uuid;
        ft_close(&ctl, &peer, link, &vqp);
    }

    printf("ft: greeted on %u links\n", ctl.num_links);
    fflush(stdout);
    ft_ctl_close(&ctl, &peer, 1);
    return 0;
}
