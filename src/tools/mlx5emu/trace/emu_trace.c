/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The trace ring. See emu_trace.h.
 */

#include "emu_trace.h"

#include <string.h>
#include <time.h>

/* Milliseconds after which an entry will never be finished: its writer has died.
 * One that lives may well be without a CPU while others write many entries */
#define EMU_TRACE_PATIENCE 1000

const char *emu_trace_op_names[EMU_TRACE_LAST] = {
    [EMU_TRACE_SEND]      = "send",
    [EMU_TRACE_SEND_IMM]  = "send_imm",
    [EMU_TRACE_WRITE]     = "write",
    [EMU_TRACE_WRITE_IMM] = "write_imm",
    [EMU_TRACE_READ]      = "read",
    [EMU_TRACE_CAS]       = "cas",
    [EMU_TRACE_FAA]       = "faa",
    [EMU_TRACE_QUIRK]     = "quirk"
};

const char *emu_trace_ack_names[EMU_TRACE_ACK_LAST] = {
    [EMU_TRACE_ACK_NONE]    = "none",
    [EMU_TRACE_ACK_SENT]    = "sent",
    [EMU_TRACE_ACK_LOST]    = "lost",
    [EMU_TRACE_ACK_DELAYED] = "delayed"
};

/* One word contains an entry's number and, above it, the fate of its acknowledgement.
 * The latter is known later, when the slot may already be another entry's */
#define EMU_TRACE_SEQ_BITS 56
#define EMU_TRACE_SEQ_MASK ((1ul << EMU_TRACE_SEQ_BITS) - 1)

_Static_assert((sizeof(emu_trace_entry_t) % sizeof(uint64_t)) == 0,
               "entries are copied by words");

/* A slot may be read, or be overtaken by a writer one lap later, while it is written.
 * Its number shows that; the words themselves are never torn. */
static void emu_trace_copy(void *dst, const void *src)
{
    uint64_t *to         = dst;
    const uint64_t *from = src;
    unsigned i;

    for (i = 0; i < sizeof(emu_trace_entry_t) / sizeof(uint64_t); ++i) {
        __atomic_store_n(&to[i], __atomic_load_n(&from[i], __ATOMIC_RELAXED),
                         __ATOMIC_RELAXED);
    }
}

uint64_t emu_trace_add(emu_trace_t *trace, emu_trace_entry_t *entry)
{
    emu_trace_entry_t *slot;
    uint64_t seq;

    if (trace->num_entries == 0) {
        return 0;
    }

    seq        = __atomic_add_fetch(&trace->next, 1, __ATOMIC_RELAXED);
    slot       = &trace->entries[(seq - 1) % trace->num_entries];
    entry->seq = 0;
    __atomic_store_n(&slot->seq, 0, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    emu_trace_copy(slot, entry);
    __atomic_store_n(&slot->seq, seq, __ATOMIC_RELEASE);
    return seq;
}

void emu_trace_set_ack(emu_trace_t *trace, uint64_t seq, emu_trace_ack_t ack)
{
    emu_trace_entry_t *slot;
    uint64_t old;

    if (seq == 0) {
        return;
    }

    slot = &trace->entries[(seq - 1) % trace->num_entries];
    old  = __atomic_load_n(&slot->seq, __ATOMIC_RELAXED);
    while (((old & EMU_TRACE_SEQ_MASK) == seq) &&
           !__atomic_compare_exchange_n(&slot->seq, &old,
                                        seq | ((uint64_t)ack <<
                                               EMU_TRACE_SEQ_BITS), 0,
                                        __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
    }
}

uint64_t emu_trace_count(const emu_trace_t *trace)
{
    return __atomic_load_n(&trace->next, __ATOMIC_ACQUIRE);
}

/* Wait until the entry has been written, or is overwritten by a later one */
static void emu_trace_await(const emu_trace_entry_t *slot, uint64_t seq)
{
    struct timespec pause = {0, 1000000};
    unsigned i;

    for (i = 0; ((__atomic_load_n(&slot->seq, __ATOMIC_ACQUIRE) &
                   EMU_TRACE_SEQ_MASK) < seq) &&
                (i < EMU_TRACE_PATIENCE); ++i) {
        nanosleep(&pause, NULL);
    }
}

unsigned emu_trace_read(const emu_trace_t *trace, uint64_t *pos_p,
                        emu_trace_entry_t *entries, unsigned max,
                        uint64_t *lost_p)
{
    uint64_t next  = emu_trace_count(trace);
    unsigned count = 0;
    const emu_trace_entry_t *slot;
    uint64_t seq;

    if (next > *pos_p + trace->num_entries) {
        *lost_p += next - trace->num_entries - *pos_p;
        *pos_p   = next - trace->num_entries;
    }

    while ((*pos_p < next) && (count < max)) {
        slot = &trace->entries[*pos_p % trace->num_entries];
        emu_trace_await(slot, *pos_p + 1);
        emu_trace_copy(&entries[count], slot);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        seq                 = __atomic_load_n(&slot->seq, __ATOMIC_RELAXED);
        entries[count].ack  = seq >> EMU_TRACE_SEQ_BITS;
        entries[count].seq &= EMU_TRACE_SEQ_MASK;
        seq                &= EMU_TRACE_SEQ_MASK;
        if ((seq == *pos_p + 1) && (entries[count].seq == seq)) {
            count++;
        } else {
            ++*lost_p;
        }
        ++*pos_p;
    }

    return count;
}
