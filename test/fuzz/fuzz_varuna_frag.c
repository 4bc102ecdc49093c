/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Datagrams of several sources, of two kinds:
 *
 *   - forged ones, each with a header of its own choice, in another wire version, whose
 *     messages are not checked. A message that comes of them must consist of what one
 *     source sent for that message alone: its bytes say whose they are.
 *   - parts of messages that were cut as the plugin does, in any order, some of them missing
 *     or repeated, by a sender that gives several messages the same number. What comes of
 *     them must be one of these messages.
 */
#include "fuzz.h"
#include "config.h"
#include <uct/ib/varuna/core/varuna_frag.h>

#include <ucs/sys/math.h>

#define FRAG_SOURCES 4
#define FRAG_NUMBERS 8

typedef struct frag_step {
    uint8_t  who;     /* Source, number of the message; the highest bit: not forged */
    uint8_t  index;
    uint16_t length;
    uint16_t offset;  /* Not forged: which message, and which MTU */
    uint16_t size;
    uint8_t  am_id;
} __attribute__((packed)) frag_step_t;

typedef struct frag_datagram {
    uct_varuna_frag_hdr_t hdr;
    char                  data[UCT_VARUNA_FRAG_MAX_LENGTH];
} __attribute__((packed)) frag_datagram_t;

/* Message number @a variant */
static void frag_fill(uint8_t *data, size_t length, unsigned variant)
{
    size_t i;

    for (i = 0; i < length; ++i) {
        data[i] = variant + (i * 7) + (i >> 8);
    }
}

static size_t frag_forge(const frag_step_t *step, uint8_t tag, frag_datagram_t *datagram)
{
    size_t size = step->size % (UCT_VARUNA_FRAG_MAX_LENGTH + 1);

    datagram->hdr.magic   = UCT_VARUNA_WIRE_MAGIC;
    datagram->hdr.version = UCT_VARUNA_WIRE_VERSION - 1;
    datagram->hdr.am_id   = step->am_id;
    datagram->hdr.number  = tag / FRAG_SOURCES;
    datagram->hdr.sender  = 1;
    datagram->hdr.length  = step->length;
    datagram->hdr.offset  = step->offset;
    datagram->hdr.size    = size;
    datagram->hdr.index   = step->index;
    memset(datagram->data, tag + 1, size);
    return size;
}

static size_t frag_part(const frag_step_t *step, uint8_t tag, frag_datagram_t *datagram)
{
    size_t length = step->length % (UCT_VARUNA_FRAG_MAX_MSG + 1);
    uint8_t data[UCT_VARUNA_FRAG_MAX_LENGTH];
    uct_varuna_frag_hdr_t hdrs[UCT_VARUNA_FRAG_MAX];
    unsigned count;

    frag_fill(data, length, step->offset % 4);
    count         = uct_varuna_frag_cut(hdrs, data, 1, tag / FRAG_SOURCES, step->am_id,
                                        uct_varuna_frag_room(256 << (step->offset / 4 % 5)),
                                        length);
    datagram->hdr = hdrs[step->index % count];
    memcpy(datagram->data, data + datagram->hdr.offset, datagram->hdr.size);
    return datagram->hdr.size;
}

static void frag_check(const frag_datagram_t *datagram, uint8_t tag, const uint8_t *msg,
                       size_t length)
{
    uint8_t want[UCT_VARUNA_FRAG_MAX_MSG];
    size_t i;

    if (datagram->hdr.version == UCT_VARUNA_WIRE_VERSION) {
        FUZZ_CHECK((length + sizeof(uct_varuna_frag_sum_t)) == datagram->hdr.length);
        if (length > 0) {
            FUZZ_CHECK(msg[0] < 4);
            frag_fill(want, length, msg[0]);
            FUZZ_CHECK(memcmp(want, msg, length) == 0);
        }
        return;
    }

    FUZZ_CHECK((length == datagram->hdr.length) && (length <= UCT_VARUNA_FRAG_MAX_LENGTH));
    for (i = 0; i < length; ++i) {
        FUZZ_CHECK(msg[i] == (tag + 1));
    }
}

static void frag_step(uct_varuna_frags_t *frags, const frag_step_t *step)
{
    uint8_t tag = step->who % (FRAG_SOURCES * FRAG_NUMBERS);
    uct_varuna_frag_source_t source;
    frag_datagram_t datagram;
    void *msg = NULL;
    size_t length, size;
    uint8_t am_id;
    void *copy;

    size = sizeof(datagram.hdr) + ((step->who & 0x80) ?
                                   frag_part(step, tag, &datagram) :
                                   frag_forge(step, tag, &datagram));

    /* Exactly this length, so that the sanitizer detects reads after the end */
    copy = malloc(size);
    FUZZ_CHECK(copy != NULL);
    memcpy(copy, &datagram, size);
    uct_varuna_frag_source_init(&source, NULL, 1, tag % FRAG_SOURCES);
    if (uct_varuna_frag_take(frags, &source, copy, size, &am_id, &msg, &length) ==
        UCS_OK) {
        FUZZ_CHECK(am_id == step->am_id);
        frag_check(&datagram, tag, msg, length);
    }

    FUZZ_CHECK(frags->bytes <= UCT_VARUNA_FRAG_MAX_BYTES);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input_t in = { data, size };
    uct_varuna_frags_t frags;
    frag_step_t step;

    FUZZ_CHECK(uct_varuna_frags_init(&frags) == UCS_OK);
    while (in.size > 0) {
        fuzz_take(&in, &step, sizeof(step));
        frag_step(&frags, &step);
    }

    uct_varuna_frags_cleanup(&frags);
    return 0;
}

void fuzz_seeds(void (*add)(const void *data, size_t size))
{
    frag_step_t steps[UCT_VARUNA_FRAG_MAX];
    unsigned size, i;

    for (size = 1000; size <= 2000; size += 500) {
        memset(steps, 0, sizeof(steps));
        for (i = 0; i < 3; ++i) {
            steps[i].index  = i;
            steps[i].length = 3 * size - 500;
            steps[i].offset = i * size;
            steps[i].size   = (i < 2) ? size : size - 500;
        }

        add(steps, 3 * sizeof(steps[0]));
        steps[1].who = 1; /* Of another source, */
        add(steps, 3 * sizeof(steps[0]));
        steps[1].who    = 0;
        steps[1].offset = 0; /* twice the same place, */
        add(steps, 3 * sizeof(steps[0]));
        steps[1].index = 2;  /* and in another order */
        add(steps, 3 * sizeof(steps[0]));
    }
    /* A message; then the head of one and the tail of another */
    memset(steps, 0, sizeof(steps));
    for (i = 0; i < 5; ++i) {
        steps[i].who    = 0x80;
        steps[i].index  = i;
        steps[i].length = 1000;
    }
    add(steps, 5 * sizeof(steps[0]));
    steps[4].offset = 1;
    add(steps, 5 * sizeof(steps[0]));
    steps[4] = steps[3];
    add(steps, 5 * sizeof(steps[0]));
}
