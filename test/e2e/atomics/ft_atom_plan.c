/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Tables of the sweep of atomics.
 */
#include "ft_atom_plan.h"
#include "ft_rule.h"

#include <stddef.h>
#include <stdio.h>

#define FT_NUM(_array) (sizeof(_array) / sizeof((_array)[0]))

/* A repeated AND or OR is visible only if the word has changed meanwhile, so an XOR is
 * between two of them */
static const ft_atom_plan_t ft_atom_plans[] = {
    {"padd", 5, {"padd:0:1,padd:0:10,padd:0:100", "padd:0:1000,padd:0:10000",
                 "padd:0:100000,padd:0:1000000"}},
    {"pand", 0xffffff, {"pand:0:fffffe,pxor:0:1,pand:0:fffffd",
                        "pand:0:ffffdf,pxor:0:20", "pand:0:fffbff,pxor:0:400"}},
    {"por", 0, {"por:0:1,pxor:0:1,por:0:2", "por:0:20,pxor:0:20",
                "por:0:400,pxor:0:400"}},
    {"pxor", 7, {"pxor:0:1,pxor:0:10,pxor:0:100", "pxor:0:1000,pxor:0:10000",
                 "pxor:0:100000,pxor:0:1000000"}},
    {"fadd", 5, {"fadd:0:1,fadd:0:10,fadd:0:100", "fadd:0:1000,fadd:0:10000",
                 "fadd:0:100000,fadd:0:1000000"}},
    {"fand", 0xffffff, {"fand:0:fffffe,fxor:0:1,fand:0:fffffd",
                        "fand:0:ffffdf,fxor:0:20", "fand:0:fffbff,fxor:0:400"}},
    {"for", 0, {"for:0:1,fxor:0:1,for:0:2", "for:0:20,fxor:0:20",
                "for:0:400,fxor:0:400"}},
    {"fxor", 7, {"fxor:0:1,fxor:0:10,fxor:0:100", "fxor:0:1000,fxor:0:10000",
                 "fxor:0:100000,fxor:0:1000000"}},
    {"swap", 9, {"swap:0:11,swap:0:12,swap:0:13", "swap:0:21,swap:0:22",
                 "swap:0:31,swap:0:32"}},
    {"cswap", 9, {"cswap:9:11,cswap:*:12,cswap:*:13", "cswap:9:21,cswap:*:22",
                  "cswap:9:31,cswap:*:32"}},
    {"cswap_fail", 9, {"cswap:7:11,cswap:8:12,cswap:9:13",
                       "cswap:7:21,cswap:9:22", "cswap:6:31,cswap:9:32"}},
    /* Values return */
    {"cswap_aba", 1, {"cswap:1:2,cswap:2:1,cswap:1:2", "cswap:2:1,cswap:1:2",
                      "cswap:1:2,cswap:2:1"}}
};

static const ft_atom_fault_t ft_atom_faults[] = {
    {"drop", {"packet $S nth=$N drop"}, 0, 0},
    {"silent", {"packet $S nth=$N silent=1:0"}, 1, 0},
    {"down", {"packet $S nth=$N down=1:0"}, 1, 0},
    {"exec_silent", {"exec $S nth=$N silent=1:0"}, 1, 0},
    /* ... and operations on the other link are delayed ($D), so that a UID for which a
     * flush does not wait is visible */
    {"exec_slow", {"exec $S nth=$N silent=1:0",
                   "packet host=1 link=1 op=send count=all delay=$Dms"}, 1, 0},
    {"exec_down", {"exec $S nth=$N down=1:0"}, 1, 0},
    {"ack_drop", {"ack $S nth=$N drop"}, 0, 0},
    {"ack_silent", {"ack $S nth=$N silent=1:0"}, 1, 0},
    {"ack_down", {"ack $S nth=$N down=1:0"}, 1, 0},
    /* Nothing is lost if the NIC waits longer for acknowledgements: a flush must wait
     * for slow operations */
    {"slow", {"packet $S nth=$N delay=20ms"}, 0, 0},
    {"mute", {"ack $S nth=$N count=all drop"}, 0, 0},
    /* The packet arrives after its requester has given up */
    {"late", {"packet $S nth=$N delay=30ms",
              "packet $S nth=$M count=all drop"}, 0, 1}
};


const ft_atom_plan_t *ft_atom_plan(unsigned n)
{
    return (n < FT_NUM(ft_atom_plans)) ? &ft_atom_plans[n] : NULL;
}

const ft_atom_fault_t *ft_atom_fault(unsigned n)
{
    return (n < FT_NUM(ft_atom_faults)) ? &ft_atom_faults[n] : NULL;
}

typedef struct {
    uint32_t qpn;
    unsigned delay;
} ft_atom_rule_t;

static char *ft_atom_fill(const void *arg, char letter, char *text)
{
    const ft_atom_rule_t *rule = arg;

    if (letter == 'D') {
        return text + sprintf(text, "%u", rule->delay);
    }

    return text + ((rule->qpn != 0) ?
                   sprintf(text, "host=1 link=0 qp=0x%x", rule->qpn) :
                   sprintf(text, "host=1 link=0 op=send"));
}

void ft_atom_format_rule(const char *rule, uint32_t qpn, unsigned n,
                         unsigned delay, char *text)
{
    ft_atom_rule_t values = {qpn, delay};

    ft_rule_format(rule, n, ft_atom_fill, &values, text);
}
