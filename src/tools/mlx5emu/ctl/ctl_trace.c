/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Verb "trace": what was executed at the responders, in order.
 */

#include "ctl_trace_check.h"
#include "../core/emu_map.h"
#include "../core/emu_port.h"
#include "../rules/emu_quirk_rule.h"

#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#define CTL_TRACE_BATCH   256
#define CTL_TRACE_POLL_MS 50

enum {
    CTL_TRACE_JSON = 256,
    CTL_TRACE_FROM,
    CTL_TRACE_CHECK
};

static const struct option ctl_trace_options[] = {
    {"json",   no_argument,       NULL, CTL_TRACE_JSON},
    {"check",  no_argument,       NULL, CTL_TRACE_CHECK},
    {"follow", no_argument,       NULL, 'f'},
    {"from",   required_argument, NULL, CTL_TRACE_FROM},
    {NULL,     0,                 NULL, 0}
};

typedef struct ctl_trace_args {
    int      json;
    int      follow;
    int      by_host;
    unsigned host;
    int      check;
    uint64_t from;     /* Number of the first entry */
} ctl_trace_args_t;

static volatile sig_atomic_t ctl_trace_stop;

static const struct {
    uint8_t    flag;
    const char *name;
} ctl_trace_flags[] = {
    {EMU_TRACE_FLAG_DUP,     "duplicate"},
    {EMU_TRACE_FLAG_PARTIAL, "partial"},
    {EMU_TRACE_FLAG_LAST,    "last"},
    {EMU_TRACE_FLAG_INLINE,  "inline"},
    {EMU_TRACE_FLAG_OOO,     "out_of_order"}
};

#define CTL_NUM_FLAGS (sizeof(ctl_trace_flags) / sizeof(ctl_trace_flags[0]))


static const char *ctl_trace_op(const emu_trace_entry_t *entry)
{
    return (entry->op < EMU_TRACE_LAST) ? emu_trace_op_names[entry->op] : "?";
}

static const char *ctl_trace_qp_type(const emu_trace_entry_t *entry)
{
    return (entry->qp_type < EMU_QPT_LAST) ?
           emu_qp_type_names[entry->qp_type] : "?";
}

static const char *ctl_trace_ack(const emu_trace_entry_t *entry)
{
    return (entry->ack < EMU_TRACE_ACK_LAST) ? emu_trace_ack_names[entry->ack] :
           "?";
}

static const char *ctl_trace_quirk(const emu_trace_entry_t *entry)
{
    return (entry->arg[0] < EMU_QUIRK_LAST) ?
           emu_quirk_infos[entry->arg[0]].name : "?";
}

/* Which queue pair ever made in the fabric, and which request of it */
static const char *ctl_trace_id(const emu_trace_entry_t *entry, char *buf,
                                size_t max)
{
    snprintf(buf, max, "%" PRIu64 ".%" PRIu64, entry->id >> EMU_QP_OPS_BITS,
             entry->id & ((1ul << EMU_QP_OPS_BITS) - 1));
    return buf;
}

static void ctl_trace_print_arg(const emu_trace_entry_t *entry)
{
    switch (entry->op) {
    case EMU_TRACE_CAS:
        printf(" compare 0x%" PRIx64 " swap 0x%" PRIx64, entry->arg[0],
               entry->arg[1]);
        break;
    case EMU_TRACE_FAA:
        printf(" add 0x%" PRIx64, entry->arg[0]);
        break;
    case EMU_TRACE_QUIRK:
        printf(" name %s", ctl_trace_quirk(entry));
        break;
    case EMU_TRACE_SEND_IMM:
    case EMU_TRACE_WRITE_IMM:
        printf(" imm 0x%" PRIx64, entry->arg[0]);
        break;
    default:
        break;
    }
}

static void ctl_trace_print(const emu_trace_entry_t *entry)
{
    char id[48];
    unsigned i;

    printf("%" PRIu64 " %.6f %u:%u %s from %u qp 0x%06x->0x%06x %s wqe %u psn"
           " %u len %u addr 0x%" PRIx64 " data 0x%" PRIx64, entry->seq,
           entry->time_ns * 1e-9, entry->host, entry->link,
           ctl_trace_op(entry), entry->src_host, entry->src_qpn, entry->qpn,
           ctl_trace_qp_type(entry), entry->wqe_index, entry->psn,
           entry->length, entry->addr, entry->data);
    ctl_trace_print_arg(entry);
    printf(" id %s ack %s", ctl_trace_id(entry, id, sizeof(id)),
           ctl_trace_ack(entry));
    for (i = 0; i < CTL_NUM_FLAGS; ++i) {
        if (entry->flags & ctl_trace_flags[i].flag) {
            printf(" %s", ctl_trace_flags[i].name);
        }
    }

    printf("\n");
}

/* 64-bit values are strings: JSON numbers are only exact up to 2^53 in many a
 * reader */
static void ctl_trace_set_hex(json_t *root, const char *key, uint64_t value)
{
    char text[32];

    snprintf(text, sizeof(text), "0x%" PRIx64, value);
    json_object_set_new(root, key, json_string(text));
}

static void ctl_trace_json_arg(json_t *root, const emu_trace_entry_t *entry)
{
    switch (entry->op) {
    case EMU_TRACE_CAS:
        ctl_trace_set_hex(root, "compare", entry->arg[0]);
        ctl_trace_set_hex(root, "swap", entry->arg[1]);
        break;
    case EMU_TRACE_FAA:
        ctl_trace_set_hex(root, "add", entry->arg[0]);
        break;
    case EMU_TRACE_QUIRK:
        json_object_set_new(root, "quirk",
                            json_string(ctl_trace_quirk(entry)));
        break;
    case EMU_TRACE_SEND_IMM:
    case EMU_TRACE_WRITE_IMM:
        ctl_trace_set_hex(root, "imm", entry->arg[0]);
        break;
    default:
        break;
    }
}

static void ctl_trace_print_json(const emu_trace_entry_t *entry)
{
    json_t *root;
    char id[48];
    unsigned i;

    root = json_pack("{s:I, s:I, s:i, s:i, s:i, s:s, s:s, s:i, s:i, s:i, s:i,"
                     " s:I, s:s, s:s}", "seq", (json_int_t)entry->seq, "time_ns",
                     (json_int_t)entry->time_ns, "host", entry->host, "link",
                     entry->link, "src_host", entry->src_host, "op",
                     ctl_trace_op(entry), "type", ctl_trace_qp_type(entry),
                     "qpn", (int)entry->qpn, "src_qpn", (int)entry->src_qpn,
                     "wqe", entry->wqe_index, "psn", (int)entry->psn, "length",
                     (json_int_t)entry->length, "id",
                     ctl_trace_id(entry, id, sizeof(id)), "ack",
                     ctl_trace_ack(entry));
    if (root == NULL) {
        return;
    }

    ctl_trace_set_hex(root, "addr", entry->addr);
    ctl_trace_set_hex(root, "rkey", entry->rkey);
    ctl_trace_set_hex(root, "data", entry->data);
    ctl_trace_json_arg(root, entry);
    for (i = 0; i < CTL_NUM_FLAGS; ++i) {
        json_object_set_new(root, ctl_trace_flags[i].name,
                            json_boolean(entry->flags &
                                         ctl_trace_flags[i].flag));
    }

    json_dumpf(root, stdout, JSON_COMPACT);
    json_decref(root);
    printf("\n");
}

static void ctl_trace_print_lost(const ctl_trace_args_t *args, uint64_t lost)
{
    if (args->json) {
        printf("{\"lost\":%" PRIu64 "}\n", lost);
    }

    ctl_fail("%" PRIu64 " entries were overwritten before they were read; make"
             " the fabric with a larger --trace (it holds %" PRIu64 ")", lost,
             emu_fabric->cfg.trace_entries);
}

/* Print all that is new. @return entries lost */
static uint64_t ctl_trace_print_new(const ctl_trace_args_t *args,
                                    uint64_t *pos)
{
    static emu_trace_entry_t entries[CTL_TRACE_BATCH];
    uint64_t total = 0;
    uint64_t lost;
    unsigned num, i;

    do {
        lost = 0;
        num  = emu_trace_read(emu_fabric->trace, pos, entries, CTL_TRACE_BATCH,
                              &lost);
        if (lost > 0) {
            ctl_trace_print_lost(args, lost);
            total += lost;
        }

        for (i = 0; i < num; ++i) {
            if (args->by_host && (entries[i].host != args->host)) {
                continue;
            }

            if (args->json) {
                ctl_trace_print_json(&entries[i]);
            } else {
                ctl_trace_print(&entries[i]);
            }
        }
    } while ((num > 0) && !ctl_trace_stop);

    fflush(stdout);
    return total;
}

/* @return exit status */
static int ctl_trace_judge(const ctl_trace_args_t *args)
{
    static emu_trace_entry_t entries[CTL_TRACE_BATCH];
    ctl_check_t *check = ctl_check_create();
    uint64_t end       = emu_trace_count(emu_fabric->trace);
    uint64_t pos       = args->from - 1;
    uint64_t lost;
    unsigned num, i;

    if (check == NULL) {
        return ctl_fail("out of memory");
    }

    if (pos > 0) {
        ctl_check_left_out(check, pos);
    }

    while (pos < end) {
        lost = 0;
        num  = emu_trace_read(emu_fabric->trace, &pos, entries, CTL_TRACE_BATCH,
                              &lost);
        if (lost > 0) {
            ctl_trace_print_lost(args, lost);
            ctl_check_lost(check, lost);
        } else if (num == 0) {
            break; /* the rest is being written just now */
        }

        for (i = 0; i < num; ++i) {
            if (!args->by_host || (entries[i].host == args->host)) {
                ctl_check_entry(check, &entries[i]);
            }
        }
    }

    return ctl_check_finish(check, args->json);
}

static void ctl_trace_signal(int signum)
{
    (void)signum;
    ctl_trace_stop = 1;
}

static int ctl_trace_show(const ctl_trace_args_t *args)
{
    struct timespec interval = {0, CTL_TRACE_POLL_MS * 1000000l};
    struct sigaction action  = {.sa_handler = ctl_trace_signal};
    uint64_t lost            = 0;
    uint64_t pos             = args->from - 1;

    if (emu_fabric->cfg.trace_entries == 0) {
        return ctl_fail("fabric \"%s\" has no trace: it was made with --trace"
                        " 0", ctl_fabric_name());
    }

    if (args->check) {
        return ctl_trace_judge(args);
    }

    if (args->follow) {
        sigaction(SIGINT, &action, NULL);
        sigaction(SIGTERM, &action, NULL);
    }

    lost = ctl_trace_print_new(args, &pos);
    while (args->follow && !ctl_trace_stop && !ferror(stdout)) {
        nanosleep(&interval, NULL);
        lost += ctl_trace_print_new(args, &pos);
    }

    return (lost > 0) ? CTL_INCOMPLETE : CTL_OK;
}

static int ctl_trace_open(int argc, char **argv, ctl_trace_args_t *args)
{
    int status;

    if (argc > 1) {
        return ctl_usage_fail(&ctl_verb_trace, "unexpected \"%s\"", argv[1]);
    }

    status = ctl_fabric_open();
    if (status) {
        return status;
    }

    if (argc == 1) {
        args->by_host = 1;
        status        = ctl_parse_host(&ctl_verb_trace, argv[0], &args->host);
    }

    if (status == 0) {
        status = ctl_trace_show(args);
    }

    emu_fabric_close();
    return status;
}

static int ctl_trace_run(int argc, char **argv)
{
    ctl_trace_args_t args = {.from = 1};
    int status            = 0;
    int c;

    while ((c = ctl_getopt(&ctl_verb_trace, argc, argv, "f", ctl_trace_options,
                           &status)) != -1) {
        switch (c) {
        case CTL_TRACE_JSON:
            args.json = 1;
            break;
        case CTL_TRACE_CHECK:
            args.check = 1;
            break;
        case 'f':
            args.follow = 1;
            break;
        case CTL_TRACE_FROM:
            if (ctl_parse_number(optarg, 1, UINT64_MAX, &args.from)) {
                return ctl_usage_fail(&ctl_verb_trace, "--from: \"%s\" is not"
                                      " the number of an entry", optarg);
            }
            break;
        default:
            return status;
        }
    }

    if (args.check && args.follow) {
        return ctl_usage_fail(&ctl_verb_trace, "--check and --follow exclude"
                              " each other");
    }

    return ctl_trace_open(argc - optind, argv + optind, &args);
}

const ctl_verb_t ctl_verb_trace = {
    .name    = "trace",
    .run     = ctl_trace_run,
    .usage   = "[-n NAME] [--json] [--follow | --check] [--from N] [HOST]",
    .help    = "Show what was executed at the responders, in order",
    .details =
    "  -n NAME       Name of the fabric\n"
    "  HOST          Only what this host executed as a responder\n"
    "  --json        One JSON object a line\n"
    "  --follow, -f  Go on until interrupted\n"
    "  --from N      Begin with entry N\n"
    "  --check       Print no entries, but check them: each request executed\n"
    "                at most once, without a gap, in the order of posting;"
    " exit\n                status 1 if not\n\n"
    "Exit status 3 means that entries were overwritten before they could be"
    " read.\n"
};
