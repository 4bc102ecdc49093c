/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Atomics under contention: several clients work on the same words of a server. It uses
 * only UCT. Each client prints its results; a script checks the histories of all
 * clients against the final words (test/e2e/atomics/test_atomics.sh).
 *
 *     ft_amo server             prints its addresses; ends with its input, and then
 *                               prints the words
 *     ft_amo client ADDRESSES ID WIDTH COUNT DEPTH [KIND...]
 *
 * All words are in one registration, which clients with odd IDs use. Each word is also
 * in its own registration, for the other clients. ADDRESSES has a line for each
 * registration.
 *
 * It cycles through the KINDs, for COUNT operations, or until its input ends if COUNT
 * is 0. DEPTH operations are in flight:
 *   fadd  word 0: fetch and add of 1                 "fadd RESULT"
 *   add   word 1: posted add of 1                    "add"
 *   cas   word 2: the last value seen, a unique one  "cas COMPARE SWAP RESULT"
 *   swap  word 3: a unique value                     "swap VALUE RESULT"
 *   bits  word 4: flip the client's bit by OR, AND, XOR, and check it  "bits"
 *   gcas  word 5: get 16 bytes, which resolves no UID, then compare with the first 8 of
 *         them and swap in a unique value whose upper half counts our successes. 8 bytes,
 *         one at a time                              "gcas COMPARE SWAP RESULT"
 *   loop  word 6: get it, then compare and swap in a unique value, until that succeeds;
 *         one at a time                              "loop COMPARE SWAP RESULT"
 *   half  word 7, of 8 bytes: fetch and add of 1 to its upper half as a word of 4 bytes, or
 *         of 1 to the whole, by WIDTH                "half WIDTH WORD-OR-HALF"
 */
#include "ft_uct.h"
#include "ft_clock.h"

#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FT_TL_NAME     "rc_varuna"
#define FT_AMO_WORDS   8
#define FT_AMO_STRIDE  4096
#define FT_AMO_DEPTH   64
#define FT_AMO_TIMEOUT 60.0

enum {
    FT_AMO_FADD, FT_AMO_ADD, FT_AMO_CAS, FT_AMO_SWAP, FT_AMO_BITS, FT_AMO_GCAS,
    FT_AMO_LOOP, FT_AMO_HALF, FT_AMO_LAST
};

static const char *ft_amo_names[] = {"fadd", "add", "cas", "swap", "bits",
                                     "gcas", "loop", "half"};

typedef struct ft_amo ft_amo_t;

typedef struct {
    uct_completion_t comp;
    ft_amo_t         *amo;
    int              busy;
    int              kind;
    uint64_t         compare;
    uint64_t         value;
    uint64_t         result;
} ft_amo_op_t;

struct ft_amo {
    ft_uct_t          uct;
    ft_address_t      regions[FT_AMO_WORDS];
    uct_rkey_bundle_t rkeys[FT_AMO_WORDS];  /* Of each word */
    uct_ep_h          ep;
    unsigned          id;
    unsigned          width;
    unsigned          depth;
    uint64_t          serial;     /* Of unique values */
    uint64_t          last_cas;   /* Last known value of word 2 */
    uint64_t          got[2];     /* Last result of a get, with the 8 bytes after it */
    uint64_t          gcas_won;   /* Our successes */
    int               loop_won;   /* The last attempt has succeeded */
    unsigned          bit_state;  /* Our bit of word 4 */
    int               bit_busy;
    unsigned          in_flight;
    ft_amo_op_t       ops[FT_AMO_DEPTH];
};

/* --- Server --- */

static int ft_amo_server(void)
{
    static uint8_t words[FT_AMO_WORDS][FT_AMO_STRIDE]
            __attribute__((aligned(FT_AMO_STRIDE)));
    struct pollfd pfd = {.fd = STDIN_FILENO, .events = POLLIN};
    uct_mem_h memh, memhs[FT_AMO_WORDS];
    ft_uct_t uct;
    unsigned i;

    ft_uct_open(&uct, FT_TL_NAME);
    memh = ft_uct_reg(&uct, words, sizeof(words));
    for (i = 0; i < FT_AMO_WORDS; ++i) {
        memhs[i] = ft_uct_reg(&uct, words[i], sizeof(words[i]));
        ft_uct_print_address(&uct, "ft: address", memhs[i], words[i]);
    }

    ft_uct_print_address(&uct, "ft: address of all", memh, words);
    fflush(stdout);
    while (poll(&pfd, 1, 1) == 0) {
        while (uct_worker_progress(uct.worker) > 0);
    }

    for (i = 0; i < FT_AMO_WORDS; ++i) {
        printf("word %u %" PRIu64 "\n", i, *(uint64_t*)words[i]);
        uct_md_mem_dereg(uct.md, memhs[i]);
    }

    uct_md_mem_dereg(uct.md, memh);
    ft_uct_close(&uct);
    return 0;
}

/* --- Client --- */

static void ft_amo_done(uct_completion_t *comp)
{
    ft_amo_op_t *op = (ft_amo_op_t*)comp;
    ft_amo_t *amo   = op->amo;
    unsigned was;

    if (comp->status != UCS_OK) {
        ft_die("%s completed with %s", ft_amo_names[op->kind],
               ucs_status_string(comp->status));
    }

    if (!op->busy) {
        ft_die("%s completed twice", ft_amo_names[op->kind]);
    }

    op->busy = 0;
    --amo->in_flight;
    switch (op->kind) {
    case FT_AMO_FADD:
        printf("fadd %" PRIu64 "\n", op->result);
        break;
    case FT_AMO_HALF:
        printf("half %u %" PRIu64 "\n", amo->width, op->result);
        break;
    case FT_AMO_CAS:
        printf("cas %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", op->compare,
               op->value, op->result);
        amo->last_cas = (op->result == op->compare) ? op->value : op->result;
        break;
    case FT_AMO_GCAS:
        printf("gcas %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", op->compare,
               op->value, op->result);
        amo->gcas_won += (op->result == op->compare);
        break;
    case FT_AMO_LOOP:
        printf("loop %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", op->compare,
               op->value, op->result);
        amo->loop_won = (op->result == op->compare);
        break;
    case FT_AMO_SWAP:
        printf("swap %" PRIu64 " %" PRIu64 "\n", op->value, op->result);
        break;
    case FT_AMO_BITS:
        was = (op->result >> amo->id) & 1;
        if (was != (amo->bit_state & 1)) {
            ft_die("our bit was %u in 0x%" PRIx64 ", not %u", was, op->result,
                   amo->bit_state & 1);
        }
        ++amo->bit_state;
        amo->bit_busy = 0;
        printf("bits\n");
        break;
    default:
        break;
    }
}

static ucs_status_t ft_amo_fetch(ft_amo_t *amo, ft_amo_op_t *op,
                                 uct_atomic_op_t opcode, uint64_t addr)
{
    uct_rkey_t rkey = amo->rkeys[op->kind].rkey;

    return (amo->width == 8) ?
           uct_ep_atomic64_fetch(amo->ep, opcode, op->value, &op->result, addr,
                                 rkey, &op->comp) :
           uct_ep_atomic32_fetch(amo->ep, opcode, op->value,
                                 (uint32_t*)&op->result, addr, rkey,
                                 &op->comp);
}

/* OR, AND, XOR, XOR: set, cleared, set, cleared */
static ucs_status_t ft_amo_bits(ft_amo_t *amo, ft_amo_op_t *op, uint64_t addr)
{
    uint64_t bit = 1ul << amo->id;

    switch (amo->bit_state % 4) {
    case 0:
        op->value = bit;
        return ft_amo_fetch(amo, op, UCT_ATOMIC_OP_OR, addr);
    case 1:
        op->value = ~bit;
        return ft_amo_fetch(amo, op, UCT_ATOMIC_OP_AND, addr);
    default:
        op->value = bit;
        return ft_amo_fetch(amo, op, UCT_ATOMIC_OP_XOR, addr);
    }
}

static void ft_amo_unpack(void *arg, const void *data, size_t length)
{
    memcpy(arg, data, length);
}

static void ft_amo_got(uct_completion_t *comp)
{
    if (comp->status != UCS_OK) {
        ft_die("get completed with %s", ucs_status_string(comp->status));
    }
}

static ucs_status_t ft_amo_post(ft_amo_t *amo, ft_amo_op_t *op)
{
    uint64_t addr   = amo->regions[op->kind].base;
    uct_rkey_t rkey = amo->rkeys[op->kind].rkey;

    op->comp.func   = ft_amo_done;
    op->comp.count  = 1;
    op->comp.status = UCS_OK;
    op->result      = 0;
    switch (op->kind) {
    case FT_AMO_HALF:
        op->value = 1;
        return ft_amo_fetch(amo, op, UCT_ATOMIC_OP_ADD,
                            addr + ((amo->width == 4) ? 4 : 0));
    case FT_AMO_FADD:
        op->value = 1;
        return ft_amo_fetch(amo, op, UCT_ATOMIC_OP_ADD, addr);
    case FT_AMO_ADD:
        return (amo->width == 8) ?
               uct_ep_atomic64_post(amo->ep, UCT_ATOMIC_OP_ADD, 1, addr, rkey) :
               uct_ep_atomic32_post(amo->ep, UCT_ATOMIC_OP_ADD, 1, addr, rkey);
    case FT_AMO_CAS:
    case FT_AMO_LOOP:
        op->compare = (op->kind == FT_AMO_CAS) ? amo->last_cas : amo->got[0];
        op->value   = (amo->serial * 16) + amo->id;
        return (amo->width == 8) ?
               uct_ep_atomic_cswap64(amo->ep, op->compare, op->value, addr,
                                     rkey, &op->result, &op->comp) :
               uct_ep_atomic_cswap32(amo->ep, op->compare, op->value, addr,
                                     rkey, (uint32_t*)&op->result, &op->comp);
    case FT_AMO_SWAP:
        op->value = (amo->serial * 16) + amo->id;
        return ft_amo_fetch(amo, op, UCT_ATOMIC_OP_SWAP, addr);
    case FT_AMO_GCAS:
        op->compare = amo->got[0];
        op->value   = ((amo->gcas_won + 1) << 32) | (amo->serial * 16) | amo->id;
        return uct_ep_atomic_cswap64(amo->ep, op->compare, op->value, addr, rkey,
                                     &op->result, &op->comp);
    default:
        return ft_amo_bits(amo, op, addr);
    }
}

static void ft_amo_progress(ft_amo_t *amo, double *idle_since)
{
    if (uct_worker_progress(amo->uct.worker) > 0) {
        *idle_since = ft_now();
        return;
    }

    sched_yield();
    if ((ft_now() - *idle_since) > FT_AMO_TIMEOUT) {
        ft_die("nothing has completed for %.0f s, %u in flight", FT_AMO_TIMEOUT,
               amo->in_flight);
    }
}

static ft_amo_op_t *ft_amo_free_op(ft_amo_t *amo)
{
    unsigned i;

    for (i = 0; i < amo->depth; ++i) {
        if (!amo->ops[i].busy) {
            return &amo->ops[i];
        }
    }

    return NULL;
}

/* Through a read of one word, or of more */
static void ft_amo_get(ft_amo_t *amo, int kind, size_t length)
{
    double idle_since = ft_now();
    uct_completion_t comp;
    ucs_status_t status;

    comp.func   = ft_amo_got;
    comp.count  = 1;
    comp.status = UCS_OK;
    amo->got[0] = 0;
    while ((status = uct_ep_get_bcopy(amo->ep, ft_amo_unpack, amo->got, length,
                                      amo->regions[kind].base,
                                      amo->rkeys[kind].rkey, &comp)) ==
           UCS_ERR_NO_RESOURCE) {
        ft_amo_progress(amo, &idle_since);
    }

    if (UCS_STATUS_IS_ERR(status)) {
        ft_die("get: %s", ucs_status_string(status));
    }

    while ((status == UCS_INPROGRESS) && (comp.count > 0)) {
        ft_amo_progress(amo, &idle_since);
    }
}

static void ft_amo_run_one(ft_amo_t *amo, int kind);

static void ft_amo_loop(ft_amo_t *amo)
{
    double idle_since = ft_now();

    do {
        ft_amo_run_one(amo, FT_AMO_LOOP);
        while (amo->in_flight > 0) {
            ft_amo_progress(amo, &idle_since);
        }
    } while (!amo->loop_won);
}

static void ft_amo_run_one(ft_amo_t *amo, int kind)
{
    double idle_since = ft_now();
    ft_amo_op_t *op;
    ucs_status_t status;

    ++amo->serial;
    if (kind == FT_AMO_GCAS) {
        ft_amo_get(amo, kind, sizeof(amo->got));
    } else if (kind == FT_AMO_LOOP) {
        ft_amo_get(amo, kind, amo->width);
    }

    for (;;) {
        op = ft_amo_free_op(amo);
        if ((op == NULL) || ((kind == FT_AMO_BITS) && amo->bit_busy)) {
            ft_amo_progress(amo, &idle_since);
            continue;
        }

        op->kind = kind;
        op->amo  = amo;
        status   = ft_amo_post(amo, op);
        if (status == UCS_INPROGRESS) {
            op->busy = 1;
            ++amo->in_flight;
            amo->bit_busy |= (kind == FT_AMO_BITS);
            return;
        } else if (status == UCS_OK) {
            if (kind != FT_AMO_ADD) {
                ft_amo_done(&op->comp);
            }
            printf("add\n");
            return;
        } else if (status != UCS_ERR_NO_RESOURCE) {
            ft_die("%s: %s", ft_amo_names[kind], ucs_status_string(status));
        }

        ft_amo_progress(amo, &idle_since);
    }
}

static void ft_amo_flush(ft_amo_t *amo)
{
    double idle_since = ft_now();

    while (uct_ep_flush(amo->ep, 0, NULL) != UCS_OK) {
        ft_amo_progress(amo, &idle_since);
    }
}

static int ft_amo_kind(const char *name)
{
    int i;

    for (i = 0; i < FT_AMO_LAST; ++i) {
        if (!strcmp(name, ft_amo_names[i])) {
            return i;
        }
    }

    ft_die("unknown kind %s", name);
}

static int ft_amo_is_over(unsigned done, unsigned count)
{
    struct pollfd pfd = {.fd = STDIN_FILENO, .events = POLLIN};

    return (count > 0) ? (done >= count) : (poll(&pfd, 1, 0) != 0);
}

/* Each word's own region, or the common one. */
static void ft_amo_parse(ft_amo_t *amo, const char *text)
{
    const char *all = strstr(text, " of all");
    ft_address_t whole;
    unsigned i;

    if ((all == NULL) ||
        (ft_uct_parse_address(all + strlen(" of all"), &whole) != 0)) {
        ft_die("bad addresses %s", text);
    }

    for (i = 0; i < FT_AMO_WORDS; ++i, text = strchr(text, '\n') + 1) {
        if ((strchr(text, '\n') == NULL) ||
            (ft_uct_parse_address(text, &amo->regions[i]) != 0)) {
            ft_die("bad address %s", text);
        }

        if (amo->id % 2) {
            if (amo->regions[i].base != whole.base + (i * FT_AMO_STRIDE)) {
                ft_die("word %u has another address", i);
            }
            memcpy(amo->regions[i].rkey, whole.rkey, sizeof(whole.rkey));
        }
    }
}

static void ft_amo_connect(ft_amo_t *amo)
{
    unsigned i;

    ft_uct_open(&amo->uct, FT_TL_NAME);
    amo->ep = ft_uct_connect(&amo->uct, &amo->regions[0]);
    for (i = 0; i < FT_AMO_WORDS; ++i) {
        if (uct_rkey_unpack(amo->uct.component, amo->regions[i].rkey,
                            &amo->rkeys[i]) != UCS_OK) {
            ft_die("rkey_unpack");
        }
    }
}

static void ft_amo_close(ft_amo_t *amo)
{
    unsigned i;

    uct_ep_destroy(amo->ep);
    for (i = 0; i < FT_AMO_WORDS; ++i) {
        uct_rkey_release(amo->uct.component, &amo->rkeys[i]);
    }

    ft_uct_close(&amo->uct);
}

static int ft_amo_client(char **argv, int argc)
{
    static ft_amo_t amo;
    unsigned count = atoi(argv[5]);
    unsigned i;
    int kind;

    amo.id    = atoi(argv[3]);
    amo.width = atoi(argv[4]);
    amo.depth = atoi(argv[6]);
    if ((amo.id > 15) || ((amo.width != 4) && (amo.width != 8)) ||
        (amo.depth < 1) || (amo.depth > FT_AMO_DEPTH)) {
        ft_die("bad id, width or depth");
    }

    ft_amo_parse(&amo, argv[2]);
    ft_amo_connect(&amo);
    for (i = 0; !ft_amo_is_over(i, count); ++i) {
        kind = ft_amo_kind(argv[7 + (i % (argc - 7))]);
        if (kind == FT_AMO_LOOP) {
            ft_amo_loop(&amo);
        } else {
            ft_amo_run_one(&amo, kind);
        }
    }

    /* After this flush no word contains a UID of this client */
    ft_amo_flush(&amo);
    if (amo.in_flight > 0) {
        ft_die("%u operations are not complete after a flush", amo.in_flight);
    }

    if (amo.uct.ep_errors > 0) {
        ft_die("the endpoint failed");
    }

    ft_amo_close(&amo);
    printf("ft: ok\n");
    return 0;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if ((argc == 2) && !strcmp(argv[1], "server")) {
        return ft_amo_server();
    } else if ((argc >= 8) && !strcmp(argv[1], "client")) {
        return ft_amo_client(argv, argc);
    }

    ft_die("usage: ft_amo server | client ADDRESSES ID WIDTH COUNT DEPTH KIND...");
}
