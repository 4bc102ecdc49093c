/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * A client that uses keys for more than they are meant for: what its checks
 * (ft_keys_checks.c) need of its accesses (ft_keys.c).
 */
#ifndef FT_KEYS_H_
#define FT_KEYS_H_

#include "ft_uct.h"

#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include <uct/ib/varuna/requester/varuna_ep.h>
#include <uct/ib/varuna/md/varuna_rkey.h>

#define FT_TIMEOUT  60.0
#define FT_FORGED   0x666f726765640000ul

/* Words on a page of the server */
#define FT_WORDS    512

/* The server's memory: one page whose key clients get, and one whose key nobody gets.
 * Both are full of what looks like UIDs of slots, in this generation. */
#define FT_GEN      4711

typedef struct {
    ft_uct_t          uct;       /* rc_varuna */
    ft_uct_t          raw;       /* Its own queue pairs */
    ft_address_t      server;
    uct_rkey_bundle_t memory;    /* What the server has given us a key for */
    uint64_t          secret;    /* Where the other page is */
    uct_varuna_rkey_t guessed;   /* ... and a lucky guess of its key */
    uint64_t          *buffer;   /* Registered with raw */
    uct_mem_h         memh;
} ft_client_t;

/* Where and with which key */
typedef struct {
    const uct_varuna_ep_t *ep;   /* The server's address is known to it */
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

/** Open a vQP, and wait until it works. */
uct_varuna_ep_t *ft_open(ft_client_t *client);

/** Close it when all is done. */
void ft_close(ft_client_t *client, uct_varuna_ep_t *ep);

/** Print whether an access was executed. */
void ft_tell(const char *name, int is_done);

/** Access a word of the server on a queue pair of our own, and print whether it was
 *  executed. */
void ft_read(ft_client_t *client, const char *name, const ft_place_t *place);
void ft_write(ft_client_t *client, const char *name, const ft_place_t *place,
              uint64_t value);
void ft_cas(ft_client_t *client, const char *name, const ft_place_t *place,
            uint64_t compare, uint64_t swap);

/** Write @a length bytes of client->buffer. @return whether it was executed. */
int ft_write_bytes(ft_client_t *client, const ft_place_t *place, size_t length);

/** Read a word that can be read. */
uint64_t ft_peek(ft_client_t *client, const ft_place_t *place);

/** Print whether a word has @a value. */
void ft_expect(ft_client_t *client, const char *name, const ft_place_t *place,
               uint64_t value);

/** What looks like the UID of a slot. */
static inline uint64_t ft_uid(uint32_t slot)
{
    return UCS_BIT(63) | ((uint64_t)FT_GEN << UCT_VARUNA_UID64_SLOT_BITS) | slot;
}

#endif
