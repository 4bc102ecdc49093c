/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * A process with vQPs to and from a friend, which runs the same program. It checks
 * their data all the time, while a hostile peer (ft_fuzz.c) also has its address. Run
 * by test/e2e/security/test_hostile.sh:
 *
 *     ft_victim        prints its token and two addresses: "ft: friend TOKEN ADDRESS" for
 *                      the friend, "ft: hostile ADDRESS" for the other one. Lines of
 *                      its input:
 *
 *     friend VQPS TOKEN ADDRESS  connect that many vQPs, and check them in rounds
 *     hostile ADDRESS            connect some vQPs, and replace them when they fail
 *     forget                     destroy these
 *     rounds N                   "ft: rounds" after N more of each vQP
 *     baseline                   remember what the plugin holds for its peers
 *     most                       print the maximum since then
 *     settle                     "ft: settled" when it holds no more than that
 *     stop                       "ft: right" if all that was sent has come, once, and
 *                                how often vQPs to the friend failed over
 *     end                        close everything
 */
#include "ft_victim.h"
#include "ft_clock.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define FT_TL_NAME      "rc_varuna"
#define FT_HOSTILE_VQPS 3
#define FT_HOSTILE_SIZE 4096
#define FT_LINE         4096
#define FT_TIMEOUT      120.0

typedef struct {
    uct_ep_h         ep;
    volatile int     failed;
    uint64_t         result;  /* Of an atomic, or a get */
    uct_completion_t comp;    /* Its completion is ignored */
} ft_hostile_vqp_t;

static struct {
    ft_uct_t          uct;
    ft_check_t        check;
    void              *memory;        /* That the hostile peer may change */
    uct_mem_h         memh;
    int               has_hostile;
    ft_address_t      hostile;
    uct_rkey_bundle_t rkey;
    ft_hostile_vqp_t  vqps[FT_HOSTILE_VQPS];
    uint64_t          hostile_ops, hostile_fails;
    unsigned          next_op;
    uint64_t          want_rounds;    /* 0: none */
    int               is_settling;
    double            settle_end;
    ft_objects_t      baseline, max;
    unsigned          idle;
    int               is_ended;
} ft_victim;


/* --- The hostile peer --- */

static void ft_ep_failed(ft_uct_t *uct, uct_ep_h ep)
{
    unsigned i;

    for (i = 0; i < FT_HOSTILE_VQPS; ++i) {
        if (ft_victim.vqps[i].ep == ep) {
            ft_victim.vqps[i].failed = 1;
            return;
        }
    }

    ft_die("a vQP to the friend failed");
}

static void ft_hostile_done(uct_completion_t *comp)
{
}

static void ft_hostile_connect(const char *text)
{
    unsigned i;

    if ((ft_uct_parse_address(text, &ft_victim.hostile) != 0) ||
        (uct_rkey_unpack(ft_victim.uct.component, ft_victim.hostile.rkey,
                         &ft_victim.rkey) != UCS_OK)) {
        ft_die("the hostile peer has no address: %s", text);
    }

    ft_victim.has_hostile = 1;
    for (i = 0; i < FT_HOSTILE_VQPS; ++i) {
        ft_victim.vqps[i].comp.func  = ft_hostile_done;
        ft_victim.vqps[i].comp.count = 1;
        ft_victim.vqps[i].ep         = ft_uct_connect(&ft_victim.uct,
                                                      &ft_victim.hostile);
    }
}

static void ft_hostile_forget(void)
{
    unsigned i;

    if (!ft_victim.has_hostile) {
        return;
    }

    for (i = 0; i < FT_HOSTILE_VQPS; ++i) {
        uct_ep_destroy(ft_victim.vqps[i].ep);
        ft_victim.vqps[i].ep = NULL;
    }
    uct_rkey_release(ft_victim.uct.component, &ft_victim.rkey);
    ft_victim.has_hostile = 0;
    printf("ft: forgot the hostile peer: %" PRIu64 " operations, %" PRIu64
           " failed vQPs\n", ft_victim.hostile_ops, ft_victim.hostile_fails);
}

static ucs_status_t ft_hostile_post(ft_hostile_vqp_t *vqp, unsigned op)
{
    uint64_t base = ft_victim.hostile.base;
    uct_rkey_t rkey = ft_victim.rkey.rkey;

    switch (op % 5) {
    case 0:
        return uct_ep_put_short(vqp->ep, &op, sizeof(op), base + 8, rkey);
    case 1:
        return uct_ep_am_short(vqp->ep, FT_CHECK_HOSTILE_ID, op, &base,
                               sizeof(base));
    case 2:
        return uct_ep_atomic64_fetch(vqp->ep, UCT_ATOMIC_OP_ADD, 1, &vqp->result,
                                     base, rkey, &vqp->comp);
    case 3:
        return uct_ep_atomic_cswap64(vqp->ep, op, op + 1, base, rkey, &vqp->result,
                                     &vqp->comp);
    default:
        return uct_ep_flush(vqp->ep, 0, &vqp->comp);
    }
}

/* Sometimes post an operation on each vQP */
static void ft_hostile_progress(void)
{
    ft_hostile_vqp_t *vqp;
    unsigned i, op;

    if (!ft_victim.has_hostile) {
        return;
    }

    for (i = 0; i < FT_HOSTILE_VQPS; ++i) {
        vqp = &ft_victim.vqps[i];
        if (vqp->failed) {
            ++ft_victim.hostile_fails;
            uct_ep_destroy(vqp->ep);
            vqp->failed = 0;
            vqp->ep     = ft_uct_connect(&ft_victim.uct, &ft_victim.hostile);
        }

        op = ft_victim.next_op++;
        ++vqp->comp.count; /* Never completed: the count stays above 0 */
        switch (ft_hostile_post(vqp, op)) {
        case UCS_INPROGRESS:
            ++ft_victim.hostile_ops;
            break;
        case UCS_OK:
            ++ft_victim.hostile_ops;
            /* fall through */
        default:
            --vqp->comp.count;
            break;
        }
    }
}


/* --- Commands --- */

/* Peers of orphans are kept as long as the orphans. A target has at most two queue
 * pairs, and those of the friend may be new */
static int ft_is_settled(const ft_objects_t *now, const ft_objects_t *baseline)
{
    return (now->targets <= baseline->targets) && (now->held <= baseline->held) &&
           (now->peers <= (baseline->peers + now->orphans)) &&
           (now->rc <= (2 * baseline->targets)) && (now->inbox <= baseline->inbox) &&
           (now->queue <= baseline->queue);
}

static void ft_stop(void)
{
    unsigned long switches = 0;
    unsigned i;

    ft_victim.check.is_ending = 1;
    while (ft_check_progress(&ft_victim.check)) {
        uct_worker_progress(ft_victim.uct.worker);
    }

    ft_check_finish(&ft_victim.check);
    for (i = 0; i < ft_victim.check.num_vqps; ++i) {
        switches += ft_objects_switches(ft_victim.check.vqps[i].ep);
    }

    ft_objects_print("most", &ft_victim.max);
    printf("ft: right: %" PRIu64 " rounds, %lu failovers, %" PRIu64 " messages of "
           "strangers\n", ft_check_rounds(&ft_victim.check), switches,
           ft_victim.check.foreign);
}

static void ft_befriend(const char *text)
{
    ft_address_t address;
    unsigned num_vqps;
    uint64_t token;
    int end = 0;

    if ((sscanf(text, "%u %" SCNx64 " %n", &num_vqps, &token, &end) != 2) ||
        (end == 0) || (num_vqps > FT_CHECK_MAX_VQPS) ||
        (ft_uct_parse_address(text + end, &address) != 0)) {
        ft_die("the friend has no address: %s", text);
    }

    ft_check_connect(&ft_victim.check, &address, token, num_vqps);
}

static void ft_command(const char *line)
{
    char name[16];
    int end = 0;

    if (sscanf(line, "%15s %n", name, &end) != 1) {
        return;
    }

    if (!strcmp(name, "friend")) {
        ft_befriend(line + end);
    } else if (!strcmp(name, "hostile")) {
        ft_hostile_connect(line + end);
    } else if (!strcmp(name, "forget")) {
        ft_hostile_forget();
    } else if (!strcmp(name, "rounds")) {
        ft_victim.want_rounds = ft_check_rounds(&ft_victim.check) +
                                strtoul(line + end, NULL, 0);
    } else if (!strcmp(name, "baseline")) {
        ft_objects_get(&ft_victim.uct, &ft_victim.baseline);
        ft_victim.max = ft_victim.baseline;
        ft_objects_print("baseline", &ft_victim.baseline);
    } else if (!strcmp(name, "most")) {
        ft_objects_print("most", &ft_victim.max);
    } else if (!strcmp(name, "settle")) {
        ft_victim.is_settling = 1;
        ft_victim.settle_end  = ft_now() + FT_TIMEOUT;
    } else if (!strcmp(name, "stop")) {
        ft_stop();
    } else if (!strcmp(name, "end")) {
        ft_victim.is_ended = 1;
    } else {
        ft_die("no such command: %s", line);
    }
}

static void ft_read_commands(void)
{
    static char text[FT_LINE];
    static size_t length;
    struct pollfd pfd = {.fd = STDIN_FILENO, .events = POLLIN};
    ssize_t count;
    char *end;

    if (poll(&pfd, 1, 0) <= 0) {
        return;
    }

    count = read(STDIN_FILENO, text + length, sizeof(text) - 1 - length);
    if (count <= 0) {
        ft_victim.is_ended = 1;
        return;
    }

    length      += count;
    text[length] = '\0';
    while ((end = strchr(text, '\n')) != NULL) {
        *end = '\0';
        ft_command(text);
        length -= (end + 1) - text;
        memmove(text, end + 1, length + 1);
    }
}

/* Check the conditions that commands wait for, and count objects */
static void ft_look(void)
{
    ft_objects_t now;

    ft_objects_get(&ft_victim.uct, &now);
    ft_objects_max(&ft_victim.max, &now);
    if ((ft_victim.want_rounds > 0) &&
        (ft_check_rounds(&ft_victim.check) >= ft_victim.want_rounds)) {
        ft_victim.want_rounds = 0;
        printf("ft: rounds\n");
    }

    if (ft_victim.is_settling &&
        (ft_is_settled(&now, &ft_victim.baseline) ||
         (ft_now() > ft_victim.settle_end))) {
        ft_objects_print("now", &now);
        printf("ft: %ssettled\n",
               ft_is_settled(&now, &ft_victim.baseline) ? "" : "not ");
        ft_victim.is_settling = 0;
    }
}

static void ft_run(void)
{
    unsigned count;

    for (count = 0; !ft_victim.is_ended; ++count) {
        ft_victim.idle = (uct_worker_progress(ft_victim.uct.worker) > 0) ?
                         0 : ft_victim.idle + 1;
        ft_check_progress(&ft_victim.check);
        if ((count % 16) == 0) {
            ft_hostile_progress();
            ft_read_commands();
            ft_look();
        }

        if (ft_victim.idle > 16) {
            usleep(100);
        }
    }
}

int main(void)
{
    uint64_t token;
    char prefix[64];

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (getrandom(&token, sizeof(token), 0) != sizeof(token)) {
        ft_die("getrandom");
    }

    ft_uct_open(&ft_victim.uct, FT_TL_NAME);
    ft_victim.uct.ep_failed = ft_ep_failed;
    ft_check_init(&ft_victim.check, &ft_victim.uct, token);
    if (posix_memalign(&ft_victim.memory, 4096, FT_HOSTILE_SIZE) != 0) {
        ft_die("out of memory");
    }

    memset(ft_victim.memory, 0, FT_HOSTILE_SIZE);
    ft_victim.memh = ft_uct_reg(&ft_victim.uct, ft_victim.memory, FT_HOSTILE_SIZE);
    snprintf(prefix, sizeof(prefix), "ft: friend 0x%" PRIx64, token);
    ft_uct_print_address(&ft_victim.uct, prefix, ft_victim.check.slots_memh,
                         ft_victim.check.slots);
    ft_uct_print_address(&ft_victim.uct, "ft: hostile", ft_victim.memh,
                         ft_victim.memory);
    ft_run();

    ft_hostile_forget();
    ft_check_cleanup(&ft_victim.check);
    uct_md_mem_dereg(ft_victim.uct.md, ft_victim.memh);
    ft_uct_close(&ft_victim.uct);
    free(ft_victim.memory);
    printf("ft: end\n");
    return 0;
}
