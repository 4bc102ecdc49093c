/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Parts of ft_fuzz: what a hostile peer says (ft_fuzz_make.c), and how it is spoilt
 * (ft_fuzz_mutate.c). What is sent depends on nothing but the seed, the number of the
 * step and what the victim has answered.
 */
#ifndef FT_FUZZ_H_
#define FT_FUZZ_H_

#include "ft_ctl_msg.h"

#define FT_FUZZ_IDENTITIES 4
#define FT_FUZZ_VQPS       16
#define FT_FUZZ_RECORDS    64
#define FT_FUZZ_DELAYED    16
#define FT_FUZZ_MEMORY     8192

/* Random numbers, as many as one likes of each (seed, step) */
typedef struct {
    uint64_t state;
} ft_rng_t;

static inline uint64_t ft_rng_next(ft_rng_t *rng)
{
    uint64_t z = (rng->state += 0x9e3779b97f4a7c15ul);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ul;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebul;
    return z ^ (z >> 31);
}

static inline void ft_rng_init(ft_rng_t *rng, uint64_t seed, uint64_t step)
{
    rng->state  = seed;
    rng->state  = ft_rng_next(rng) ^ (step * 0xd6e8feb86659fd93ul);
}

/* 0 to limit - 1 */
static inline unsigned ft_rng_below(ft_rng_t *rng, unsigned limit)
{
    return ft_rng_next(rng) % limit;
}

static inline int ft_rng_one_in(ft_rng_t *rng, unsigned count)
{
    return ft_rng_below(rng, count) == 0;
}

/* A message, and where it goes */
typedef struct {
    int          used;
    uint8_t      am_id;
    uint8_t      link;
    uint8_t      to_data;  /* To the data lane */
    ft_ctl_msg_t msg;
} ft_shot_t;

typedef struct {
    uint64_t      seed;
    ft_ctl_t      ctl;
    ft_ctl_peer_t victim;                      /* Its control plane */
    ft_ctl_peer_t data;                        /* Its data lanes */
    int           has_data;
    ft_address_t  address;                     /* Memory that it lets us change */
    uint64_t      identities[FT_FUZZ_IDENTITIES]; /* The first is the one we
                                                  publish, the last is the friend's */
    ft_ctl_vqp_t  vqps[FT_FUZZ_VQPS];          /* Each is of identity i modulo
                                                  FT_FUZZ_IDENTITIES */
    ft_uct_t      rc[UCT_VARUNA_MAX_LINKS];
    uct_ep_h      rc_eps[UCT_VARUNA_MAX_LINKS];
    ft_ctl_rc_t   rc_addrs[UCT_VARUNA_MAX_LINKS];
    uint8_t       *memory;                     /* For its puts and logs */
    uct_mem_h     memhs[UCT_VARUNA_MAX_LINKS];
    ft_shot_t     records[FT_FUZZ_RECORDS];    /* Sent or received */
    unsigned      num_records;
    ft_shot_t     asks[FT_FUZZ_RECORDS];       /* Requests of the victim */
    unsigned      num_asks, num_answered;
    ft_shot_t     delayed[FT_FUZZ_DELAYED];
    uint32_t      openings;
    uint64_t      answers, opened, mutated, lost;
} ft_fuzz_t;

/** Make a message of some kind. @return 0 if there is none of that kind now. */
int ft_fuzz_make(ft_fuzz_t *fuzz, ft_rng_t *rng, ft_shot_t *shot);

/** Make an answer to what the victim has asked. @return 0 if there is none. */
int ft_fuzz_make_answer(ft_fuzz_t *fuzz, ft_rng_t *rng, const ft_shot_t *ask,
                        ft_shot_t *shot);

/** Learn from what has come. @return Whether it is to be answered. */
int ft_fuzz_learn(ft_fuzz_t *fuzz, const void *data, size_t length);

/** Spoil it. */
void ft_fuzz_mutate(const ft_fuzz_t *fuzz, ft_rng_t *rng, ft_shot_t *shot);

#endif
