/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Judges the evidence on a silent path. See varuna_diagnosis.h.
 */
#include "varuna_diagnosis.h"

#include <stddef.h>

const char *uct_varuna_fault_names[] = {
    [UCT_VARUNA_FAULT_UNKNOWN] = "unknown fault",
    [UCT_VARUNA_FAULT_LOCAL]   = "local fault",
    [UCT_VARUNA_FAULT_REMOTE]  = "remote fault",
    [UCT_VARUNA_FAULT_BOTH]    = "local and remote fault",
    [UCT_VARUNA_FAULT_LAST]    = NULL
};

uct_varuna_fault_t uct_varuna_diagnose(const uct_varuna_symptoms_t *evidence,
                                       const char **why_p)
{
    if (evidence->our_port_down && evidence->far_port_down) {
        *why_p = "our port is down, and the peer says that its port is";
        return UCT_VARUNA_FAULT_BOTH;
    }

    if (evidence->our_port_down) {
        *why_p = "our port is down";
        return UCT_VARUNA_FAULT_LOCAL;
    }

    if (evidence->far_port_down) {
        *why_p = "the peer says that its port is down";
        return UCT_VARUNA_FAULT_REMOTE;
    }

    if (evidence->inside) {
        *why_p = "what we send to the peer does not leave our port";
        return UCT_VARUNA_FAULT_LOCAL;
    }

    if (evidence->neighbours_answer) {
        *why_p = "other peers answer on this link, behind the same port";
        return UCT_VARUNA_FAULT_REMOTE;
    }

    if (evidence->others_answer) {
        *why_p = "other peers answer on this link";
        return UCT_VARUNA_FAULT_REMOTE;
    }

    if (evidence->others_silent) {
        *why_p = "peers behind other ports are silent on this link, too, and "
                 "none answers: it is our port, its cable or its switch";
        return UCT_VARUNA_FAULT_LOCAL;
    }

    *why_p = "our port, the peer's, or what is between them: no other peer "
             "answered on this link";
    return UCT_VARUNA_FAULT_UNKNOWN;
}
