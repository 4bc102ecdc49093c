/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Operations of the client, see demo_load.h.
 *
 * Puts use the slots of a size class in turn; before a slot is used again there is a
 * fence, so that its final value is that of the last put. Sometimes a put is followed
 * by a fence and a get of the same slot, which must return this put, not an older or
 * newer one.
 */
#include "demo_load.h"
#include "demo_word.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>


#define DEMO_LOAD_INDEX_BITS 16 /* Of an operation's place, in user_data */
#define DEMO_LOAD_ALIGN      4096 /* Of the buffers */
#define DEMO_LOAD_BURST      4  /* Posts on an endpoint before the next one */


static const unsigned demo_kind_weights[DEMO_OP_LAST] = {
    [DEMO_OP_PUT]      = 45,
    [DEMO_OP_GET]      = 20,
    [DEMO_OP_READBACK] = 5,
    [DEMO_OP_AM]       = 30
};


static uint64_t demo_load_random(demo_load_t *load)
{
    uint64_t value = load->random;

    value       ^= value << 13;
    value       ^= value >> 7;
    value       ^= value << 17;
    load->random = value;
    return value >> 16;
}

int demo_load_failed(const demo_load_t *load)
{
    return load->stats.error[0] != '\0';
}

uint64_t demo_load_in_flight(const demo_load_t *load)
{
    return load->stats.posted - load->stats.completed;
}

static demo_op_t *demo_op_take(demo_load_ep_t *ep, unsigned cls)
{
    demo_op_t *op = ep->free_ops[cls];

    ep->free_ops[cls] = op->next;
    return op;
}

static void demo_op_put_back(demo_op_t *op)
{
    op->next                  = op->ep->free_ops[op->cls];
    op->ep->free_ops[op->cls] = op;
}

static void *demo_op_tag(demo_load_t *load, demo_op_t *op)
{
    return (void*)((op->serial << DEMO_LOAD_INDEX_BITS) | (op - load->ops));
}

static void demo_op_check(demo_load_t *load, demo_op_t *op)
{
    char error[DEMO_TEXT_LEN];

    if ((op->kind == DEMO_OP_PUT) || (op->kind == DEMO_OP_AM) ||
        demo_word_check(op->buffer, demo_classes[op->cls].size, op->expected,
                        error)) {
        return;
    }

    ++load->stats.bad_contents;
    demo_stats_error(&load->stats, "a get returned wrong data: %.200s", error);
}

/* All completions come here. Place and serial identify the operation, so that a second
 * completion is detected even if another operation uses the place */
static void demo_load_complete(demo_load_t *load, void *tag,
                               ucs_status_t status)
{
    uint64_t value = (uint64_t)tag;
    demo_op_t *op  = &load->ops[value & ((1 << DEMO_LOAD_INDEX_BITS) - 1)];

    if (!op->posted || (op->serial != value >> DEMO_LOAD_INDEX_BITS)) {
        ++load->stats.doubled;
        demo_stats_error(&load->stats, "an operation completed twice");
        return;
    }

    op->posted = 0;
    demo_stats_completed(&load->stats, op->kind, demo_classes[op->cls].size);
    if (status == UCS_OK) {
        demo_op_check(load, op);
    } else {
        ++load->stats.failed;
        demo_stats_error(&load->stats, "operation on endpoint %u failed: %s",
                         op->ep->index, ucs_status_string(status));
    }

    demo_op_put_back(op);
}

/* The load of completions that UCX calls, whose user data has only the place */
static demo_load_t *demo_load_current;

static void
demo_load_callback(void *request, ucs_status_t status, void *user_data)
{
    demo_load_complete(demo_load_current, user_data, status);
    ucp_request_free(request);
}

static ucs_status_ptr_t
demo_op_start(demo_op_t *op, uint64_t remote, ucp_request_param_t *param)
{
    demo_load_ep_t *ep = op->ep;
    size_t length      = demo_classes[op->cls].size;

    switch (op->kind) {
    case DEMO_OP_PUT:
        return ucp_put_nbx(ep->ep, op->buffer, length, remote, ep->rkey,
                           param);
    case DEMO_OP_AM:
        return ucp_am_send_nbx(ep->ep, DEMO_AM_ID, &op->hdr, sizeof(op->hdr),
                               op->buffer, length, param);
    default:
        return ucp_get_nbx(ep->ep, op->buffer, length, remote, ep->rkey,
                           param);
    }
}

static void
demo_op_post(demo_op_t *op, demo_op_kind_t kind, uint64_t remote)
{
    demo_load_t *load         = op->ep->load;
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.send      = demo_load_callback
    };
    ucs_status_ptr_t request;

    op->kind        = kind;
    op->serial      = ++load->serial;
    op->posted      = 1;
    param.user_data = demo_op_tag(load, op);
    demo_stats_posted(&load->stats, kind, demo_classes[op->cls].size);

    request = demo_op_start(op, remote, &param);
    if (!UCS_PTR_IS_PTR(request)) {
        demo_load_complete(load, param.user_data, UCS_PTR_STATUS(request));
    }
}

static void demo_load_fence(demo_load_ep_t *ep)
{
    ucs_status_t status = ucp_worker_fence(ep->worker);

    if (status != UCS_OK) {
        demo_stats_error(&ep->load->stats, "fence failed: %s",
                         ucs_status_string(status));
    }
}

static void demo_load_get(demo_load_ep_t *ep, unsigned cls)
{
    demo_op_t *op = demo_op_take(ep, cls);
    size_t words  = (DEMO_SOURCE_LENGTH - demo_classes[cls].size) / 8;
    size_t first  = demo_load_random(ep->load) % (words + 1);

    op->expected = demo_word(DEMO_WORD_SRC, 0, 0, first);
    memset(op->buffer, 0, demo_classes[cls].size);
    demo_op_post(op, DEMO_OP_GET, ep->load->base + (first * 8));
}

static void demo_load_message(demo_load_ep_t *ep, unsigned cls)
{
    demo_op_t *op = demo_op_take(ep, cls);
    size_t length = demo_classes[cls].size;

    op->hdr.magic  = DEMO_AM_MAGIC;
    op->hdr.ep     = ep->index;
    op->hdr.seq    = ++ep->am_seq;
    op->hdr.length = length;
    ep->am_bytes  += length;
    demo_word_fill(op->buffer, length,
                   demo_word(DEMO_WORD_AM, ep->index, ep->am_seq, 0));
    demo_op_post(op, DEMO_OP_AM, 0);
}

/* Returns the address, to read it back */
static uint64_t demo_load_put(demo_load_ep_t *ep, unsigned cls)
{
    demo_load_t *load         = ep->load;
    const demo_class_t *class = &demo_classes[cls];
    unsigned slot             = ep->next_slot[cls];
    uint64_t remote           = load->base +
                                demo_layout_slot_offset(ep->index, cls, slot);
    demo_op_t *op             = demo_op_take(ep, cls);

    ep->next_slot[cls] = (slot + 1) % class->slots;
    if (slot == 0) {
        demo_load_fence(ep);
    }

    ep->slots[demo_layout_slot_index(cls, slot)] = ++ep->put_seq;
    demo_word_fill(op->buffer, class->size,
                   demo_word(DEMO_WORD_PUT, ep->index, ep->put_seq, 0));
    if (load->ledger != NULL) {
        fprintf(load->ledger, "put %u %" PRIu64 " %" PRIu64 " %zu\n",
                ep->index, ep->put_seq, remote, class->size);
    }

    demo_op_post(op, DEMO_OP_PUT, remote);
    return remote;
}

/* Whether no more operations must be posted, independent of the rate */
static int demo_load_ended(const demo_load_t *load)
{
    return demo_load_failed(load) ||
           ((load->max_ops > 0) && (load->stats.posted >= load->max_ops));
}

static void demo_load_readback(demo_load_ep_t *ep, unsigned cls)
{
    uint64_t remote = demo_load_put(ep, cls);
    demo_op_t *op;

    /* the put counts as an operation, and may have been the last one */
    if ((ep->free_ops[cls] == NULL) || demo_load_ended(ep->load)) {
        return;
    }

    op           = demo_op_take(ep, cls);
    op->expected = demo_word(DEMO_WORD_PUT, ep->index, ep->put_seq, 0);
    memset(op->buffer, 0, demo_classes[cls].size);
    demo_load_fence(ep);
    demo_op_post(op, DEMO_OP_READBACK, remote);
}

static unsigned
demo_load_pick(demo_load_t *load, const unsigned *weights, unsigned count,
               size_t stride)
{
    unsigned sum = 0;
    unsigned i, value;

    for (i = 0; i < count; ++i) {
        sum += weights[i * stride];
    }

    value = demo_load_random(load) % sum;
    for (i = 0; value >= weights[i * stride]; ++i) {
        value -= weights[i * stride];
    }

    return i;
}

/* Returns 0 if the windows are full */
static int demo_load_post_one(demo_load_ep_t *ep)
{
    demo_load_t *load = ep->load;
    demo_op_kind_t kind;
    unsigned cls, i;

    kind = demo_load_pick(load, demo_kind_weights, DEMO_OP_LAST, 1);
    cls  = demo_load_pick(load, &demo_classes[0].weight, DEMO_NUM_CLASSES,
                          sizeof(demo_classes[0]) / sizeof(unsigned));
    for (i = 0; ep->free_ops[cls] == NULL; ++i) {
        if (i == DEMO_NUM_CLASSES) {
            return 0;
        }

        cls = (cls + 1) % DEMO_NUM_CLASSES;
    }

    switch (kind) {
    case DEMO_OP_PUT:
        demo_load_put(ep, cls);
        break;
    case DEMO_OP_GET:
        demo_load_get(ep, cls);
        break;
    case DEMO_OP_READBACK:
        demo_load_readback(ep, cls);
        break;
    default:
        demo_load_message(ep, cls);
        break;
    }

    return 1;
}

static int demo_load_may_post(demo_load_t *load)
{
    uint64_t elapsed;

    if (demo_load_ended(load)) {
        return 0;
    } else if (load->rate == 0) {
        return 1;
    }

    elapsed = demo_now() - load->stats.start;
    return load->stats.posted < load->rate * (elapsed / 1e9);
}

void demo_load_post(demo_load_t *load)
{
    unsigned i, j;

    for (i = 0; i < load->num_eps; ++i) {
        for (j = 0; j < DEMO_LOAD_BURST; ++j) {
            if (!demo_load_may_post(load) ||
                !demo_load_post_one(&load->eps[i])) {
                break;
            }
        }
    }
}

static int demo_load_init_ep(demo_load_t *load, demo_load_ep_t *ep,
                             size_t *offset_p)
{
    demo_op_t *op;
    unsigned cls, i;

    ep->load  = load;
    ep->slots = calloc(demo_layout_num_slots(), sizeof(*ep->slots));
    if (ep->slots == NULL) {
        demo_error("out of memory");
        return -1;
    }

    for (cls = 0; cls < DEMO_NUM_CLASSES; ++cls) {
        for (i = 0; i < demo_classes[cls].window; ++i) {
            op         = &load->ops[load->num_ops++];
            op->ep     = ep;
            op->cls    = cls;
            op->buffer = load->buffers + *offset_p;
            *offset_p += demo_classes[cls].size;
            demo_op_put_back(op);
        }
    }

    return 0;
}

/* Plain memory, which UCX registers and caches itself. When an endpoint fails, UCP
 * completes a rendezvous send, whose key the peer may have, only after it has
 * invalidated the memory. A reference by ucp_mem_map() would prevent this (even with
 * dc_mlx5). */
static int demo_load_alloc_buffers(demo_load_t *load, size_t length)
{
    void *buffers;

    if (posix_memalign(&buffers, DEMO_LOAD_ALIGN, length) != 0) {
        demo_error("out of memory");
        return -1;
    }

    memset(buffers, 0, length);
    load->buffers = buffers;
    return 0;
}

static int demo_load_open_ledger(demo_load_t *load, const char *path)
{
    if (path == NULL) {
        return 0;
    }

    load->ledger = fopen(path, "w");
    if (load->ledger == NULL) {
        demo_error("%s: %s", path, strerror(errno));
        return -1;
    }

    fprintf(load->ledger, "area %" PRIu64 " %" PRIu64 "\n",
            load->base + DEMO_SOURCE_LENGTH,
            (uint64_t)demo_layout_length(load->num_eps) - DEMO_SOURCE_LENGTH);
    return 0;
}

int demo_load_init(demo_load_t *load, const demo_opts_t *opts)
{
    size_t length = 0;
    size_t offset = 0;
    unsigned ops  = 0;
    unsigned i;

    for (i = 0; i < DEMO_NUM_CLASSES; ++i) {
        length += demo_classes[i].window * demo_classes[i].size;
        ops    += demo_classes[i].window;
    }

    demo_load_current = load;
    load->random      = opts->seed * 0x9e3779b97f4a7c15ull;
    load->random     |= 1; /* Zero would stay zero */
    load->rate        = opts->rate;
    load->max_ops     = opts->max_ops;
    load->ops         = calloc(ops * load->num_eps, sizeof(*load->ops));
    if (load->ops == NULL) {
        demo_error("out of memory");
        return -1;
    }

    if ((demo_load_alloc_buffers(load, length * load->num_eps) != 0) ||
        (demo_load_open_ledger(load, opts->ledger_file) != 0)) {
        return -1;
    }

    for (i = 0; i < load->num_eps; ++i) {
        if (demo_load_init_ep(load, &load->eps[i], &offset) != 0) {
            return -1;
        }
    }

    return 0;
}

void demo_load_cleanup(demo_load_t *load)
{
    unsigned i;

    if ((load->ledger != NULL) && (fclose(load->ledger) != 0)) {
        demo_error("could not write the ledger: %s", strerror(errno));
    }

    for (i = 0; i < load->num_eps; ++i) {
        free(load->eps[i].slots);
    }

    free(load->buffers);
    free(load->ops);
}
