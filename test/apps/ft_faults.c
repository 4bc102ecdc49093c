/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The tables of faults. In a rule
 *
 *     $L  link of the lane          $N  the event
 *     $Q  its queue pair            $M  the event behind it
 *     $K  another link, the first one
 *     $J  the one behind that, which takes over from it
 */
#include "ft_faults.h"

#include <stddef.h>
#include <stdio.h>

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
    /* It arrives when all is over, unless it is fenced */
    {"late", FT_PHASE_RC | FT_PHASE_DC | FT_LATE,
     {"packet host=1 link=$L qp=$Q nth=$N delay=30ms",
      "packet host=1 link=$L qp=$Q nth=$M count=all drop"}},
    /* ... and nothing replaces its queue pair meanwhile: after the request for the
     * fence, no control message gets through */
    {"late_alone", FT_PHASE_RC | FT_LATE | FT_SPREADS,
     {"packet host=1 link=$L qp=$Q nth=$N delay=30ms",
      "packet host=1 link=$L qp=$Q nth=$M count=all drop",
      "packet host=1 link=$K op=send nth=2 count=all drop"}},
    /* All answers are lost from there on: executed, and never known */
    {"mute", FT_PHASE_RC | FT_PHASE_DC,
     {"ack host=1 link=$L qp=$Q nth=$N count=all drop"}},
    /* The queue pair does nothing any more, and says nothing; all else works */
    {"hang", FT_PHASE_RC | FT_PHASE_DC | FT_SLOW,
     {"post host=1 link=$L qp=$Q nth=$N hang"}},
    {"exec_hang", FT_PHASE_RC | FT_PHASE_DC | FT_SLOW,
     {"exec host=1 link=$L qp=$Q nth=$N hang"}},
    /* A NIC dies with all that was made on it: queue pairs cannot be queried, changed
     * or flushed, memory is registered with nobody. Ours, or the peer's; before a work
     * request or behind its execution. */
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
    /* ... and no event tells. On DC, nobody knows what our own silent NIC may still
     * do, and the endpoint fails (test_peers.sh). */
    {"kill_silent", FT_PHASE_RC | FT_LINKS | FT_KILLS,
     {"exec host=1 link=$L qp=$Q nth=$N kill_silent=1:$L"}},
    {"remote_kill_silent",
     FT_PHASE_RC | FT_PHASE_DC | FT_LINKS | FT_KILLS | FT_NO_PSN,
     {"exec host=1 link=$L qp=$Q nth=$N kill_silent=0:$L"}}
};

/* While a vQP recovers from the first fault, its control messages, its repetitions,
 * and the new connection are on another link: so these hit each step of it */
static const ft_fault_t ft_second_faults[] = {
    {"silent", FT_LINKS, {"packet link=$K nth=$N silent=1:$K"}},
    {"down", FT_LINKS, {"packet link=$K nth=$N down=1:$K"}},
    {"remote_silent", FT_LINKS, {"packet link=$K nth=$N silent=0:$K"}},
    {"exec_silent", FT_LINKS, {"exec link=$K nth=$N silent=1:$K"}},
    {"ack_silent", FT_LINKS, {"ack link=$K nth=$N silent=1:$K"}},
    {"drop", 0, {"packet link=$K nth=$N drop"}},
    {"delay", 0, {"packet link=$K nth=$N delay=5ms"}},
    /* The first link returns, as far as the first fault has taken it away */
    {"back", FT_LINKS, {"packet link=$K nth=$N up=1:$L"}},
    /* A third failure at the same step of the next recovery: the links return */
    {"third", FT_LINKS, {"packet link=$K nth=$N silent=1:$K",
                         "packet link=$J nth=$N silent=1:$J"}},
    {"third_down", FT_LINKS, {"exec link=$K nth=$N down=0:$K",
                              "packet link=$J nth=$N silent=0:$J"}},
    {"kill", FT_LINKS | FT_KILLS, {"packet link=$K nth=$N kill=1:$K"}},
    {"remote_kill", FT_LINKS | FT_KILLS, {"packet link=$K nth=$N kill=0:$K"}}
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

unsigned ft_fault_num_rules(const ft_fault_t *fault)
{
    unsigned num = 0;

    while ((num < FT_MAX_RULES) && (fault->rules[num] != NULL)) {
        ++num;
    }

    return num;
}

static void ft_fault_format(const char *rule, unsigned n, unsigned link,
                            uint32_t qpn, char *text)
{
    for (; *rule != '\0'; ++rule) {
        if (*rule != '$') {
            *text++ = *rule;
            continue;
        }

        switch (*++rule) {
        case 'L':
            text += sprintf(text, "%u", link);
            break;
        case 'K':
            text += sprintf(text, "%u", (link == 0) ? 1 : 0);
            break;
        case 'J':
            text += sprintf(text, "%u", (link <= 1) ? 2 : 1);
            break;
        case 'Q':
            text += sprintf(text, "0x%x", qpn);
            break;
        case 'N':
            text += sprintf(text, "%u", n);
            break;
        default:
            text += sprintf(text, "%u", n + 1);
            break;
        }
    }

    *text = '\0';
}

unsigned ft_faults_format(const ft_point_t *point, unsigned link, uint32_t qpn,
                          char rules[][FT_RULE_MAX])
{
    unsigned num = 0;
    unsigned i;

    for (i = 0; i < ft_fault_num_rules(point->fault); ++i) {
        ft_fault_format(point->fault->rules[i], point->n, link, qpn,
                        rules[num++]);
    }

    for (i = 0; (point->second != NULL) &&
                (i < ft_fault_num_rules(point->second)); ++i) {
        ft_fault_format(point->second->rules[i], point->m, link, qpn,
                        rules[num++]);
    }

    return num;
}
