/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Datagrams of several sources, each with headers of its own choice. A message that
 * comes of them must consist of what one source sent for that message alone: its bytes
 * say whose they are.
 */
#include "fuzz.h"
#include "config.h"
#include <uct/ib/varuna/core/varuna_frag.h>

#define FRAG_SOURCES 4
#define FRAG_NUMBERS 8

typedef struct frag_step {
    uint8_t  who;     /* Source, number of the message */
    uint8_t  index;
    uint16_t length;
    uint16_t offset;
    uint16_t size;
    uint8_t  am_id;
} __attribute__((packed)) frag_step_t;

static void frag_step(uct_varuna_frags_t *frags, const frag_step_t *step)
{
    struct {
        uct_varuna_frag_hdr_t hdr;
        char                  data[UCT_VARUNA_FRAG_MAX_MSG];
    } __attribute__((packed)) datagram;
    uint8_t tag = step->who % (FRAG_SOURCES * FRAG_NUMBERS);
    size_t size = step->size % (UCT_VARUNA_FRAG_MAX_MSG + 1);
    uct_varuna_frag_source_t source;
    const void *msg = NULL;
    size_t length, i;
    uint8_t am_id;
    void *copy;

    datagram.hdr.magic   = UCT_VARUNA_WIRE_MAGIC;
    datagram.hdr.version = UCT_VARUNA_WIRE_VERSION;
    datagram.hdr.am_id   = step->am_id;
    datagram.hdr.number  = tag / FRAG_SOURCES;
    datagram.hdr.sender  = 1;
    datagram.hdr.length  = step->length;
    datagram.hdr.offset  = step->offset;
    datagram.hdr.size    = size;
    datagram.hdr.index   = step->index;
    memset(datagram.data, tag + 1, size);

    /* Exactly this length, so that the sanitizer detects reads after the end */
    copy = malloc(sizeof(datagram.hdr) + size);
    FUZZ_CHECK(copy != NULL);
    memcpy(copy, &datagram, sizeof(datagram.hdr) + size);
    uct_varuna_frag_source_init(&source, NULL, 1, tag % FRAG_SOURCES);
    if (uct_varuna_frag_take(frags, &source, copy, sizeof(datagram.hdr) + size, &am_id,
                             &msg, &length) == UCS_OK) {
        FUZZ_CHECK((am_id == step->am_id) && (length == step->length));
        FUZZ_CHECK(length <= UCT_VARUNA_FRAG_MAX_MSG);
        for (i = 0; i < length; ++i) {
            FUZZ_CHECK(((const uint8_t*)msg)[i] == (tag + 1));
        }
    }

    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uct_varuna_frags_t frags;
    fuzz_input_t in = { data, size };
    frag_step_t step;

    memset(&frags, 0, sizeof(frags));
    while (in.size > 0) {
        fuzz_take(&in, &step, sizeof(step));
        frag_step(&frags, &step);
    }

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
}
