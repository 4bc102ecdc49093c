/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Parts of ft_victim: vQPs whose data is checked (ft_victim_check.c), and the plugin's
 * objects for peers (ft_victim_objects.c).
 */
#ifndef FT_VICTIM_H_
#define FT_VICTIM_H_

#include "ft_uct.h"

#define FT_CHECK_MAX_VQPS 16
#define FT_CHECK_AREA     1024
#define FT_CHECK_AM_ID    3
#define FT_CHECK_HOSTILE_ID 4 /* Of messages to the hostile peer */

/* Registered memory for each vQP of the friend */
typedef struct {
    uint8_t  area[FT_CHECK_AREA];
    uint64_t counter;             /* For fetch and add */
    uint64_t received;            /* Messages of that vQP, in order */
    uint8_t  pad[FT_CHECK_AREA - (2 * sizeof(uint64_t))];
} ft_check_slot_t;

typedef enum {
    FT_CHECK_PUT,
    FT_CHECK_ADD,
    FT_CHECK_SEND,
    FT_CHECK_FLUSH,
    FT_CHECK_GET,
    FT_CHECK_COMPARE
} ft_check_step_t;

/* A vQP to the friend. A round: put, fetch and add, message, flush, get */
typedef struct {
    uct_ep_h         ep;
    unsigned         index;
    ft_check_step_t  step;
    uint64_t         round;
    uint64_t         added;       /* Result of fetch and add */
    uct_completion_t comp;
    uint8_t          *source;     /* FT_CHECK_AREA bytes each, registered */
    uint8_t          *result;
} ft_check_vqp_t;

typedef struct {
    ft_uct_t          *uct;
    uint64_t          token;      /* In the friend's messages; the hostile peer
                                does not have it */
    ft_check_slot_t   *slots;     /* Ours */
    uct_mem_h         slots_memh;
    uint8_t           *buffers;
    uct_mem_h         buffers_memh;
    uint64_t          *sent;      /* Result of the final check, registered */
    uint64_t          friend_token;
    ft_address_t      friend;
    uct_rkey_bundle_t rkey;
    unsigned          num_vqps;
    ft_check_vqp_t    vqps[FT_CHECK_MAX_VQPS];
    int               is_ending;  /* No further round */
    uint64_t          foreign;    /* Messages without the token */
} ft_check_t;

/** Memory and the handler of messages. */
void ft_check_init(ft_check_t *check, ft_uct_t *uct, uint64_t token);

/** Open vQPs to the friend. */
void ft_check_connect(ft_check_t *check, const ft_address_t *friend,
                      uint64_t token, unsigned num_vqps);

/** One step of all vQPs. Ends the program if something is wrong.
 *  @return Whether one is in the middle of a round. */
int ft_check_progress(ft_check_t *check);

/** The smallest number of rounds of a vQP. */
uint64_t ft_check_rounds(const ft_check_t *check);

/** Check, after the last round, that all messages have arrived once. */
void ft_check_finish(ft_check_t *check);

void ft_check_cleanup(ft_check_t *check);

/* Objects of the plugin, for its own vQPs and for peers */
typedef struct {
    unsigned targets;  /* Open ones */
    unsigned orphans;  /* Kept, but given up */
    unsigned peers;
    unsigned ctl_eps;
    unsigned held;     /* Messages, of all targets */
    unsigned inbox;
    unsigned queue;
    unsigned rc;       /* Queue pairs of targets */
} ft_objects_t;

/** Count them. */
void ft_objects_get(const ft_uct_t *uct, ft_objects_t *objects);

/** Set each count to the maximum of both. */
void ft_objects_max(ft_objects_t *objects, const ft_objects_t *other);

void ft_objects_print(const char *what, const ft_objects_t *objects);

/** Failovers of a vQP so far. */
unsigned long ft_objects_switches(uct_ep_h ep);

#endif
