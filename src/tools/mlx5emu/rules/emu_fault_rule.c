/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Does a fault rule fire? Pure: see emu_fault_rule.h. The text form is in
 * emu_fault_parse.c.
 */

#include "emu_fault_rule.h"

#include <string.h>

#define EMU_FAULT_PPM_ONE 1000000u


static int emu_fault_is_link_action(unsigned action)
{
    return (action == EMU_FAULT_ACTION_DOWN) ||
           (action == EMU_FAULT_ACTION_SILENT) ||
           (action == EMU_FAULT_ACTION_UP) ||
           (action == EMU_FAULT_ACTION_FLAP);
}

static int emu_fault_is_nic_action(unsigned action)
{
    return (action == EMU_FAULT_ACTION_KILL) ||
           (action == EMU_FAULT_ACTION_KILL_SILENT);
}

static int emu_fault_selects(uint32_t selector, uint32_t value)
{
    return (selector == EMU_FAULT_ANY) || (selector == value);
}

static int emu_fault_check_pkt(const emu_fault_rule_t *rule,
                               const emu_fault_event_t *event)
{
    switch (rule->pkt) {
    case EMU_FAULT_ANY:
        return 1;
    case EMU_FAULT_PKT_LAST:
        return event->pkt == event->num_pkts;
    case EMU_FAULT_PKT_MIDDLE:
        return (event->pkt > 1) && (event->pkt < event->num_pkts);
    default:
        return event->pkt == rule->pkt;
    }
}

static int emu_fault_check_try(const emu_fault_rule_t *rule,
                               const emu_fault_event_t *event)
{
    return (rule->try_kind == EMU_FAULT_TRY_ANY) ||
           ((rule->try_kind == EMU_FAULT_TRY_AGAIN) == !!event->is_retry);
}

/* The request that was posted before this one on the same queue pair */
static int emu_fault_check_prev(const emu_fault_rule_t *rule,
                                const emu_fault_event_t *event)
{
    int is_any = (rule->prev_mask == 0) && (rule->prev_min == 0) &&
                 (rule->prev_max == UINT64_MAX);

    if (is_any) {
        return 1;
    }

    return (event->prev_op < EMU_FAULT_OP_LAST) &&
           ((rule->prev_mask == 0) ||
            (rule->prev_mask & (1u << event->prev_op))) &&
           (event->prev_size >= rule->prev_min) &&
           (event->prev_size <= rule->prev_max);
}

int emu_fault_rule_fits(const emu_fault_rule_t *rule,
                        const emu_fault_event_t *event)
{
    return (rule->id != 0) && (rule->point == event->point) &&
           ((rule->op_mask == 0) || (rule->op_mask & (1u << event->op))) &&
           emu_fault_selects(rule->host, event->host) &&
           emu_fault_selects(rule->peer, event->peer) &&
           emu_fault_selects(rule->link, event->link) &&
           emu_fault_selects(rule->qpn, event->qpn) &&
           emu_fault_selects(rule->wqe, event->wqe_index) &&
           (event->size >= rule->size_min) &&
           (event->size <= rule->size_max) &&
           ((rule->type_mask == 0) ||
            (rule->type_mask & (1u << event->qp_type))) &&
           emu_fault_check_pkt(rule, event) &&
           emu_fault_check_try(rule, event) &&
           emu_fault_check_prev(rule, event);
}

static uint64_t emu_fault_mix(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9ull;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

uint64_t emu_fault_random(uint32_t seed, uint64_t n)
{
    return emu_fault_mix(((uint64_t)seed << 32) + (n * 0x9e3779b97f4a7c15ull));
}

/* By which match this is: a run is replayed by its seed */
static uint32_t emu_fault_random_ppm(uint32_t seed, uint64_t n)
{
    return emu_fault_random(seed, n) % EMU_FAULT_PPM_ONE;
}

uint32_t emu_fault_derive_seed(uint64_t seed, uint32_t id)
{
    return emu_fault_mix(seed + id * 0x9e3779b97f4a7c15ull);
}

/* Count an event that fits. @return whether the rule would fire */
static int emu_fault_rule_is_due(emu_fault_rule_t *rule,
                                 const emu_fault_event_t *event)
{
    if (!emu_fault_rule_fits(rule, event)) {
        return 0;
    }

    ++rule->matched;
    if ((rule->matched < rule->nth) || (rule->fired >= rule->count)) {
        return 0;
    }

    return (rule->prob_ppm >= EMU_FAULT_PPM_ONE) ||
           (emu_fault_random_ppm(rule->seed, rule->matched) < rule->prob_ppm);
}

int emu_fault_rule_match(emu_fault_rule_t *rule, const emu_fault_event_t *event)
{
    if (!emu_fault_rule_is_due(rule, event)) {
        return 0;
    }

    ++rule->fired;
    return 1;
}

/* Where the rule's action happens: at the requester's own port by default */
static uint8_t emu_fault_at(uint32_t chosen, uint32_t own)
{
    return (chosen == EMU_FAULT_ANY) ? own : chosen;
}

/* The last change before of what another one is about, or NULL */
static const emu_fault_change_t *
emu_fault_change_before(const emu_fault_verdict_t *verdict,
                        const emu_fault_change_t *change)
{
    const emu_fault_change_t *before = verdict->changes + verdict->num_changes;

    while (before-- > verdict->changes) {
        if ((before->host == change->host) && (before->index == change->index) &&
            (emu_fault_is_nic_action(before->op) ==
             emu_fault_is_nic_action(change->op))) {
            return before;
        }
    }

    return NULL;
}

/* Whether it makes a difference: a NIC dies once, and a link does not become what it
 * is */
static int emu_fault_change_matters(const emu_fault_verdict_t *verdict,
                                    const emu_fault_change_t *change)
{
    const emu_fault_change_t *before = emu_fault_change_before(verdict, change);

    return (before == NULL) ||
           (!emu_fault_is_nic_action(change->op) &&
            ((before->op != change->op) || (before->flap_ns != change->flap_ns) ||
             (before->flap_ppm != change->flap_ppm)));
}

static int emu_fault_verdict_change(emu_fault_verdict_t *verdict,
                                    const emu_fault_rule_t *rule,
                                    const emu_fault_event_t *event)
{
    emu_fault_change_t change = {
        .op       = rule->action,
        .host     = emu_fault_at(rule->at_host, event->host),
        .index    = emu_fault_at(rule->at_link, event->link),
        .flap_ppm = rule->flap_ppm,
        .flap_ns  = rule->value_ns
    };

    if (!emu_fault_change_matters(verdict, &change)) {
        return 0;
    }

    verdict->changes[verdict->num_changes++] = change;
    return 1;
}

/* @return whether the rule has something to add, and so fires */
static int emu_fault_verdict_add(emu_fault_verdict_t *verdict,
                                 const emu_fault_rule_t *rule,
                                 const emu_fault_event_t *event)
{
    int is_hung = verdict->hang;

    if (rule->action == EMU_FAULT_ACTION_NONE) {
        return 1;
    } else if (rule->action == EMU_FAULT_ACTION_HANG) {
        verdict->hang = 1;
        return !is_hung;
    } else if (emu_fault_is_nic_action(rule->action) ||
               emu_fault_is_link_action(rule->action)) {
        return emu_fault_verdict_change(verdict, rule, event);
    } else if (verdict->fate != EMU_FAULT_ACTION_NONE) {
        return 0;
    }

    verdict->fate     = rule->action;
    verdict->value_ns = rule->value_ns;
    verdict->wait     = rule->wait;
    return 1;
}

void emu_fault_rules_apply(emu_fault_rule_t *rules, unsigned num_rules,
                           const emu_fault_event_t *event,
                           emu_fault_verdict_t *verdict_p)
{
    unsigned i;

    memset(verdict_p, 0, offsetof(emu_fault_verdict_t, changes));
    for (i = 0; i < num_rules; ++i) {
        if (emu_fault_rule_is_due(&rules[i], event) &&
            emu_fault_verdict_add(verdict_p, &rules[i], event)) {
            ++rules[i].fired;
        }
    }
}

int emu_fault_rules_need_split(const emu_fault_rule_t *rules,
                               unsigned num_rules, unsigned host, unsigned link)
{
    unsigned i;

    for (i = 0; i < num_rules; ++i) {
        if ((rules[i].id != 0) &&
            ((rules[i].point == EMU_FAULT_POINT_PACKET) ||
             (rules[i].point == EMU_FAULT_POINT_ACK)) &&
            emu_fault_selects(rules[i].host, host) &&
            emu_fault_selects(rules[i].link, link)) {
            return 1;
        }
    }

    return 0;
}
