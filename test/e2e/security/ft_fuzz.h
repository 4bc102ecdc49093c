/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Parts of ft_fuzz: the messages of a hostile peer (ft_fuzz_make.c), and their
 * mutations (ft_fuzz_mutate.c). Messages depend only on the seed, the number of the
 * step and the victim's answers.
 */
#ifndef FT_FUZZ_H_
#define FT_FUZZ_H_

#include "ft_ctl_msg.h"

#define FT_FUZZ_IDENTITIES 4
#define FT_FUZZ_VQPS       16
#define FT_FUZZ_RECORDS    64
#define FT_FUZZ_DELAYED    16
#define FT_FUZZ_MEMORY     8192

/* An endless sequence of random numbers for each (seed, step) */
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

/* A message and its destination */
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
    ft_address_t  address;                     /* Memory that it allows us to change */
    uint64_t      identities[FT_FUZZ_IDENTITIES]; /* First the published
                                                      one, last the friend's */
    ft_ctl_vqp_t  vqps[FT_FUZZ_VQPS];          /* i: of identity i modulo
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

/** Make a message of a random kind. @return 0 if this kind is not possible now. */
int ft_fuzz_make(ft_fuzz_t *fuzz, ft_rng_t *rng, ft_shot_t *shot);

/** Make an answer to a request of the victim. @return 0 if there is none. */
int ft_fuzz_make_answer(ft_fuzz_t *fuzz, ft_rng_t *rng, const ft_shot_t *ask,
                        ft_shot_t *shot);

/** Store the contents of a received message. @return Whether it needs an answer. */
int ft_fuzz_learn(ft_fuzz_t *fuzz, const void *data, size_t length);

/** Modify a message. */
void ft_fuzz_mutate(const ft_fuzz_t *fuzz, ft_rng_t *rng, ft_shot_t *shot);

#endif
