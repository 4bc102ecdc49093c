/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * A hostile peer: it has the address of a process (ft_victim.c), as any peer of a job,
 * and sends control messages and active messages to it: valid, modified, repeated,
 * late, reordered ones, and messages for other processes.
 *
 *     ft_fuzz [-l FILE] SEED STEPS
 *
 * It reads the victim's "ft: hostile" from stdin, prints its address, to which the
 * victim connects, and reads the address of the victim's friend, in whose name it sends
 * some of its messages. It writes all its messages to FILE, and exits without closing
 * anything.
 */
#include "ft_fuzz.h"
#include "ft_clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FT_TIMEOUT       60.0
#define FT_LINGER        0.3      /* Final phase with answers only */
#define FT_LINGER_MAX    60.0     /* Maximum, until there were enough */
#define FT_STEPS_PER_ASK 20
#define FT_FIRST_VQP     100
#define FT_ANSWER_STEPS  (1ul << 40) /* Other random numbers than steps */

static ft_fuzz_t ft_fuzz;
static FILE *ft_log;

static void ft_log_shot(const ft_shot_t *shot)
{
    size_t i;

    if (ft_log == NULL) {
        return;
    }

    fprintf(ft_log, "link %u %s am %u: ", shot->link, shot->to_data ? "data" : "ctl",
            shot->am_id);
    for (i = 0; i < shot->msg.length; ++i) {
        fprintf(ft_log, "%02x", shot->msg.data[i]);
    }
    fprintf(ft_log, "\n");
    fflush(ft_log);
}


/* --- Sending and answering --- */

static void ft_fuzz_received(void *arg, unsigned link, unsigned am_id,
                             const void *data, size_t length)
{
    ft_fuzz_t *fuzz = arg;
    ft_shot_t *ask;

    if ((am_id != UCT_VARUNA_AM_ID_CTL) || !ft_fuzz_learn(fuzz, data, length)) {
        return;
    }

    ask             = &fuzz->asks[fuzz->num_asks++ % FT_FUZZ_RECORDS];
    ask->link       = link;
    ask->am_id      = am_id;
    ask->msg.length = length;
    memcpy(ask->msg.data, data, length);
}

static void ft_fuzz_send(ft_fuzz_t *fuzz, const ft_shot_t *shot)
{
    ft_ctl_peer_t *peer = shot->to_data ? &fuzz->data : &fuzz->victim;
    double end          = ft_now() + FT_TIMEOUT;
    ucs_status_t status;

    ft_log_shot(shot);
    do {
        status = ft_ctl_send_am(&fuzz->ctl, peer, shot->link, shot->am_id,
                                shot->msg.data, shot->msg.length);
        if (status == UCS_ERR_NO_RESOURCE) {
            ft_ctl_progress(&fuzz->ctl);
        }
    } while ((status == UCS_ERR_NO_RESOURCE) && (ft_now() < end));

    if (status != UCS_OK) {
        ++fuzz->lost;
    }
    fuzz->records[fuzz->num_records++ % FT_FUZZ_RECORDS] = *shot;
}

/* Answer the requests that have arrived, except some. */
static void ft_fuzz_answer(ft_fuzz_t *fuzz)
{
    ft_shot_t ask, shot;
    ft_rng_t rng;

    while (fuzz->num_answered < fuzz->num_asks) {
        ask = fuzz->asks[fuzz->num_answered % FT_FUZZ_RECORDS];
        ft_rng_init(&rng, fuzz->seed, FT_ANSWER_STEPS + fuzz->num_answered);
        ++fuzz->num_answered;
        if (ft_rng_one_in(&rng, 10) ||
            !ft_fuzz_make_answer(fuzz, &rng, &ask, &shot)) {
            continue;
        }

        if (ft_rng_one_in(&rng, 5)) {
            ft_fuzz_mutate(fuzz, &rng, &shot);
            ++fuzz->mutated;
        }

        ++fuzz->answers;
        ft_fuzz_send(fuzz, &shot);
    }
}

static void ft_fuzz_step(ft_fuzz_t *fuzz, uint64_t step)
{
    static ft_shot_t shot;
    ft_shot_t *delayed;
    ft_shot_t other;
    ft_rng_t rng;

    ft_rng_init(&rng, fuzz->seed, step);
    if (!ft_fuzz_make(fuzz, &rng, &shot)) {
        return;
    }

    if (ft_rng_one_in(&rng, 3)) {
        ft_fuzz_mutate(fuzz, &rng, &shot);
        ++fuzz->mutated;
    }

    /* Late: send the message stored there instead */
    delayed = &fuzz->delayed[ft_rng_below(&rng, FT_FUZZ_DELAYED)];
    if (ft_rng_one_in(&rng, 3)) {
        other    = *delayed;
        *delayed = shot;
        shot     = other;
    }

    if (!shot.used || ft_rng_one_in(&rng, 16)) {
        return;
    }

    ft_fuzz_send(fuzz, &shot);
    if (ft_rng_one_in(&rng, 6)) {
        shot.link = ft_rng_below(&rng, fuzz->ctl.num_links);
        ft_fuzz_send(fuzz, &shot);
    }
}

static void ft_fuzz_run(ft_fuzz_t *fuzz, uint64_t steps)
{
    uint64_t step;
    double start, now;

    for (step = 0; step < steps; ++step) {
        ft_fuzz_step(fuzz, step);
        ft_ctl_progress(&fuzz->ctl);
        ft_fuzz_answer(fuzz);
    }

    /* A slow victim sends its requests late */
    start = ft_now();
    do {
        if (ft_ctl_progress(&fuzz->ctl) == 0) {
            usleep(100);
        }
        ft_fuzz_answer(fuzz);
        now = ft_now();
    } while ((now < (start + FT_LINGER)) ||
             ((now < (start + FT_LINGER_MAX)) &&
              ((fuzz->num_answered * FT_STEPS_PER_ASK) < steps)));
}


/* --- Setting up --- */

/* A queue pair that is never connected, for its address */
static void ft_fuzz_open_rc(ft_fuzz_t *fuzz, unsigned link)
{
    ft_uct_t *uct          = &fuzz->rc[link];
    ft_ctl_rc_t *addr      = &fuzz->rc_addrs[link];
    uct_ep_params_t params = {.field_mask = UCT_EP_PARAM_FIELD_IFACE};
    char name[32];

    snprintf(name, sizeof(name), "mlx5_%u:1", link);
    if (ft_uct_open_device(uct, "rc_mlx5", name, NULL) != 0) {
        ft_die("there is no rc_mlx5 on %s", name);
    }

    params.iface = uct->iface;
    if ((uct->attr.device_addr_len > sizeof(addr->device)) ||
        (uct->attr.ep_addr_len > sizeof(addr->ep)) ||
        (uct_ep_create(&params, &fuzz->rc_eps[link]) != UCS_OK) ||
        (uct_iface_get_device_address(uct->iface, (void*)addr->device) != UCS_OK) ||
        (uct_ep_get_address(fuzz->rc_eps[link], (void*)addr->ep) != UCS_OK)) {
        ft_die("no queue pair on %s", name);
    }

    addr->nic        = link;
    addr->device_len = uct->attr.device_addr_len;
    addr->ep_len     = uct->attr.ep_addr_len;
}

static void ft_fuzz_open(ft_fuzz_t *fuzz, uint64_t seed)
{
    unsigned i;

    fuzz->seed = seed;
    ft_ctl_open(&fuzz->ctl, ft_fuzz_received, fuzz);
    for (i = 0; i < FT_FUZZ_IDENTITIES; ++i) {
        fuzz->identities[i] = fuzz->ctl.uuid + i;
    }

    for (i = 0; i < FT_FUZZ_VQPS; ++i) {
        fuzz->vqps[i].id       = FT_FIRST_VQP + i;
        fuzz->vqps[i].instance = 1;
        fuzz->vqps[i].epoch    = 1;
    }

    fuzz->memory = mmap(NULL, FT_FUZZ_MEMORY, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fuzz->memory == MAP_FAILED) {
        ft_die("out of memory");
    }

    for (i = 0; i < fuzz->ctl.num_links; ++i) {
        fuzz->memhs[i] = ft_uct_reg(&fuzz->ctl.links[i].uct, fuzz->memory,
                                    FT_FUZZ_MEMORY);
        ft_fuzz_open_rc(fuzz, i);
    }
}

static void ft_fuzz_publish(const ft_fuzz_t *fuzz)
{
    ft_address_t address = {.base = (uintptr_t)fuzz->memory};

    address.device_len = fuzz->ctl.links[0].uct.attr.device_addr_len;
    memcpy(address.device, fuzz->ctl.links[0].device, address.device_len);
    address.iface_len  = ft_ctl_pack_short_address(&fuzz->ctl, address.iface);
    address.rkey_len   = ft_ctl_pack_rkey(&fuzz->ctl, fuzz->memhs, address.rkey);
    ft_uct_print_parsed("ft: address", &address);
}

int main(int argc, char **argv)
{
    static char text[8 * FT_ADDR_MAX];
    ft_address_t friend_address;
    ft_ctl_peer_t friend;
    uint64_t seed, steps;
    int option;

    setvbuf(stdout, NULL, _IOLBF, 0);
    while ((option = getopt(argc, argv, "l:")) != -1) {
        ft_log = (option == 'l') ? fopen(optarg, "w") : NULL;
        if (ft_log == NULL) {
            ft_die("usage: ft_fuzz [-l FILE] SEED STEPS");
        }
    }

    if ((argc - optind) != 2) {
        ft_die("usage: ft_fuzz [-l FILE] SEED STEPS");
    }

    seed  = strtoull(argv[optind], NULL, 0);
    steps = strtoull(argv[optind + 1], NULL, 0);
    ft_fuzz_open(&ft_fuzz, seed);
    if ((fgets(text, sizeof(text), stdin) == NULL) ||
        (ft_uct_parse_address(text, &ft_fuzz.address) != 0) ||
        (ft_ctl_meet(&ft_fuzz.victim, &ft_fuzz.address) != 0)) {
        ft_die("there is no address: %s", text);
    }

    ft_fuzz_publish(&ft_fuzz);
    if ((fgets(text, sizeof(text), stdin) == NULL) ||
        (ft_uct_parse_address(text, &friend_address) != 0) ||
        (ft_ctl_meet(&friend, &friend_address) != 0)) {
        ft_die("the victim's friend has no address: %s", text);
    }

    ft_fuzz.identities[FT_FUZZ_IDENTITIES - 1] = friend.uuid;
    printf("ft: seed %" PRIu64 "\n", seed);
    ft_fuzz_run(&ft_fuzz, steps);
    printf("ft: fuzzed %" PRIu64 " steps: %" PRIu64 " messages, %" PRIu64
           " answers, %" PRIu64 " openings, %" PRIu64 " spoilt, %" PRIu64
           " not sent\n", steps, ft_fuzz.ctl.sent, ft_fuzz.answers, ft_fuzz.opened,
           ft_fuzz.mutated, ft_fuzz.lost);
    fflush(stdout);
    _exit(0);
}
