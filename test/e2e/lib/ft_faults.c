/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The tables of faults. Letters in a rule:
 *
 *     $L  link of the lane          $N  the event
 *     $Q  its queue pair            $M  the next event
 *     $K  another link, the first one
 *     $J  the next one, which takes over from $K
 *     $P  the point and the selectors of a step, or "packet"
 *     $E  link of the step's event
 *     $V  the link that fails at it
 *     $W  another one
 *     $O  kind of the plan's operations, $S  least size of these
 *     $C  size of a request for a connection
 *     $R  transport of the lane that takes over
 *     $T  the same, on the other link
 */
#include "ft_faults.h"
#include "ft_quirk.h"
#include "ft_rule.h"
#include "ft_driver.h"
#include <uct/ib/varuna/core/varuna_wire.h>

#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const ft_fault_t ft_faults[] = {
    {"drop", FT_PHASE_RC | FT_PHASE_DC,
     {"packet host=1 link=$L qp=$Q nth=$N drop"}},
    {"silent", FT_PHASE_RC | FT_PHASE_DC | FT_LINKS,
     {"packet host=1 link=$L qp=$Q nth=$N silent=1:$L"}},
    {"down", FT_PHASE_RC | FT_PHASE_DC | FT_LINKS,
     {"packet host=1 link=$L qp=$Q nth=$N down=1:$L"}},
    {"remote_silent", FT_PHASE_RC | FT_LINKS,
     {"packet host=1 link=$L qp=$Q nth=$N silent=0:$L"}},
    {"post_down", FT_PHASE_RC | FT_PHASE_DC | FT_LINKS,
     {"post host=1 link=$L qp=$Q nth=$N down=1:$L"}},
    {"exec_silent", FT_PHASE_RC | FT_PHASE_DC | FT_LINKS,
     {"exec host=1 link=$L qp=$Q nth=$N silent=1:$L"}},
    {"exec_down", FT_PHASE_RC | FT_LINKS,
     {"exec host=1 link=$L qp=$Q nth=$N down=1:$L"}},
    {"exec_remote_down", FT_PHASE_RC | FT_PHASE_DC | FT_LINKS,
     {"exec host=1 link=$L qp=$Q nth=$N down=0:$L"}},
    {"ack_drop", FT_PHASE_RC | FT_PHASE_DC,
     {"ack host=1 link=$L qp=$Q nth=$N drop"}},
    {"ack_silent", FT_PHASE_RC | FT_PHASE_DC | FT_LINKS,
     {"ack host=1 link=$L qp=$Q nth=$N silent=1:$L"}},
    {"dup", FT_PHASE_RC | FT_PHASE_DC,
     {"packet host=1 link=$L qp=$Q nth=$N dup=2ms"}},
    {"delay", FT_PHASE_RC | FT_PHASE_DC,
     {"packet host=1 link=$L qp=$Q nth=$N delay=3ms"}},
    /* The packet arrives while lost operations are repeated, unless it is fenced. Plans
     * of few packets end before: then it arrives when the rules are removed. */
    {"late", FT_PHASE_RC | FT_PHASE_DC | FT_LATE,
     {"packet host=1 link=$L qp=$Q nth=$N delay=until:repeated",
      "packet host=1 link=$L qp=$Q nth=$M count=all drop",
      "exec host=1 $T op=$O size=$S- name=repeated count=all count"}},
    /* ... and nothing replaces its queue pair meanwhile, because requests for a new
     * connection are lost */
    {"late_alone", FT_PHASE_RC | FT_LATE | FT_SPREADS | FT_NEEDS_DC,
     {"packet host=1 link=$L qp=$Q nth=$N delay=until:repeated",
      "packet host=1 link=$L qp=$Q nth=$M count=all drop",
      "exec host=1 type=dc op=$O size=$S- name=repeated count=all count",
      "packet host=1 op=send size=$C count=all drop"}},
    /* ... from a port whose link, or NIC, has failed meanwhile; that of a NIC which dies in
     * silence is taken for one that hangs */
    {"late_down", FT_PHASE_RC | FT_LATE | FT_LINKS,
     {"packet host=1 link=$L qp=$Q nth=$N delay=until:repeated",
      "packet host=1 link=$L qp=$Q nth=$M down=1:$L",
      "exec host=1 $T op=$O size=$S- name=repeated count=all count"}},
    {"late_kill", FT_PHASE_RC | FT_LATE | FT_LINKS | FT_KILLS,
     {"packet host=1 link=$L qp=$Q nth=$N delay=until:repeated",
      "packet host=1 link=$L qp=$Q nth=$M kill=1:$L",
      "exec host=1 $T op=$O size=$S- name=repeated count=all count"}},
    {"late_kill_silent", FT_PHASE_RC | FT_LATE | FT_LINKS | FT_KILLS,
     {"packet host=1 link=$L qp=$Q nth=$N delay=until:repeated",
      "packet host=1 link=$L qp=$Q nth=$M kill_silent=1:$L",
      "exec host=1 $T op=$O size=$S- name=repeated count=all count"}},
    /* All later responses are lost: operations are executed, but not known to be */
    {"mute", FT_PHASE_RC | FT_PHASE_DC,
     {"ack host=1 link=$L qp=$Q nth=$N count=all drop"}},
    /* Only this queue pair hangs, without an error */
    {"hang", FT_PHASE_RC | FT_PHASE_DC | FT_SLOW,
     {"post host=1 link=$L qp=$Q nth=$N hang"}},
    {"exec_hang", FT_PHASE_RC | FT_PHASE_DC | FT_SLOW,
     {"exec host=1 link=$L qp=$Q nth=$N hang"}},
    /* A NIC dies with all its objects: queue pairs cannot be queried, modified or
     * flushed. The client's or the server's, before a work request or after its
     * execution. */
    {"kill", FT_PHASE_RC | FT_PHASE_DC | FT_LINKS | FT_KILLS,
     {"post host=1 link=$L qp=$Q nth=$N kill=1:$L"}},
    {"exec_kill", FT_PHASE_RC | FT_PHASE_DC | FT_LINKS | FT_KILLS,
     {"exec host=1 link=$L qp=$Q nth=$N kill=1:$L"}},
    {"remote_kill",
     FT_PHASE_RC | FT_PHASE_DC | FT_LINKS | FT_KILLS | FT_NO_PSN,
     {"packet host=1 link=$L qp=$Q nth=$N kill=0:$L"}},
    {"exec_remote_kill",
     FT_PHASE_RC | FT_PHASE_DC | FT_LINKS | FT_KILLS | FT_NO_PSN,
     {"exec host=1 link=$L qp=$Q nth=$N kill=0:$L"}},
    /* ... without an event. Not on DC: the client's silent NIC may still send, so the
     * endpoint fails (test_peers.sh). */
    {"kill_silent", FT_PHASE_RC | FT_LINKS | FT_KILLS,
     {"exec host=1 link=$L qp=$Q nth=$N kill_silent=1:$L"}},
    {"remote_kill_silent",
     FT_PHASE_RC | FT_PHASE_DC | FT_LINKS | FT_KILLS | FT_NO_PSN,
     {"exec host=1 link=$L qp=$Q nth=$N kill_silent=0:$L"}}
};

/* While a vQP recovers from the first fault, its control messages, its repetitions and
 * the new connection use another link, so these faults hit each step of the recovery */
static const ft_fault_t ft_second_faults[] = {
    {"silent", FT_LINKS, {"$P link=$E nth=$N silent=1:$V"}},
    {"down", FT_LINKS, {"$P link=$E nth=$N down=1:$V"}},
    {"remote_silent", FT_LINKS, {"$P link=$E nth=$N silent=0:$V"}},
    {"exec_silent", FT_LINKS, {"exec link=$K nth=$N silent=1:$K"}},
    {"ack_silent", FT_LINKS, {"ack link=$K nth=$N silent=1:$K"}},
    {"drop", FT_PACKETS, {"$P link=$E nth=$N drop"}},
    {"delay", FT_PACKETS, {"$P link=$E nth=$N delay=5ms"}},
    /* Of the third, unused link; during a return, of the lane's or the next link */
    {"other", FT_LINKS | FT_STEPS, {"$P link=$E nth=$N silent=1:$W"}},
    /* The first link returns, if the first fault took it down */
    {"back", FT_LINKS | FT_AWAY, {"$P link=$E nth=$N up=1:$L"}},
    /* A third failure, at the same step of the next recovery. The links return. */
    {"third", FT_LINKS | FT_AGAIN, {"$P link=$E nth=$N silent=1:$V",
                                    "$P link=$W nth=$N silent=1:$W"}},
    {"third_down", FT_LINKS, {"exec link=$K nth=$N down=0:$K",
                              "packet link=$J nth=$N silent=0:$J"}},
    {"kill", FT_LINKS | FT_KILLS, {"packet link=$K nth=$N kill=1:$K"}},
    {"remote_kill", FT_LINKS | FT_KILLS, {"packet link=$K nth=$N kill=0:$K"}}
};

/*
 * The steps of a recovery from RC, in this order, followed by those of a planned return
 * to the first link. A rule selects a control message by its size, see ft_step_size().
 * Without DC, the lane that takes over is connected before anything is repeated, and its
 * first write is an entry that says nothing, which repeat_log hits.
 */
#define FT_FENCE_REP_SIZE \
    (sizeof(uct_varuna_ctl_fence_rep_t) + (UCT_VARUNA_LOG_SIZE * sizeof(uint64_t)))
#define FT_CONNECT_REQ_ADDRS \
    (FT_STEP_CTL | FT_STEP_RC_ADDR | FT_STEP_FROM)

/* Of the plan's operations */
#define FT_DATA  "op=$O size=$S-"

static const ft_step_t ft_steps[] = {
    {"drain", "err", "host=1 qp=$Q", 0, FT_STEP_OLD},
    {"fence_req", "packet", "host=1 op=send size=%u", sizeof(uct_varuna_ctl_fence_req_t),
     FT_STEP_CTL | FT_STEP_FROM},
    {"fenced", "exec", "host=1 op=send size=%u", sizeof(uct_varuna_ctl_fence_req_t),
     FT_STEP_CTL | FT_STEP_FROM},
    {"stopped", "err", "host=0 type=rc", 0, FT_STEP_OLD | FT_STEP_RC},
    {"fence_rep", "packet", "host=0 op=send size=%u", FT_FENCE_REP_SIZE, FT_STEP_CTL},
    {"classify", "exec", "host=0 op=send size=%u", FT_FENCE_REP_SIZE,
     FT_STEP_CTL | FT_STEP_ONCE},
    {"repeat", "packet", "host=1 $R " FT_DATA},
    {"repeated", "exec", "host=1 $R " FT_DATA},
    {"repeat_log", "packet", "host=1 $R op=write size=%u", 8, FT_STEP_WRITES},
    {"connect_req", "packet", "host=1 op=send size=%u", sizeof(uct_varuna_ctl_connect_t),
     FT_CONNECT_REQ_ADDRS},
    {"connected", "exec", "host=1 op=send size=%u", sizeof(uct_varuna_ctl_connect_t),
     FT_CONNECT_REQ_ADDRS},
    {"connect_rep", "packet", "host=0 op=send size=%u", sizeof(uct_varuna_ctl_connect_t),
     FT_STEP_CTL | FT_STEP_RC_ADDR},
    {"swap", "packet", "host=1 type=dc op=read size=%u", 8, FT_STEP_DC},
    {"swapped", "packet", "host=1 type=rc " FT_DATA, 0, FT_STEP_DC},
    {"return_req", "packet", "host=1 op=send size=%u", sizeof(uct_varuna_ctl_connect_t),
     FT_STEP_RETURN | FT_STEP_FIRST | FT_CONNECT_REQ_ADDRS},
    {"return_asked", "exec", "host=1 op=send size=%u", sizeof(uct_varuna_ctl_connect_t),
     FT_STEP_RETURN | FT_STEP_FIRST | FT_CONNECT_REQ_ADDRS},
    {"return_rep", "packet", "host=0 op=send size=%u", sizeof(uct_varuna_ctl_connect_t),
     FT_STEP_RETURN | FT_STEP_FIRST | FT_STEP_CTL | FT_STEP_RC_ADDR},
    {"return_ready", "exec", "host=0 op=send size=%u", sizeof(uct_varuna_ctl_connect_t),
     FT_STEP_RETURN | FT_STEP_FIRST | FT_STEP_CTL | FT_STEP_RC_ADDR},
    {"return_swap", "packet", "host=1 type=rc op=read size=%u", 8,
     FT_STEP_RETURN},
    {"return_read", "exec", "host=1 type=rc op=read size=%u", 8,
     FT_STEP_RETURN},
    {"returned", "packet", "host=1 type=rc " FT_DATA, 0,
     FT_STEP_RETURN | FT_STEP_FIRST}
};

#define FT_COUNT(_array) (sizeof(_array) / sizeof((_array)[0]))


const ft_fault_t *ft_fault(unsigned n)
{
    return (n < FT_COUNT(ft_faults)) ? &ft_faults[n] : NULL;
}

const ft_fault_t *ft_second_fault(unsigned n)
{
    return (n < FT_COUNT(ft_second_faults)) ? &ft_second_faults[n] : NULL;
}

const ft_step_t *ft_step(unsigned n)
{
    return (n < FT_COUNT(ft_steps)) ? &ft_steps[n] : NULL;
}

/* The operations of a plan: the first match. Messages are distinguished from those of
 * the control plane by their size. */
static const struct {
    const char *plan;   /* Prefix of its name */
    const char *op;
    unsigned   size;
} ft_plan_ops[] = {
    {"get_", "read", 9},
    {"am_", "send", 1000},
    {"", "write", 9}
};

static unsigned ft_plan_op(const char *plan)
{
    unsigned i = 0;

    while (strncmp(plan, ft_plan_ops[i].plan, strlen(ft_plan_ops[i].plan))) {
        ++i;
    }

    return i;
}

int ft_step_is_listed(const ft_step_t *step, const char *list)
{
    return ft_is_listed((step->flags & FT_STEP_RETURN) ?
                        (strcmp(list, "all") ? list : "") : list, step->name) ||
           ((step->flags & FT_STEP_RETURN) && !strcmp(list, "return"));
}

static int ft_has_dc(void)
{
    return !ft_quirk_is_on("no-mlx5dv");
}

int ft_fault_is_possible(const ft_fault_t *fault)
{
    return ft_has_dc() || !(fault->flags & FT_NEEDS_DC);
}

/* Control messages consist of UCX's header, or that of a datagram and a check, rc_varuna's
 * header, the body, and addresses of the emulated links: of a device, of the control plane (a DC target
 * or a UD queue pair), of an RC endpoint. */
static unsigned ft_step_size(const ft_step_t *step)
{
    static const unsigned device = 5;
    unsigned size                = step->size;

    if (step->flags & FT_STEP_CTL) {
        size += sizeof(uct_varuna_ctl_hdr_t) +
                (ft_has_dc() ? 2 : (sizeof(uct_varuna_frag_hdr_t) +
                                    sizeof(uct_varuna_frag_sum_t)));
    }

    if (step->flags & FT_STEP_FROM) {
        size += device + (ft_has_dc() ? 5 : 7);
    }

    if (step->flags & FT_STEP_RC_ADDR) {
        size += device + (ft_has_dc() ? 7 : 4);
    }

    return size;
}

int ft_step_has(const ft_point_t *point)
{
    unsigned step  = point->step->flags;
    unsigned fault = point->second->flags;

    return (ft_has_dc() || !(step & FT_STEP_DC)) &&
           (ft_has_dc() || !(step & FT_STEP_ONCE) || !(fault & FT_AGAIN)) &&
           !((fault & FT_PACKETS) && strcmp(point->step->point, "packet")) &&
           !((fault & FT_AWAY) && (step & FT_STEP_RETURN)) &&
           !((fault & FT_AGAIN) && (step & (FT_STEP_OLD | FT_STEP_RETURN))) &&
           !((step & FT_STEP_RC) && (point->phase != FT_PHASE_RC)) &&
           !((step & FT_STEP_WRITES) &&
             strcmp(ft_plan_ops[ft_plan_op(point->plan)].op, "write"));
}

void ft_faults_print(void)
{
    unsigned i;

    printf("\nfaults:");
    for (i = 0; i < FT_COUNT(ft_faults); ++i) {
        printf(" %s", ft_faults[i].name);
    }

    printf("\nsecond faults:");
    for (i = 0; i < FT_COUNT(ft_second_faults); ++i) {
        printf(" %s", ft_second_faults[i].name);
    }

    printf("\nsteps:");
    for (i = 0; i < FT_COUNT(ft_steps); ++i) {
        printf(" %s", ft_steps[i].name);
    }
    printf("\n");
}

unsigned ft_fault_num_rules(const ft_fault_t *fault)
{
    unsigned num = 0;

    while ((num < FT_MAX_RULES) && (fault->rules[num] != NULL)) {
        ++num;
    }

    return num;
}

/* The rule with its $P filled in */
static void ft_step_format(const char *rule, const ft_step_t *step, char *text)
{
    const char *at = strstr(rule, "$P");

    if (at == NULL) {
        strcpy(text, rule);
        return;
    }

    if (step == NULL) {
        text += sprintf(text, "%.*spacket", (int)(at - rule), rule);
    } else {
        text += sprintf(text, "%.*s%s ", (int)(at - rule), rule, step->point);
        text += sprintf(text, step->select, ft_step_size(step));
    }

    strcpy(text, at + 2);
}

/* The link that a letter means, for a lane on @a link. */
static unsigned ft_fault_link(char letter, const ft_step_t *step, unsigned link)
{
    unsigned flags  = (step == NULL) ? 0 : step->flags;
    unsigned backup = (link == 0) ? 1 : 0;
    unsigned next   = (link <= 1) ? 2 : 1;

    switch (letter) {
    case 'E':
        return (flags & (FT_STEP_OLD | FT_STEP_FIRST)) ? link : backup;
    case 'V':
        return (flags & FT_STEP_FIRST) ? link : backup;
    case 'W':
        return (flags & FT_STEP_FIRST)  ? backup :
               (flags & FT_STEP_RETURN) ? link : next;
    case 'K':
        return backup;
    case 'J':
        return next;
    default:
        return link;
    }
}

typedef struct {
    unsigned        op;
    const ft_step_t *step;
    unsigned        link;
    uint32_t        qpn;
} ft_fault_values_t;

static char *ft_fault_fill(const void *arg, char letter, char *text)
{
    static const ft_step_t connect_req = {
        .size  = sizeof(uct_varuna_ctl_connect_t),
        .flags = FT_CONNECT_REQ_ADDRS
    };
    const ft_fault_values_t *values    = arg;

    switch (letter) {
    case 'Q':
        return text + sprintf(text, "0x%x", values->qpn);
    case 'O':
        return text + sprintf(text, "%s", ft_plan_ops[values->op].op);
    case 'S':
        return text + sprintf(text, "%u", ft_plan_ops[values->op].size);
    case 'C':
        return text + sprintf(text, "%u", ft_step_size(&connect_req));
    case 'R':
        return text + sprintf(text, "type=%s", ft_has_dc() ? "dc" : "rc");
    case 'T':
        return text + (ft_has_dc() ? sprintf(text, "type=dc") :
                       sprintf(text, "type=rc link=%u",
                               ft_fault_link('K', values->step, values->link)));
    default:
        return text + sprintf(text, "%u", ft_fault_link(letter, values->step,
                                                        values->link));
    }
}

static void ft_fault_format(const char *template, const ft_point_t *point,
                            unsigned n, const ft_step_t *step, unsigned link,
                            uint32_t qpn, char *text)
{
    ft_fault_values_t values = {ft_plan_op(point->plan), step, link, qpn};
    char rule[FT_RULE_MAX];

    ft_step_format(template, step, rule);
    ft_rule_format(rule, n, ft_fault_fill, &values, text);
}

unsigned ft_faults_format(const ft_point_t *point, unsigned link, uint32_t qpn,
                          char rules[][FT_RULE_MAX])
{
    unsigned num = 0;
    unsigned i;

    for (i = 0; i < ft_fault_num_rules(point->fault); ++i) {
        ft_fault_format(point->fault->rules[i], point, point->n, NULL, link,
                        qpn, rules[num++]);
    }

    for (i = 0; (point->second != NULL) &&
                (i < ft_fault_num_rules(point->second)); ++i) {
        ft_fault_format(point->second->rules[i], point, point->m, point->step,
                        link, qpn, rules[num++]);
    }

    return num;
}
