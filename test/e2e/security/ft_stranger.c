/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Sends messages to a process that no peer would send, with plain UCX (ft_ctl.h).
 * Started by test/e2e/security/test_hostile.sh, with "ft: address" of the process on
 * stdin:
 *
 *     ft_stranger lies      addresses that UCX must not see, in all messages
 *     ft_stranger flood N   N messages for another process, each from another port
 *     ft_stranger guests N  opens endpoints under N names; prints how many succeed
 *     ft_stranger vqps N    the same under one name
 *     ft_stranger hold N M  under N names, opens a vQP and sends M messages after one
 *                           that is missing; until a vQP is refused
 *     ft_stranger unused    opens an endpoint without using it; its peer sends two
 *                           unsolicited OPEN_REPs, and it closes
 *     ft_stranger old       a message of the previous wire version
 *     ft_stranger host      prints its address, and answers the request to
 *                           open an endpoint with lies, and the next one correctly
 */
#include "ft_ctl_msg.h"
#include "ft_clock.h"

#include <uct/ib/base/ib_iface.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    unsigned rejects, opened, connects, pongs, others, newer;
    uint32_t wanted;             /* The vQP of the request */
    int      is_opening;         /* ... which may be refused */
    int      status;             /* Of the last CONNECT_REP */
    size_t   length;             /* Of the last OPEN_REQ or OPEN_REP */
    uint8_t  data[FT_CTL_MAX_MSG];
} ft_got;

static void ft_received(void *arg, unsigned link, unsigned am_id, const void *data,
                        size_t length)
{
    const uct_varuna_ctl_hdr_t *hdr     = data;
    const uct_varuna_ctl_connect_t *con = (const void*)(hdr + 1);

    if (((hdr->type == UCT_VARUNA_CTL_OPEN_REP) ||
         (hdr->type == UCT_VARUNA_CTL_CONNECT_REP) ||
         ((hdr->type == UCT_VARUNA_CTL_REJECT) && ft_got.is_opening)) &&
        (hdr->vqp != ft_got.wanted)) {
        return; /* A repeated request gets another answer */
    }

    ft_got.newer += (hdr->version == UCT_VARUNA_WIRE_VERSION);
    switch (hdr->type) {
    case UCT_VARUNA_CTL_OPEN_REQ:
    case UCT_VARUNA_CTL_OPEN_REP:
        ++ft_got.opened;
        ft_got.length = length;
        memcpy(ft_got.data, data, length);
        break;
    case UCT_VARUNA_CTL_CONNECT_REP:
        ++ft_got.connects;
        ft_got.status = con->status;
        break;
    case UCT_VARUNA_CTL_REJECT:
        ++ft_got.rejects;
        break;
    case UCT_VARUNA_CTL_PONG:
        ++ft_got.pongs;
        break;
    default:
        ++ft_got.others;
        break;
    }
}

static void ft_send(ft_ctl_t *ctl, ft_ctl_peer_t *peer, unsigned link,
                    const ft_ctl_msg_t *msg)
{
    while (ft_ctl_send(ctl, peer, link, msg) == UCS_ERR_NO_RESOURCE) {
        ft_ctl_progress(ctl);
    }
}

/* Repeat a message until it is answered, which increments a counter */
static void ft_ask(ft_ctl_t *ctl, ft_ctl_peer_t *peer, unsigned link,
                   const ft_ctl_msg_t *msg, const unsigned *counter)
{
    unsigned before = *counter;
    double end      = ft_now() + 60, again = 0;

    while (*counter == before) {
        if (ft_now() > end) {
            ft_die("no answer to type %u", ((uct_varuna_ctl_hdr_t*)msg->data)->type);
        }
        if (ft_now() > again) {
            ft_send(ctl, peer, link, msg);
            again = ft_now() + 0.2;
        }
        ft_ctl_progress(ctl);
    }
}

static void ft_open(ft_ctl_t *ctl, ft_ctl_peer_t *peer, unsigned link,
                    ft_ctl_vqp_t *vqp)
{
    ft_ctl_msg_t msg;
    size_t length;

    ft_got.wanted = vqp->id;
    ft_ctl_open_req(ctl, peer, link, vqp, &msg);
    ft_ask(ctl, peer, link, &msg, &ft_got.opened);
    ft_ctl_opened(vqp, ft_got.data, &length);
}

/* The process works for peers that have its address */
static void ft_check(ft_ctl_t *ctl, ft_ctl_peer_t *peer)
{
    ft_ctl_vqp_t vqp = {.id = 1000, .instance = 1};
    ft_ctl_msg_t msg;
    unsigned link;

    for (link = 0; link < ctl->num_links; ++link, ++vqp.id) {
        ft_open(ctl, peer, link, &vqp);
        ft_ctl_ping(ctl, peer, link, 1, &msg);
        ft_ask(ctl, peer, link, &msg, &ft_got.pongs);
        ft_ctl_close_vqp(ctl, peer, link, &vqp, &msg);
        ft_send(ctl, peer, link, &msg);
    }
}


/* --- Addresses --- */

#define FT_IB(_flags) (_flags), 5, 0 /* LID 5 */

static const struct {
    const char *name;
    size_t     length;
    uint8_t    bytes[UCT_VARUNA_DEVICE_ADDR_MAX];
} ft_lies[] = {
    {"two subnets", 13, {FT_IB(UCT_IB_ADDRESS_FLAG_SUBNET16 |
                               UCT_IB_ADDRESS_FLAG_SUBNET64)}},
    {"MTU 0", 4, {FT_IB(UCT_IB_ADDRESS_FLAG_PATH_MTU), 0}},
    {"MTU 77", 4, {FT_IB(UCT_IB_ADDRESS_FLAG_PATH_MTU), 77}},
    {"no GID index", 4, {FT_IB(UCT_IB_ADDRESS_FLAG_GID_INDEX), 255}},
    {"a GID index", 4, {FT_IB(UCT_IB_ADDRESS_FLAG_GID_INDEX), 1}},
    {"RoCE without interface id", 17, {UCT_IB_ADDRESS_FLAG_LINK_LAYER_ETH,
                                       0xfe, 0x80}},
    {"RoCE", 17, {UCT_IB_ADDRESS_FLAG_LINK_LAYER_ETH, 0xfe, 0x80, [16] = 1}},
    {"no LID", 3, {0}},
    {"multicast LID", 3, {0, 1, 0xc0}},
    {"no interface id", 11, {FT_IB(UCT_IB_ADDRESS_FLAG_IF_ID)}},
    {"unknown flag", 3, {FT_IB(0x80)}},
    {"too short", 1, {0}},
    {"too long", 20, {FT_IB(0)}},
    {"longest", UCT_VARUNA_DEVICE_ADDR_MAX, {0xff}}
};

/* As ft_ctl_end(), with another address */
static void ft_end_from(const ft_ctl_t *ctl, const void *device, size_t device_len,
                        ft_ctl_msg_t *msg)
{
    uct_varuna_ctl_hdr_t *hdr = ft_ctl_hdr(msg);
    const ft_ctl_link_t *own  = &ctl->links[0];

    hdr->length          = msg->length - sizeof(*hdr);
    hdr->from_device_len = device_len;
    hdr->from_ctl_len    = own->uct.attr.iface_addr_len;
    hdr->from_nic        = 0;
    ft_ctl_append(msg, device, device_len);
    ft_ctl_append(msg, own->addr, hdr->from_ctl_len);
}

static void ft_lie_open(ft_ctl_t *ctl, ft_ctl_peer_t *peer, unsigned link,
                        unsigned lie)
{
    struct {
        uct_varuna_ctl_open_req_t req;
        uct_varuna_addr_t         addr;
        uct_varuna_addr_link_t    entry;
    } UCS_S_PACKED body = {
        .addr  = {.magic     = UCT_VARUNA_WIRE_MAGIC,
                  .version   = UCT_VARUNA_WIRE_VERSION,
                  .num_links = 1,
                  .uuid      = ctl->uuid},
        .entry = {.index      = link,
                  .device_len = ft_lies[lie].length,
                  .dc_len     = ctl->links[0].uct.attr.iface_addr_len,
                  .ctl_len    = ctl->links[0].uct.attr.iface_addr_len}
    };
    ft_ctl_msg_t msg;

    body.req.addr_len = sizeof(body) - sizeof(body.req) + body.entry.device_len +
                        body.entry.dc_len + body.entry.ctl_len;
    ft_ctl_begin(ctl, peer, UCT_VARUNA_CTL_OPEN_REQ, &msg);
    ft_ctl_hdr(&msg)->vqp   = 2000 + lie;
    ft_ctl_hdr(&msg)->epoch = 1;
    ft_ctl_append(&msg, &body, sizeof(body));
    ft_ctl_append(&msg, ft_lies[lie].bytes, ft_lies[lie].length);
    ft_ctl_append(&msg, ctl->links[0].addr, body.entry.dc_len);
    ft_ctl_append(&msg, ctl->links[0].addr, body.entry.ctl_len);
    ft_ctl_end(ctl, link, &msg);
    ft_send(ctl, peer, link, &msg);
}

static void ft_lie(ft_ctl_t *ctl, ft_ctl_peer_t *peer, unsigned link, unsigned lie)
{
    uct_varuna_ctl_fence_req_t req = {.newest = 1};
    ft_ctl_vqp_t vqp               = {.id = lie, .instance = 1};
    ft_ctl_rc_t rc                 = {.nic = link, .ep_len = 7};
    uint64_t uuid                  = peer->uuid;
    unsigned type;
    ft_ctl_msg_t msg;

    /* For another process, and then for this one */
    for (peer->uuid = ~uuid; ; peer->uuid = uuid) {
        for (type = UCT_VARUNA_CTL_FENCE_REQ; type <= UCT_VARUNA_CTL_PING;
             type += UCT_VARUNA_CTL_PING - UCT_VARUNA_CTL_FENCE_REQ) {
            ft_ctl_begin(ctl, peer, type, &msg);
            ft_ctl_hdr(&msg)->vqp   = 3000;
            ft_ctl_hdr(&msg)->epoch = 1;
            if (type == UCT_VARUNA_CTL_FENCE_REQ) {
                ft_ctl_append(&msg, &req, sizeof(req));
            }
            ft_end_from(ctl, ft_lies[lie].bytes, ft_lies[lie].length, &msg);
            ft_send(ctl, peer, link, &msg);
        }

        ft_lie_open(ctl, peer, link, lie);
        if (peer->uuid == uuid) {
            break;
        }
    }

    ft_open(ctl, peer, link, &vqp);
    rc.device_len = ft_lies[lie].length;
    memcpy(rc.device, ft_lies[lie].bytes, rc.device_len);
    ft_ctl_connect_req(ctl, peer, link, &vqp, &rc, &msg);
    ft_ask(ctl, peer, link, &msg, &ft_got.connects);
    if (ft_got.status == 0) {
        ft_die("connected to \"%s\"", ft_lies[lie].name);
    }

    ft_ctl_close_vqp(ctl, peer, link, &vqp, &msg);
    ft_send(ctl, peer, link, &msg);
    printf("ft: refused %s\n", ft_lies[lie].name);
}

static void ft_lies_all(ft_ctl_t *ctl, ft_ctl_peer_t *peer)
{
    unsigned lie;

    for (lie = 0; lie < sizeof(ft_lies) / sizeof(ft_lies[0]); ++lie) {
        ft_lie(ctl, peer, lie % ctl->num_links, lie);
    }
}


/* --- Many --- */

static void ft_flood(ft_ctl_t *ctl, ft_ctl_peer_t *peer, unsigned count)
{
    ft_ctl_peer_t wrong = *peer;
    uint8_t device[UCT_VARUNA_DEVICE_ADDR_MAX];
    size_t length       = ctl->links[0].uct.attr.device_addr_len;
    ft_ctl_msg_t msg;
    unsigned i;

    wrong.uuid = ~peer->uuid;
    memcpy(device, ctl->links[0].device, length);
    for (i = 0; i < count; ++i) {
        device[1] = (i + 100) & 0xff; /* LIDs that no port has */
        device[2] = (i + 100) >> 8;
        ft_ctl_begin(ctl, &wrong, UCT_VARUNA_CTL_PING, &msg);
        ft_ctl_hdr(&msg)->epoch = 1;
        ft_end_from(ctl, device, length, &msg);
        ft_send(ctl, &wrong, i % ctl->num_links, &msg);
        ft_ctl_progress(ctl);
    }
    memcpy(peer->links, wrong.links, sizeof(peer->links));
}

static void ft_guests(ft_ctl_t *ctl, ft_ctl_peer_t *peer, unsigned count,
                      int is_one)
{
    ft_ctl_vqp_t vqp = {.id = 0, .instance = 1};
    unsigned opened  = 0;
    unsigned refused = 0;
    double again     = 0;
    ft_ctl_msg_t msg;
    unsigned i;

    ft_got.is_opening = 1;
    for (i = 0; i < count; ++i) {
        ctl->uuid    += !is_one;
        ctl->secret  += !is_one;
        ft_got.wanted  = ++vqp.id;
        ft_ctl_open_req(ctl, peer, 0, &vqp, &msg);
        ft_got.opened  = 0;
        ft_got.rejects = 0;
        for (again = 0; (ft_got.opened + ft_got.rejects) == 0; ) {
            if (ft_now() > again) {
                ft_send(ctl, peer, 0, &msg);
                again = ft_now() + 0.5;
            }
            ft_ctl_progress(ctl);
        }
        /* A repeated request has several answers */
        opened  += (ft_got.opened > 0);
        refused += (ft_got.rejects > 0);
    }
    ft_got.is_opening = 0;
    printf("ft: opened %u refused %u\n", opened, refused);
}

/* Send messages from the second one on; the first one is missing */
static void ft_hold_send(ft_ctl_t *ctl, ft_ctl_peer_t *data, ft_ctl_vqp_t *vqp,
                         unsigned count)
{
    ft_ctl_msg_t msg;
    ucs_status_t status;

    for (++vqp->seq; count > 0; --count) {
        ft_ctl_data(vqp, 0, &msg);
        while ((status = ft_ctl_send_am(ctl, data, 0, UCT_VARUNA_AM_ID_DATA,
                                        msg.data, msg.length)) ==
               UCS_ERR_NO_RESOURCE) {
            ft_ctl_progress(ctl);
        }
        if (status != UCS_OK) {
            ft_die("message: %s", ucs_status_string(status));
        }
    }
}

/* UCX asserts that nothing is in flight when it closes an interface */
static void ft_hold_leave(ft_ctl_t *ctl, ft_ctl_peer_t *data)
{
    uct_ep_h ep = data->links[0].ep;

    while (uct_ep_flush(ep, 0, NULL) != UCS_OK) {
        ft_ctl_progress(ctl);
    }
    uct_ep_destroy(ep);
    data->links[0].ep = NULL;
}

static void ft_hold(ft_ctl_t *ctl, ft_ctl_peer_t *peer, unsigned names,
                    unsigned count)
{
    static ft_ctl_peer_t data;
    ft_ctl_vqp_t vqps[8] = {{.id = 0}};
    uint64_t uuid        = ctl->uuid;
    double end;
    ft_ctl_msg_t msg;
    const void *addr;
    size_t length;
    unsigned i;

    for (i = 0; (i < names) && (i < ucs_static_array_size(vqps)); ++i) {
        ctl->uuid        = uuid + i;
        vqps[i].id       = i + 1;
        vqps[i].instance = 1;
        ft_got.wanted    = vqps[i].id;
        ft_ctl_open_req(ctl, peer, 0, &vqps[i], &msg);
        ft_ask(ctl, peer, 0, &msg, &ft_got.opened);
        addr = ft_ctl_opened(&vqps[i], ft_got.data, &length);
        if ((data.link_map == 0) && (ft_ctl_meet_data(&data, addr, length) != 0)) {
            ft_die("there is no data lane");
        }
        ft_hold_send(ctl, &data, &vqps[i], count);
    }

    end = ft_now() + 60;
    while ((ft_got.rejects == 0) && (ft_now() < end)) {
        ft_ctl_progress(ctl);
    }

    printf("ft: held under %u names, %srefused\n", i, ft_got.rejects ? "" : "not ");
    while (i-- > 0) {
        ctl->uuid = uuid + i;
        ft_ctl_close_vqp(ctl, peer, 0, &vqps[i], &msg);
        ft_send(ctl, peer, 0, &msg);
    }
    ctl->uuid = uuid;
    ft_hold_leave(ctl, &data);
}

/* As if the answers were lost: the peer must keep what it has opened */
static void ft_unused(ft_ctl_t *ctl, ft_ctl_peer_t *peer)
{
    ft_ctl_vqp_t vqp = {.id = 7, .instance = 1};
    double end       = ft_now() + 60;
    ft_ctl_msg_t msg;
    unsigned asked;

    ft_open(ctl, peer, 0, &vqp);
    /* Answers to repeated requests have arrived by then */
    while (ft_now() < end - 59.5) {
        ft_ctl_progress(ctl);
    }

    asked = ft_got.opened;
    while (ft_got.opened < asked + 2) {
        if (ft_now() > end) {
            ft_die("no unsolicited OPEN_REP arrived");
        }
        ft_ctl_progress(ctl);
    }

    ft_ctl_close_vqp(ctl, peer, 0, &vqp, &msg);
    ft_send(ctl, peer, 0, &msg);
    printf("ft: was reminded\n");
}

static void ft_old(ft_ctl_t *ctl, ft_ctl_peer_t *peer)
{
    static const uint8_t version10[40] = {
        [2] = 10, [3] = UCT_VARUNA_CTL_PING, [28] = 1
    };
    const ft_ctl_link_t *own = &ctl->links[0];
    ft_ctl_msg_t msg         = {.length = 0};

    ft_ctl_append(&msg, version10, sizeof(version10));
    ft_ctl_append(&msg, own->device, own->uct.attr.device_addr_len);
    ft_ctl_append(&msg, own->addr, own->uct.attr.iface_addr_len);
    *(uint16_t*)msg.data = UCT_VARUNA_WIRE_MAGIC;
    msg.data[36]         = own->uct.attr.device_addr_len;
    msg.data[37]         = own->uct.attr.iface_addr_len;
    ft_ask(ctl, peer, 0, &msg, &ft_got.newer);
    printf("ft: answered in version %u\n", UCT_VARUNA_WIRE_VERSION);
}


/* --- Answers --- */

static void ft_print_hex(const uint8_t *bytes, size_t length)
{
    printf(" ");
    while (length-- > 0) {
        printf("%02x", *bytes++);
    }
}

static void ft_host_print(ft_ctl_t *ctl)
{
    static uint8_t memory[4096];
    uint8_t addr[FT_CTL_MAX_ADDR] = {0}, rkey[FT_ADDR_MAX];
    uct_mem_h memhs[UCT_VARUNA_MAX_LINKS];
    unsigned i;

    for (i = 0; i < ctl->num_links; ++i) {
        memhs[i] = ft_uct_reg(&ctl->links[i].uct, memory, sizeof(memory));
    }

    ft_ctl_pack_short_address(ctl, addr);
    printf("ft: address %p", (void*)memory);
    ft_print_hex(ctl->links[0].device, ctl->links[0].uct.attr.device_addr_len);
    ft_print_hex(addr, UCT_VARUNA_IFACE_ADDR_MAX);
    ft_print_hex(rkey, ft_ctl_pack_rkey(ctl, memhs, rkey));
    printf("\n");
}

/* Wait for the next OPEN_REQ. @return Its sender. */
static const uct_varuna_ctl_hdr_t *ft_host_asked(ft_ctl_t *ctl, ft_ctl_peer_t *peer)
{
    const uct_varuna_ctl_hdr_t *hdr      = (const void*)ft_got.data;
    const uct_varuna_ctl_open_req_t *req = (const void*)(hdr + 1);
    double end                           = ft_now() + 60;

    for (ft_got.opened = 0; ft_got.opened == 0; ft_ctl_progress(ctl)) {
        if (ft_now() > end) {
            ft_die("no request arrived");
        }
    }

    if ((peer->link_map == 0) &&
        (ft_ctl_meet_full(peer, req + 1, req->addr_len) != 0)) {
        ft_die("the request has no address");
    }

    return hdr;
}

static void ft_host(ft_ctl_t *ctl)
{
    static ft_ctl_peer_t peer;
    uct_varuna_ctl_hdr_t hdr;
    ft_ctl_msg_t msg;
    unsigned i;

    ft_host_print(ctl);
    hdr         = *ft_host_asked(ctl, &peer);
    hdr.secret ^= 1;
    for (i = 0; i < 2; ++i, hdr.type = UCT_VARUNA_CTL_PING) {
        ft_ctl_reject(ctl, &peer, 0, &hdr, UCS_ERR_CONNECTION_RESET, &msg);
        ft_send(ctl, &peer, 0, &msg);
    }

    /* It repeats the request, so it has ignored the answer */
    hdr = *ft_host_asked(ctl, &peer);
    printf("ft: asked again\n");
    do {
        ft_ctl_reject(ctl, &peer, 0, &hdr, UCS_ERR_CONNECTION_RESET, &msg);
        ft_send(ctl, &peer, 0, &msg);
        for (i = 0; i < 100; ++i) {
            ft_ctl_progress(ctl);
            poll(NULL, 0, 1);
        }
    } while (getchar() != EOF);
}

int main(int argc, char **argv)
{
    static char text[8 * FT_ADDR_MAX];
    static ft_ctl_peer_t peer;
    static ft_ctl_t ctl;
    ft_address_t address;
    unsigned count;

    setvbuf(stdout, NULL, _IOLBF, 0);
    ft_ctl_open(&ctl, ft_received, NULL);
    if ((argc == 2) && !strcmp(argv[1], "host")) {
        ft_host(&ctl);
        return 0;
    }

    if ((argc < 2) || (fgets(text, sizeof(text), stdin) == NULL) ||
        (ft_uct_parse_address(text, &address) != 0) ||
        (ft_ctl_meet(&peer, &address) != 0)) {
        ft_die("usage: ft_stranger lies | flood N | guests N | vqps N | hold N M | unused | old | host, "
               "with an address on stdin");
    }

    count = (argc > 2) ? atoi(argv[2]) : 0;
    if (!strcmp(argv[1], "lies")) {
        ft_lies_all(&ctl, &peer);
    } else if (!strcmp(argv[1], "flood")) {
        ft_flood(&ctl, &peer, count);
    } else if (!strcmp(argv[1], "guests")) {
        ft_guests(&ctl, &peer, count, 0);
    } else if (!strcmp(argv[1], "vqps")) {
        ft_guests(&ctl, &peer, count, 1);
    } else if (!strcmp(argv[1], "hold")) {
        ft_hold(&ctl, &peer, count, (argc > 3) ? atoi(argv[3]) : 0);
    } else if (!strcmp(argv[1], "unused")) {
        ft_unused(&ctl, &peer);
    } else if (!strcmp(argv[1], "old")) {
        ft_old(&ctl, &peer);
    }

    if (strcmp(argv[1], "guests") && strcmp(argv[1], "vqps")) {
        ft_check(&ctl, &peer);
    }
    printf("ft: done\n");
    fflush(stdout);
    ft_ctl_close(&ctl, &peer, 1);
    return 0;
}
