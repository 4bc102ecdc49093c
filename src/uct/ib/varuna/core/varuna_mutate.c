/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The names of the mutations, as UCX_RC_VARUNA_MUTATE takes them. Empty in a
 * normal build.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_mutate.h"

#ifdef UCT_VARUNA_MUTATIONS

int uct_varuna_mutation = UCT_VARUNA_MUTATE_NONE;

const char *uct_varuna_mutation_names[] = {
    [UCT_VARUNA_MUTATE_NONE]            = "none",
    [UCT_VARUNA_MUTATE_BLIND_RESEND]    = "blind_resend",
    [UCT_VARUNA_MUTATE_NO_FENCE]        = "no_fence",
    [UCT_VARUNA_MUTATE_NO_PSN]          = "no_psn",
    [UCT_VARUNA_MUTATE_LOG_BEFORE_DATA] = "log_before_data",
    [UCT_VARUNA_MUTATE_NO_GATE]         = "no_gate",
    [UCT_VARUNA_MUTATE_ONE_LOG]         = "one_log",
    [UCT_VARUNA_MUTATE_BELIEVE_STATUS]  = "believe_status",
    [UCT_VARUNA_MUTATE_AM_UNORDERED]    = "am_unordered",
    [UCT_VARUNA_MUTATE_OLD_ERRORS]      = "old_errors",
    [UCT_VARUNA_MUTATE_NO_GENERATION]   = "no_generation",
    [UCT_VARUNA_MUTATE_LOSE_MESSAGE]    = "lose_message",
    [UCT_VARUNA_MUTATE_DOUBT_NOBODY]    = "doubt_nobody",
    [UCT_VARUNA_MUTATE_AMO_NO_HELP]     = "amo_no_help",
    [UCT_VARUNA_MUTATE_AMO_MARK_LATE]   = "amo_mark_late",
    [UCT_VARUNA_MUTATE_AMO_FAIL_UNMARKED] = "amo_fail_unmarked",
    [UCT_VARUNA_MUTATE_AMO_ONE_LOOK]    = "amo_one_look",
    [UCT_VARUNA_MUTATE_AMO_MARK_FIRST]  = "amo_mark_first",
    [UCT_VARUNA_MUTATE_AMO_NO_GEN]      = "amo_no_gen",
    [UCT_VARUNA_MUTATE_AMO_GEN_16]      = "amo_gen_16",
    [UCT_VARUNA_MUTATE_AMO_NOT_FLUSHED] = "amo_not_flushed",
    [UCT_VARUNA_MUTATE_AMO_ANY_NIC]     = "amo_any_nic",
    [UCT_VARUNA_MUTATE_AMO_CPU]         = "amo_cpu",
    [UCT_VARUNA_MUTATE_AMO_MOVE_UNFENCED] = "amo_move_unfenced",
    [UCT_VARUNA_MUTATE_AMO_FENCE_PASSED] = "amo_fence_passed",
    [UCT_VARUNA_MUTATE_ANY_OPENING]     = "any_opening",
    [UCT_VARUNA_MUTATE_AM_WRAP]         = "am_wrap",
    [UCT_VARUNA_MUTATE_LAST]            = NULL
};

#endif
