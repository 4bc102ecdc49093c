/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Places in the server's memory, see demo_layout.h.
 */
#include "demo_layout.h"


/* Sizes from one that fits into a descriptor to one that needs many packets */
const demo_class_t demo_classes[DEMO_NUM_CLASSES] = {
    {8, 64, 24, 30},    {64, 64, 16, 18},   {512, 64, 16, 14},
    {4096, 64, 16, 16}, {16384, 16, 8, 10}, {65536, 8, 4, 6},
    {262144, 4, 2, 4},  {1048576, 2, 2, 2}
};


unsigned demo_layout_slot_index(unsigned cls, unsigned slot)
{
    unsigned index = slot;
    unsigned i;

    for (i = 0; i < cls; ++i) {
        index += demo_classes[i].slots;
    }

    return index;
}

unsigned demo_layout_num_slots(void)
{
    return demo_layout_slot_index(DEMO_NUM_CLASSES, 0);
}

static size_t demo_layout_class_offset(unsigned cls)
{
    size_t offset = 0;
    unsigned i;

    for (i = 0; i < cls; ++i) {
        offset += demo_classes[i].slots * demo_classes[i].size;
    }

    return offset;
}

size_t demo_layout_slot_offset(unsigned ep, unsigned cls, unsigned slot)
{
    return DEMO_SOURCE_LENGTH +
           (ep * demo_layout_class_offset(DEMO_NUM_CLASSES)) +
           demo_layout_class_offset(cls) + (slot * demo_classes[cls].size);
}

size_t demo_layout_length(unsigned num_eps)
{
    return demo_layout_slot_offset(num_eps, 0, 0);
}
