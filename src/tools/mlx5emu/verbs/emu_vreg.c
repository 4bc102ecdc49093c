/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED. See LICENSE for terms (BSD-3-Clause). */

/*
 * Registry of objects which events refer to. Called by the create and destroy
 * functions of CQs, QPs and SRQs, and where events are read.
 *
 * A cookie is  serial << 32 | slot: slots are reused, serials aren't.
 */

#include "emu_verbs.h"

#include <stdlib.h>


typedef struct emu_vreg_slot {
    void     *obj;      /* NULL: free */
    uint32_t serial;
    uint32_t next_free;
} emu_vreg_slot_t;


/* Protects all of the registry */
static pthread_mutex_t emu_vreg_lock = PTHREAD_MUTEX_INITIALIZER;
static emu_vreg_slot_t *emu_vreg_slots;
static uint32_t emu_vreg_num_slots;
static uint32_t emu_vreg_free = UINT32_MAX;
static uint32_t emu_vreg_serial;


static int emu_vreg_grow(void)
{
    uint32_t num = (emu_vreg_num_slots == 0) ? 64 : emu_vreg_num_slots * 2;
    emu_vreg_slot_t *slots;
    uint32_t i;

    slots = realloc(emu_vreg_slots, num * sizeof(*slots));
    if (slots == NULL) {
        return ENOMEM;
    }

    for (i = emu_vreg_num_slots; i < num; ++i) {
        slots[i].obj       = NULL;
        slots[i].serial    = 0;
        slots[i].next_free = (i + 1 < num) ? (i + 1) : UINT32_MAX;
    }

    emu_vreg_free      = emu_vreg_num_slots;
    emu_vreg_slots     = slots;
    emu_vreg_num_slots = num;
    return 0;
}

/**
 * @return Name of the object, or 0 if there is no memory.
 */
uint64_t emu_vreg_add(void *obj)
{
    uint64_t cookie = 0;
    uint32_t slot;

    pthread_mutex_lock(&emu_vreg_lock);
    if ((emu_vreg_free == UINT32_MAX) && (emu_vreg_grow() != 0)) {
        goto out;
    }

    slot                        = emu_vreg_free;
    emu_vreg_free               = emu_vreg_slots[slot].next_free;
    emu_vreg_slots[slot].obj    = obj;
    emu_vreg_slots[slot].serial = ++emu_vreg_serial;
    cookie                      = ((uint64_t)emu_vreg_serial << 32) | slot;

out:
    pthread_mutex_unlock(&emu_vreg_lock);
    return cookie;
}

void emu_vreg_remove(uint64_t cookie)
{
    uint32_t slot = (uint32_t)cookie;

    pthread_mutex_lock(&emu_vreg_lock);
    if ((slot < emu_vreg_num_slots) && (emu_vreg_slots[slot].obj != NULL) &&
        (emu_vreg_slots[slot].serial == (cookie >> 32))) {
        emu_vreg_slots[slot].obj       = NULL;
        emu_vreg_slots[slot].next_free = emu_vreg_free;
        emu_vreg_free                  = slot;
    }
    pthread_mutex_unlock(&emu_vreg_lock);
}

/**
 * Find an object and add one to a counter of it: the counter is only changed
 * here, and not any more once emu_vreg_remove() has returned.
 *
 * @param [in] counter_offset  Where in the object the counter is.
 *
 * @return The object, or NULL if it was removed.
 */
void *emu_vreg_find_count(uint64_t cookie, size_t counter_offset)
{
    uint32_t slot = (uint32_t)cookie;
    void *obj     = NULL;

    pthread_mutex_lock(&emu_vreg_lock);
    if ((slot < emu_vreg_num_slots) &&
        (emu_vreg_slots[slot].serial == (cookie >> 32))) {
        obj = emu_vreg_slots[slot].obj;
    }

    if (obj != NULL) {
        ++*(unsigned*)((char*)obj + counter_offset);
    }
    pthread_mutex_unlock(&emu_vreg_lock);
    return obj;
}
