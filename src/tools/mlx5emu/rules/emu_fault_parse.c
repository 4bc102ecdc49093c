/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Text form of fault rules: the parser. The printer is in emu_fault_text.c. The
 * language is described in mlx5emu(1); keep all alike. Pure: see
 * emu_fault_rule.h.
 */

#include "emu_fault_action.h"
#include "emu_fault_select.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int emu_fault_parse_word(emu_fault_parser_t *p, char *word)
{
    char *value = strchr(word, '=');
    int index;

    if (!p->have_point) {
        index = emu_fault_name_find(emu_fault_point_names,
                                    EMU_FAULT_POINT_LAST, word);
        if (index < 0) {
            return emu_fault_fail(p, "a rule starts with a point: post, "
                                  "packet, exec, ack, rmw or err, not \"%s\"",
                                  word);
        }

        p->have_point = 1;
        p->rule.point = index;
        return 0;
    }

    if (value != NULL) {
        *value++ = '\0';
    }

    index = emu_fault_name_find(emu_fault_action_names, EMU_FAULT_ACTION_LAST,
                                word);
    /* "count" is an action when bare and a selector when it has a value */
    if ((index < 0) ||
        ((index == EMU_FAULT_ACTION_NONE) && (value != NULL))) {
        return emu_fault_parse_selector(p, word, value);
    }

    return emu_fault_parse_action(p, index, word, value);
}

/* At point err there is a queue pair, and no request */
static int emu_fault_check_err(emu_fault_parser_t *p)
{
    const emu_fault_rule_t *rule = &p->rule;

    if ((rule->op_mask != 0) || (rule->prev_mask != 0) ||
        (rule->peer != EMU_FAULT_ANY) || (rule->wqe != EMU_FAULT_ANY) ||
        (rule->size_min != 0) || (rule->size_max != UINT64_MAX) ||
        (rule->prev_min != 0) || (rule->prev_max != UINT64_MAX)) {
        return emu_fault_fail(p, "at point err there is no request: only host=, "
                              "link=, qp= and type= select");
    }

    if (rule->action == EMU_FAULT_ACTION_HANG) {
        return emu_fault_fail(p, "a queue pair in ERR cannot hang: use post or "
                              "exec");
    }

    return 0;
}

/* Combinations that no event could ever satisfy, or whose action means
 * nothing there */
static int emu_fault_check_rule(emu_fault_parser_t *p)
{
    const emu_fault_rule_t *rule = &p->rule;
    int has_packet               = (rule->point == EMU_FAULT_POINT_PACKET) ||
                                   (rule->point == EMU_FAULT_POINT_ACK);
    int waits_inside             = (rule->point == EMU_FAULT_POINT_RMW) &&
                                   (rule->action == EMU_FAULT_ACTION_DELAY);

    if (!p->have_point) {
        return emu_fault_fail(p, "the rule is empty: expected POINT "
                              "[SELECTOR=VALUE]... ACTION");
    }

    if (!p->have_action) {
        return emu_fault_fail(p, "the rule has no action: expected drop, "
                              "delay=TIME, dup[=TIME], down[=HOST:LINK], "
                              "silent[=HOST:LINK], up[=HOST:LINK], "
                              "flap=PERIOD, kill[=HOST:LINK], hang or count");
    }

    if (waits_inside && (rule->wait.until == EMU_FAULT_UNTIL_POST)) {
        return emu_fault_fail(p, "at point rmw nothing can be posted to the "
                              "queue pair meanwhile: wait for a time, a rule "
                              "or a link");
    }

    if (!has_packet && !waits_inside &&
        ((rule->action == EMU_FAULT_ACTION_DROP) ||
         (rule->action == EMU_FAULT_ACTION_DELAY) ||
         (rule->action == EMU_FAULT_ACTION_DUP))) {
        return emu_fault_fail(p, "at point %s there is no packet to %s: use "
                              "packet (towards the responder) or ack "
                              "(back from it)",
                              emu_fault_point_names[rule->point],
                              emu_fault_action_names[rule->action]);
    }

    if (!has_packet && (rule->pkt != EMU_FAULT_ANY)) {
        return emu_fault_fail(p, "pkt= needs point packet or ack");
    }

    if (!has_packet && (rule->try_kind != EMU_FAULT_TRY_ANY)) {
        return emu_fault_fail(p, "try= needs point packet or ack");
    }

    return (rule->point == EMU_FAULT_POINT_ERR) ? emu_fault_check_err(p) : 0;
}

static void emu_fault_rule_default(emu_fault_rule_t *rule)
{
    memset(rule, 0, sizeof(*rule));
    rule->host     = EMU_FAULT_ANY;
    rule->peer     = EMU_FAULT_ANY;
    rule->link     = EMU_FAULT_ANY;
    rule->qpn      = EMU_FAULT_ANY;
    rule->wqe      = EMU_FAULT_ANY;
    rule->pkt      = EMU_FAULT_ANY;
    rule->at_host  = EMU_FAULT_ANY;
    rule->at_link  = EMU_FAULT_ANY;
    rule->size_max = UINT64_MAX;
    rule->prev_max = UINT64_MAX;
    rule->nth      = 1;
    rule->count    = 1;
    rule->prob_ppm = EMU_FAULT_PPM_ONE;
}

int emu_fault_rule_parse(const char *line, emu_fault_rule_t *rule_p, char *err,
                         size_t err_max)
{
    static const char *space = " \t\r\n";
    emu_fault_parser_t p     = {.err = err, .err_max = err_max};
    char *save               = NULL;
    char text[EMU_FAULT_LINE_MAX];
    char *word;

    if (strlen(line) >= sizeof(text)) {
        return emu_fault_fail(&p, "the rule is longer than %zu characters",
                              sizeof(text) - 1);
    }

    strcpy(text, line);
    emu_fault_rule_default(&p.rule);
    for (word = strtok_r(text, space, &save); word != NULL;
         word = strtok_r(NULL, space, &save)) {
        if (emu_fault_parse_word(&p, word)) {
            return -1;
        }
    }

    if (emu_fault_check_rule(&p)) {
        return -1;
    }

    *rule_p = p.rule;
    return 0;
}
