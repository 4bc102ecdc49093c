/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The server's memory: a constant source region to read from, and for each endpoint a
 * put area of slots, in size classes. Both sides compute the same offsets from it.
 *
 *     | source region | endpoint 0: 8 B slots, 64 B slots, ... | endpoint 1 ...
 */
#ifndef DEMO_LAYOUT_H
#define DEMO_LAYOUT_H

#include "demo_def.h"


#define DEMO_NUM_CLASSES   8
#define DEMO_SOURCE_LENGTH ((size_t)DEMO_MAX_MSG)


typedef struct {
    size_t   size;
    unsigned slots;  /* In each endpoint's put area */
    unsigned window; /* Operations of this class in flight per endpoint */
    unsigned weight; /* How often the load uses it, relative to the sum */
} demo_class_t;


extern const demo_class_t demo_classes[DEMO_NUM_CLASSES];


/** Number of slots of one endpoint, in all classes. */
unsigned demo_layout_num_slots(void);

/** Offset of a slot in the server's memory. */
size_t demo_layout_slot_offset(unsigned ep, unsigned cls, unsigned slot);

/** Index of a slot among all slots of its endpoint. */
unsigned demo_layout_slot_index(unsigned cls, unsigned slot);

/** Length of the server's memory for @a num_eps endpoints. */
size_t demo_layout_length(unsigned num_eps);

#endif
