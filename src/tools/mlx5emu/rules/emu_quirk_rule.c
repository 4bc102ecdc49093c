/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The table of quirks and its text. See emu_quirk_rule.h.
 */

#include "emu_quirk_rule.h"
#include "emu_fault_text.h"
#include "emu_fault_value.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define EMU_QUIRK_WORD_MAX 96

_Static_assert(EMU_QUIRK_LAST <= 64, "emu_quirk_port_t::on has 64 bits");

#define EMU_QUIRK_OOO_VALUES \
    {{"packets", 0, 8, 1, 32}, {"time", 1, 300000, 1000, 60000000000}, \
     {"percent", 0, 50, 1, 100}, {"loopback", 0, 0, 0, 1}}
#define EMU_QUIRK_OOO_SOURCE \
    "NVIDIA MLNX_OFED manual, Out-of-Order (OOO) Data Placement"

const emu_quirk_info_t emu_quirk_infos[EMU_QUIRK_LAST] = {
    [EMU_QUIRK_OOO] = {
        .name      = "ooo",
        .scope     = EMU_QUIRK_SCOPE_LINK,
        .is_random = 1,
        .values    = EMU_QUIRK_OOO_VALUES,
        .what      = "some packets of writes, percent of them, are overtaken by"
                     " up to so many packets of their queue pair for up to that"
                     " time, and are placed after them; on service levels 0"
                     " to 7; with \"loopback\" also within a port",
        .real      = "adaptive routing, ConnectX-5 and later, RC and DC",
        .source    = EMU_QUIRK_OOO_SOURCE
    },
    [EMU_QUIRK_OOO_ALL] = {
        .name      = "ooo-all",
        .scope     = EMU_QUIRK_SCOPE_LINK,
        .is_random = 1,
        .values    = EMU_QUIRK_OOO_VALUES,
        .what      = "as ooo, on all service levels",
        .real      = "adaptive routing by ar_updn with ar_sl_mask 0xffff, the"
                     " default of UFM",
        .source    = EMU_QUIRK_OOO_SOURCE
    },
    [EMU_QUIRK_LATE_WRITE] = {
        .name      = "late-write",
        .scope     = EMU_QUIRK_SCOPE_LINK,
        .is_random = 1,
        .values    = {{"time", 1, 5000000, 1000, 60000000000},
                      {"passed", 0, 0, 0, 1}},
        .what      = "the responder accepts and acknowledges writes, and places"
                     " them up to that time later, in order; also after their"
                     " queue pair went to ERR, but not after RESET; with"
                     " \"passed\" other queue pairs of the port may read before",
        .real      = "any NIC: acknowledgements say that a packet was received,"
                     " and it may still be in the NIC or on the bus",
        .source    = "InfiniBand specification, volume 1, 9.5, transaction"
                     " ordering: a responder's program may rely on a write only"
                     " after a later receive completion or atomic"
    },
    [EMU_QUIRK_PSN_LOST] = {
        .name   = "psn-lost",
        .scope  = EMU_QUIRK_SCOPE_LINK,
        .what   = "querying a queue pair in ERR returns zero for its PSNs",
        .real   = "drivers that do not fill in rq_psn, in any state: EFA",
        .source = "Linux, drivers/infiniband/hw/efa/efa_verbs.c, efa_query_qp()"
    },
    [EMU_QUIRK_PSN_STALE] = {
        .name   = "psn-stale",
        .scope  = EMU_QUIRK_SCOPE_LINK,
        .values = {{"always", 0, 0, 0, 1}},
        .what   = "querying a queue pair in ERR returns the PSNs of the last"
                  " modify, or of the last query before ERR; with \"always\" a"
                  " query in any state returns those of the last modify",
        .real   = "drivers that answer from their own memory: irdma (always)",
        .source = "Linux, drivers/infiniband/hw/irdma/verbs.c, irdma_query_qp()"
    },
    [EMU_QUIRK_SLOW_CMD] = {
        .name   = "slow-cmd",
        .scope  = EMU_QUIRK_SCOPE_LINK,
        .values = {{"time", 1, 2000000000, 1000, 120000000000}},
        .what   = "commands to a NIC that is dead or hung (nic kill) take so long"
                  " before they fail, destruction of objects as long before it"
                  " succeeds",
        .real   = "mlx5 waits up to 60 s for a command, MLX5_TO_CMD_MS",
        .source = "Linux, drivers/net/ethernet/mellanox/mlx5/core/cmd.c,"
                  " wait_func()"
    },
    [EMU_QUIRK_FATAL_WRITES] = {
        .name   = "fatal-writes",
        .scope  = EMU_QUIRK_SCOPE_LINK,
        .values = {{"time", 1, 200000000, 1000, 60000000000},
                   {"lies", 0, 0, 0, 1}},
        .what   = "a NIC that raises DEVICE_FATAL continues sending, placing writes"
                  " and completing for this time, though every command fails; with"
                  " \"lies\" a transition to RESET or ERR seems to succeed and"
                  " does nothing",
        .real   = "mlx5 raises the event before it resets the device, and answers"
                  " 2RST_QP and 2ERR_QP itself from then on (lies)",
        .source = "Linux, drivers/net/ethernet/mellanox/mlx5/core/health.c,"
                  " mlx5_enter_error_state(), and cmd.c,"
                  " mlx5_internal_err_ret_value()"
    },
    [EMU_QUIRK_NO_LAST_WQE] = {
        .name   = "no-last-wqe",
        .scope  = EMU_QUIRK_SCOPE_LINK,
        .what   = "LAST_WQE_REACHED never arrives",
        .real   = "soft-RoCE did not raise it; the kernel's own drain of an SRQ"
                  " waits for it with a time-out",
        .source = "https://github.com/spdk/spdk/issues/1697; Linux,"
                  " drivers/infiniband/core/verbs.c, __ib_drain_srq()"
    },
    [EMU_QUIRK_LATE_LAST_WQE] = {
        .name   = "late-last-wqe",
        .scope  = EMU_QUIRK_SCOPE_LINK,
        .values = {{"time", 1, 100000000, 1000, 60000000000}},
        .what   = "LAST_WQE_REACHED arrives that time after the queue pair has"
                  " flushed its receive buffer",
        .real   = "the driver delivers the events of a device one after the other,"
                  " from a work queue, and a program's thread has to read them",
        .source = "Linux, drivers/infiniband/hw/mlx5/qp.c, mlx5_ib_qp_event()"
    },
    [EMU_QUIRK_LATE_FLUSH] = {
        .name   = "late-flush",
        .scope  = EMU_QUIRK_SCOPE_LINK,
        .values = {{"time", 1, 1000000000, 1000, 60000000000}},
        .what   = "the send queue of a queue pair in ERR is flushed that much later,"
                  " and not at all if it is reset before",
        .real   = "a NIC that is stuck, for example behind paused traffic, while its"
                  " firmware answers commands; no document says how soon a NIC flushes",
        .source = "InfiniBand specification, volume 1, 10.3.1; Linux,"
                  " drivers/infiniband/core/verbs.c, __ib_drain_sq(), waits for it"
    },
    [EMU_QUIRK_FIXED_PORT] = {
        .name   = "fixed-port",
        .scope  = EMU_QUIRK_SCOPE_LINK,
        .what   = "a port whose link is down reports itself active and raises no"
                  " event, nor when the link comes up again",
        .real   = "virtual functions whose link state is fixed: ip link set ... vf"
                  " N state enable, sriov policy Up",
        .source = "Linux, drivers/infiniband/hw/mlx5/ib_virt.c, MLX5_POLICY_UP;"
                  " IFLA_VF_LINK_STATE_ENABLE"
    },
    [EMU_QUIRK_NO_ROUTE] = {
        .name   = "no-route",
        .scope  = EMU_QUIRK_SCOPE_LINK,
        .what   = "while a port is down, its RC and UD queue pairs complete what"
                  " they are to send at once with LOC_QP_OP_ERR, and are in ERR,"
                  " where others try again until RETRY_EXC_ERR",
        .real   = "soft-RoCE, whose packets need a route of the kernel",
        .source = "Linux, drivers/infiniband/sw/rxe/rxe_req.c, rxe_requester(),"
                  " and rxe_net.c, rxe_find_route()"
    },
    [EMU_QUIRK_BLIND_ARM] = {
        .name   = "blind-arm",
        .scope  = EMU_QUIRK_SCOPE_LINK,
        .what   = "ibv_req_notify_cq() raises no event for completions that are in"
                  " the completion queue already",
        .real   = "soft-RoCE, and NICs that only compare new completions; mlx5"
                  " looks at the consumer index",
        .source = "Linux, drivers/infiniband/sw/rxe/rxe_verbs.c,"
                  " rxe_req_notify_cq(); manual page ibv_get_cq_event(3)"
    },
    [EMU_QUIRK_SAME_KEY] = {
        .name   = "same-key",
        .scope  = EMU_QUIRK_SCOPE_LINK,
        .what   = "a region that is registered gets the very key that was released"
                  " last on that NIC",
        .real   = "mlx5: the driver keeps keys of deregistered regions in a cache,"
                  " and takes the last one first",
        .source = "Linux, drivers/infiniband/hw/mlx5/mr.c, mlx5_revoke_mr() and"
                  " pop_mkey_locked(); assign_mkey_variant() only numbers new keys"
    },
    [EMU_QUIRK_DEAD_SL] = {
        .name   = "dead-sl",
        .scope  = EMU_QUIRK_SCOPE_LINK,
        .values = {{"first", 0, 8, 0, 15}},
        .what   = "what the port sends on this service level and on higher ones is"
                  " lost, unless it is for the port itself",
        .real   = "a subnet whose tables give such a service level no virtual lane"
                  " with credits, or a routing without paths for it",
        .source = "OpenSM, doc/QoS_management_in_OpenSM.txt: options qos_sl2vl,"
                  " qos_vlarb_high and qos_vlarb_low"
    },
    [EMU_QUIRK_LIMITED_PKEY] = {
        .name     = "limited-pkey",
        .scope    = EMU_QUIRK_SCOPE_LINK,
        .is_fixed = 1,
        .what     = "an InfiniBand port is a limited member of the partition at"
                    " index 0 of its P_Keys, 0x7fff, and a full one of that at"
                    " index 1, 0x8001; a packet between two limited members, or"
                    " between partitions, is dropped",
        .real     = "partitioned fabrics, where the default partition has one full"
                    " member, the subnet manager",
        .source   = "OpenSM, doc/partition-config.txt; UCX,"
                    " uct_ib_iface_init_pkey(), takes the first full membership"
    },
    [EMU_QUIRK_ROCE] = {
        .name   = "roce",
        .scope  = EMU_QUIRK_SCOPE_LINK,
        .values = {{"time", 1, 1000000000, 1000000, 600000000000}},
        .what   = "the link layer is Ethernet: no LIDs, and a table of GIDs for"
                  " RoCE v1 and v2 with IPv4 and IPv6 addresses; a port that was"
                  " not reached yet is asked for its MAC address until it answers,"
                  " for that time at most",
        .real   = "ConnectX ports configured for Ethernet",
        .source = "InfiniBand specification, annexes A16 and A17; Linux,"
                  " drivers/infiniband/core/roce_gid_mgmt.c, and addr.c,"
                  " rdma_addr_find_l2_eth_by_grh()"
    },
    [EMU_QUIRK_SAME_GID] = {
        .name   = "same-gid",
        .scope  = EMU_QUIRK_SCOPE_LINK,
        .what   = "the planes have one GID prefix in common, with RoCE one IP"
                  " network, though no packet passes from one to another",
        .real   = "a subnet manager for each plane, all with the default prefix"
                  " fe80::/64",
        .source = "OpenSM, option subnet_prefix; Open MPI, btl/openib:"
                  " \"default subnet GID prefix\""
    },
    [EMU_QUIRK_MISWIRED] = {
        .name        = "miswired",
        .scope       = EMU_QUIRK_SCOPE_LINK,
        .needs_place = 1,
        .values      = {{"planes", 0, 1, 1, 7}},
        .what        = "a port is connected to the plane of another link: so many"
                       " further on",
        .real        = "cables in the wrong switches",
        .source      = "ibutils, ibtopodiff(1), which finds them"
    },
    [EMU_QUIRK_GID_MOVES] = {
        .name   = "gid-moves",
        .scope  = EMU_QUIRK_SCOPE_LINK,
        .what   = "a link that was down has other addresses: with RoCE, its GIDs"
                  " are gone meanwhile and get other indices (GID_CHANGE); with"
                  " InfiniBand, its LID is another one (LID_CHANGE)",
        .real   = "interfaces that are configured again while queue pairs hold"
                  " the old GID entries; a subnet manager that gives out LIDs anew",
        .source = "NCCL #2157, #1333; Mooncake #3920; Linux,"
                  " drivers/infiniband/core/cache.c, del_gid()"
    },
    [EMU_QUIRK_NO_MLX5DV] = {
        .name     = "no-mlx5dv",
        .scope    = EMU_QUIRK_SCOPE_LINK,
        .is_fixed = 1,
        .what     = "devices verbs_<k> of another make: verbs, without direct"
                    " verbs of mlx5, DEVX and DC",
        .real     = "any NIC but mlx5, and soft-RoCE",
        .source   = "rdma-core, providers/mlx5/mlx5.c, mlx5dv_is_supported()"
    },
    [EMU_QUIRK_BOND] = {
        .name     = "bond",
        .scope    = EMU_QUIRK_SCOPE_HOST,
        .is_fixed = 1,
        .values   = {{"time", 1, 10000000, 0, 60000000000},
                     {"lag_dct", 0, 1, 0, 1}},
        .what     = "links 2k and 2k+1 of a host are the ports of one device,"
                    " mlx5_bond_<k>, which uses the second while the first is"
                    " down, and loses packets for so long when it changes over;"
                    " it has DC if lag_dct is 1",
        .real     = "RoCE LAG, modes active-backup, balance-xor, 802.3ad",
        .source   = "Linux, drivers/net/ethernet/mellanox/mlx5/core/lag; DC needs"
                    " lag_dct in the firmware, commit 7c4b1ab9f167"
    }
};

const char *emu_quirk_scope_names[EMU_QUIRK_SCOPE_LAST] = {
    [EMU_QUIRK_SCOPE_FABRIC] = "fabric",
    [EMU_QUIRK_SCOPE_HOST]   = "host",
    [EMU_QUIRK_SCOPE_LINK]   = "link"
};


/* Where an error is written */
typedef struct emu_quirk_error {
    char   *text;
    size_t max;
} emu_quirk_error_t;


static int emu_quirk_fail(emu_quirk_error_t *err, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static int emu_quirk_fail(emu_quirk_error_t *err, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(err->text, err->max, fmt, ap);
    va_end(ap);
    return -1;
}

static int emu_quirk_unknown(const char *name, emu_quirk_error_t *err)
{
    char names[512] = "";
    unsigned i;

    for (i = 0; i < EMU_QUIRK_LAST; ++i) {
        snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s",
                 (i == 0) ? "" : ", ", emu_quirk_infos[i].name);
    }

    return emu_quirk_fail(err, "there is no quirk \"%s\"; there are %s", name,
                          names);
}

static unsigned emu_quirk_num_values(emu_quirk_t quirk)
{
    unsigned num = 0;

    while ((num < EMU_QUIRK_MAX_VALUES) &&
           (emu_quirk_infos[quirk].values[num].name != NULL)) {
        ++num;
    }

    return num;
}

/* A value as a rule would give it */
static void emu_quirk_format_value(const emu_quirk_value_t *info,
                                   uint64_t value, char *buf, size_t max)
{
    unsigned i = 0;

    if (!info->is_time) {
        snprintf(buf, max, "%" PRIu64, value);
        return;
    }

    /* The largest unit in which it is whole: the table begins with the largest */
    while (value % emu_fault_time_units[i].value) {
        ++i;
    }

    snprintf(buf, max, "%" PRIu64 "%s", value / emu_fault_time_units[i].value,
             emu_fault_time_units[i].name);
}

static int emu_quirk_parse_value(const emu_quirk_info_t *quirk,
                                 const emu_quirk_value_t *info,
                                 const char *text, uint64_t *value_p,
                                 emu_quirk_error_t *err)
{
    char min[32], max[32];
    const char *end;
    int ret;

    if (info->is_time) {
        ret = emu_fault_read_time(text, value_p);
    } else {
        ret = emu_fault_parse_u64(text, value_p, &end) || (*end != '\0');
    }

    if (ret || (*value_p < info->min) || (*value_p > info->max)) {
        emu_quirk_format_value(info, info->min, min, sizeof(min));
        emu_quirk_format_value(info, info->max, max, sizeof(max));
        return emu_quirk_fail(err, "%s: %s is a %s from %s to %s, not \"%s\"",
                              quirk->name, info->name,
                              info->is_time ? "time" : "number", min, max,
                              text);
    }

    return 0;
}

/* NAME[:VALUE]... */
static int emu_quirk_parse_one(char *word, emu_quirk_rule_t *rule,
                               emu_quirk_error_t *err)
{
    static const char *counts[EMU_QUIRK_MAX_VALUES + 1] = {
        "no", "one", "two", "three", "four"
    };
    char *next = strchr(word, ':');
    const emu_quirk_info_t *info;
    unsigned i, num;
    char *text;

    if (next != NULL) {
        *next++ = '\0';
    }

    for (i = 0; (i < EMU_QUIRK_LAST) && strcmp(emu_quirk_infos[i].name, word);
         ++i) {
    }

    if (i == EMU_QUIRK_LAST) {
        return emu_quirk_unknown(word, err);
    }

    rule->quirk      = i;
    rule->has_values = (next != NULL);
    info             = &emu_quirk_infos[i];
    num              = emu_quirk_num_values(rule->quirk);
    for (i = 0; i < num; ++i) {
        rule->values[i] = info->values[i].preset;
    }

    for (i = 0; next != NULL; ++i) {
        text = next;
        next = strchr(text, ':');
        if (next != NULL) {
            *next++ = '\0';
        }

        if (i >= num) {
            return emu_quirk_fail(err, "quirk %s has %s value%s, and \"%s\" is"
                                  " one more", info->name, counts[num],
                                  (num == 1) ? "" : "s", text);
        }

        if (emu_quirk_parse_value(info, &info->values[i], text,
                                  &rule->values[i], err)) {
            return -1;
        }
    }

    return 0;
}

/* HOST or HOST:LINK */
static int emu_quirk_parse_place(const char *text, emu_quirk_rule_t *rule,
                                 emu_quirk_error_t *err)
{
    const char *end;
    uint64_t host;

    if (!emu_fault_read_port(text, &rule->host, &rule->link)) {
        return 0;
    }

    if (emu_fault_parse_u64(text, &host, &end) || (*end != '\0') ||
        (host > 254)) {
        return emu_quirk_fail(err, "\"%s\" is no place: HOST or HOST:LINK,"
                              " such as 0 or 0:1", text);
    }

    rule->host = host;
    return 0;
}

/* Whether a quirk can be had at that place alone */
static int emu_quirk_check_scope(const emu_quirk_rule_t *rule,
                                 emu_quirk_error_t *err)
{
    const emu_quirk_info_t *info = &emu_quirk_infos[rule->quirk];

    if ((info->scope == EMU_QUIRK_SCOPE_FABRIC) &&
        (rule->host != EMU_QUIRK_ANY)) {
        return emu_quirk_fail(err, "quirk %s concerns the whole fabric: it"
                              " takes no host or link", info->name);
    }

    if ((info->scope == EMU_QUIRK_SCOPE_HOST) &&
        (rule->link != EMU_QUIRK_ANY)) {
        return emu_quirk_fail(err, "quirk %s concerns a whole host: \"%u=%s\","
                              " not \"%u:%u=%s\"", info->name, rule->host,
                              info->name, rule->host, rule->link, info->name);
    }

    if (info->needs_place && (rule->host == EMU_QUIRK_ANY)) {
        return emu_quirk_fail(err, "quirk %s needs a host or a link, such as"
                              " 1=%s or 1:0=%s: on all of them it changes"
                              " nothing", info->name, info->name, info->name);
    }

    return 0;
}

/* The next word of a list, up to one of the characters of @a ends */
static int emu_quirk_next_word(const char **text_p, const char *ends,
                               char *word, emu_quirk_error_t *err)
{
    size_t length = strcspn(*text_p, ends);

    if ((length == 0) || (length >= EMU_QUIRK_WORD_MAX)) {
        return emu_quirk_fail(err, "expected [HOST[:LINK]=]NAME[,NAME]...,"
                              " not \"%s\"", *text_p);
    }

    memcpy(word, *text_p, length);
    word[length] = '\0';
    *text_p     += length;
    return 0;
}

int emu_quirk_parse(const char *text, emu_quirk_rule_t *rules, unsigned *num_p,
                    char *err_text, size_t err_max)
{
    emu_quirk_error_t err  = { err_text, err_max };
    emu_quirk_rule_t place = { .host = EMU_QUIRK_ANY, .link = EMU_QUIRK_ANY };
    char word[EMU_QUIRK_WORD_MAX];

    *num_p = 0;
    if (strchr(text, '=') != NULL) {
        if (emu_quirk_next_word(&text, "=", word, &err) ||
            emu_quirk_parse_place(word, &place, &err)) {
            return -1;
        }
        ++text;
    }

    for (;;) {
        if (emu_quirk_next_word(&text, ",", word, &err)) {
            return -1;
        }

        if (*num_p == EMU_QUIRK_MAX_RULES) {
            return emu_quirk_fail(&err, "more than %d quirks at once",
                                  EMU_QUIRK_MAX_RULES);
        }

        rules[*num_p] = place;
        if (emu_quirk_parse_one(word, &rules[*num_p], &err) ||
            emu_quirk_check_scope(&rules[*num_p], &err)) {
            return -1;
        }

        ++*num_p;
        if (*text == '\0') {
            return 0;
        }
        ++text;
    }
}

char *emu_quirk_format(emu_quirk_t quirk, const uint64_t *values, char *buf,
                       size_t max)
{
    const emu_quirk_info_t *info = &emu_quirk_infos[quirk];
    unsigned num                 = emu_quirk_num_values(quirk);
    size_t length;
    unsigned i;

    while ((num > 0) && (values[num - 1] == info->values[num - 1].preset)) {
        --num;
    }

    length = snprintf(buf, max, "%s", info->name);
    for (i = 0; (i < num) && (length + 1 < max); ++i) {
        buf[length++] = ':';
        emu_quirk_format_value(&info->values[i], values[i], buf + length,
                               max - length);
        length += strlen(buf + length);
    }

    return buf;
}

char *emu_quirk_format_usage(emu_quirk_t quirk, char *buf, size_t max)
{
    const emu_quirk_info_t *info = &emu_quirk_infos[quirk];
    unsigned num                 = emu_quirk_num_values(quirk);
    size_t length                = 0;
    char preset[32];
    unsigned i;

    buf[0] = '\0';
    for (i = 0; (i < num) && (length < max); ++i) {
        emu_quirk_format_value(&info->values[i], info->values[i].preset,
                               preset, sizeof(preset));
        length += snprintf(buf + length, max - length, "%s:%s (%s)",
                           (i == 0) ? "" : " ", info->values[i].name, preset);
    }

    return buf;
}
