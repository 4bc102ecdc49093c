/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Reports links that do not suit those of a peer: cables that end in the switch of another
 * network, and other path MTUs.
 */
#ifndef UCT_VARUNA_CABLING_H_
#define UCT_VARUNA_CABLING_H_

#include <uct/ib/varuna/core/varuna_def.h>
#include <uct/ib/varuna/core/varuna_parse.h>

#include <ucs/config/types.h>

/* The links that reach a peer, and its NICs that they reach */
typedef struct uct_varuna_cabling_pairs {
    unsigned                   map;
    uint8_t                    nics[UCT_VARUNA_MAX_LINKS]; /* By link */
} uct_varuna_cabling_pairs_t;

/**
 * Warn, once for each link, of links that do not suit those of a peer. Lock held.
 *
 * One reaches another port than the one with its number, which is there: traffic flows, but
 * links that seem to be independent share a switch. If the user has named the links of one of
 * the two hosts, that is on purpose. If the port has the link's own name, or the hosts have
 * different numbers of links in the same order, one of them has left out a port.
 *
 * Or the path MTUs differ.
 *
 * @param [in] pairs   All links of the peer that are known.
 * @param [in] parsed  The peer's full address. A short one has no names, and is ignored.
 *
 * @return Links that have DC, which does not work between these MTUs.
 */
uint8_t uct_varuna_cabling_check(uct_varuna_ctl_t *ctl,
                                 const uct_varuna_cabling_pairs_t *pairs,
                                 const uct_varuna_parsed_addr_t *parsed);

/**
 * Log that none of our links reaches one of a peer's, with the links of both. Usually
 * UCX_RC_VARUNA_LINKS names links of other networks there.
 */
void uct_varuna_cabling_report(const uct_varuna_iface_t *iface,
                               const uct_varuna_parsed_addr_t *parsed,
                               ucs_log_level_t level);

/** The same as a warning, once, if UCP asks whether a peer can be reached, and uses
 *  another transport or fails. Not if other interfaces may have links to it: of the other
 *  set of lanes, or of another link if each has only some, here or there. */
void uct_varuna_cabling_unreachable(const uct_varuna_iface_t *iface,
                                    const uct_varuna_parsed_addr_t *parsed);

#endif
