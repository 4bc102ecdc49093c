/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Facts of the states of an atomic with extended status.
 */
#include "varuna_amo_sm.h"

const char *uct_varuna_amo_state_names[] = {
    [UCT_VARUNA_AMO_READ]         = "read",
    [UCT_VARUNA_AMO_OCCUPY]       = "occupy",
    [UCT_VARUNA_AMO_CONFIRM]      = "confirm",
    [UCT_VARUNA_AMO_ADVANCE]      = "advance",
    [UCT_VARUNA_AMO_BODY]         = "body",
    [UCT_VARUNA_AMO_WHOLE]        = "whole",
    [UCT_VARUNA_AMO_REREAD]       = "reread",
    [UCT_VARUNA_AMO_MARK]         = "mark",
    [UCT_VARUNA_AMO_HELP]         = "help",
    [UCT_VARUNA_AMO_UNDO]         = "undo",
    [UCT_VARUNA_AMO_LOST_READ]    = "lost-read",
    [UCT_VARUNA_AMO_LOST_ABORT]   = "lost-abort",
    [UCT_VARUNA_AMO_LOST_UNDO]    = "lost-undo",
    [UCT_VARUNA_AMO_RENEW]        = "renew",
    [UCT_VARUNA_AMO_FINISHED]     = "finished",
    [UCT_VARUNA_AMO_LAST]         = NULL
};

int uct_varuna_amo_sm_is_free(const uct_varuna_amo_sm_t *sm)
{
    switch (sm->state) {
    case UCT_VARUNA_AMO_READ:
    case UCT_VARUNA_AMO_OCCUPY:
    case UCT_VARUNA_AMO_BODY:
    case UCT_VARUNA_AMO_WHOLE:
    case UCT_VARUNA_AMO_REREAD:
    case UCT_VARUNA_AMO_MARK:
    case UCT_VARUNA_AMO_HELP:
    case UCT_VARUNA_AMO_UNDO:
        return 1;
    default:
        return 0;
    }
}
