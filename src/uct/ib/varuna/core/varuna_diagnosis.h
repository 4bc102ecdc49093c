/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Whose fault a silent path is, as far as the evidence goes. Pure: the witnesses are
 * gathered by varuna_witness.c, and the heartbeat logs what follows.
 *
 * A witness must be outside: what a process sends to itself, or to others behind the
 * same port, turns back inside the NIC and proves nothing about the link.
 */
#ifndef UCT_VARUNA_DIAGNOSIS_H_
#define UCT_VARUNA_DIAGNOSIS_H_

#include <stdint.h>

typedef enum {
    UCT_VARUNA_FAULT_UNKNOWN,
    UCT_VARUNA_FAULT_LOCAL,    /* Our port, its cable, or its switch */
    UCT_VARUNA_FAULT_REMOTE,   /* The peer's port, or the way to it */
    UCT_VARUNA_FAULT_BOTH,
    UCT_VARUNA_FAULT_LAST
} uct_varuna_fault_t;

/* What is known of one link of ours on which one peer is silent. */
typedef struct uct_varuna_symptoms {
    uint8_t                    our_port_down;
    uint8_t                    far_port_down;  /* So the peer says */
    uint8_t                    inside;         /* The peer is behind our own port */
    uint8_t                    neighbours_answer; /* Others behind the peer's port */
    uint8_t                    others_answer;  /* Peers behind third ports */
    uint8_t                    others_silent;  /* ... that are silent there, too */
} uct_varuna_symptoms_t;

/** Names for the log: "local fault". */
extern const char *uct_varuna_fault_names[];

/**
 * @param [in]  evidence  What is known.
 * @param [out] why_p     A sentence on what says so.
 *
 * @return Whose fault it is.
 */
uct_varuna_fault_t uct_varuna_diagnose(const uct_varuna_symptoms_t *evidence,
                                       const char **why_p);

#endif
