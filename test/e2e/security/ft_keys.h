/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * A client that abuses keys: its accesses (ft_keys.c), for its checks
 * (ft_keys_checks.c).
 */
#ifndef FT_KEYS_H_
#define FT_KEYS_H_

#include "ft_uct.h"

#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include <uct/ib/varuna/requester/extended/varuna_amo_ext.h>

#define FT_TIMEOUT  60.0
#define FT_FORGED   0x666f726765640000ul

/* Words on a page of the server */
#define FT_WORDS    512

/* The server's memory: one page whose key clients get, and one whose key no client
 * gets. Both are full of words that look like UIDs of slots, in this generation. */
#define FT_GEN      4711

typedef struct {
    ft_uct_t          uct;       /* rc_varuna */
    ft_uct_t          raw;       /* Its own queue pairs */
    ft_address_t      server;
    uct_rkey_bundle_t memory;    /* The page with a key */
    uint64_t          secret;    /* Address of the other page */
    uct_varuna_rkey_t guessed;   /* ... and a lucky guess of its key */
    uint64_t          *buffer;   /* Registered with raw */
    uct_mem_h         memh;
} ft_client_t;

/* Address and key */
typedef struct {
    const uct_varuna_ep_t *ep;   /* Has the server's address */
    uint64_t              addr;
    uct_rkey_t            rkey;  /* Outer */
} ft_place_t;

typedef struct {
    const char *name;
    void       (*func)(ft_client_t *client);
} ft_check_t;

/** Ends with a NULL name. */
extern const ft_check_t ft_checks[];

/** Progress. Ends the program at @a end. */
void ft_progress(ft_client_t *client, double end, const char *what);

/** Open a vQP, and wait until an operation completes. */
uct_varuna_ep_t *ft_open(ft_client_t *client);

/** Close it after all operations. */
void ft_close(ft_client_t *client, uct_varuna_ep_t *ep);

/** Print whether an access was executed. */
void ft_tell(const char *name, int is_done);

/** Access a word of the server on a raw queue pair, and print whether the access was
 *  executed. */
void ft_read(ft_client_t *client, const char *name, const ft_place_t *place);
void ft_write(ft_client_t *client, const char *name, const ft_place_t *place,
              uint64_t value);
void ft_cas(ft_client_t *client, const char *name, const ft_place_t *place,
            uint64_t compare, uint64_t swap);

/** Write @a length bytes of client->buffer. @return Whether this was executed. */
int ft_write_bytes(ft_client_t *client, const ft_place_t *place, size_t length);

/** Read a word; the access must be allowed. */
uint64_t ft_peek(ft_client_t *client, const ft_place_t *place);

/** Print whether a word has @a value. */
void ft_expect(ft_client_t *client, const char *name, const ft_place_t *place,
               uint64_t value);

/** A value that looks like the UID of a slot. */
static inline uint64_t ft_uid(uint32_t slot)
{
    uint64_t gen = FT_GEN;

    return ((UCS_BIT(31) | (gen << UCT_VARUNA_UID32_SLOT_BITS) | slot) << 32) |
           UCS_BIT(31) | (gen << UCT_VARUNA_UID32_SLOT_BITS) | slot;
}

#endif
