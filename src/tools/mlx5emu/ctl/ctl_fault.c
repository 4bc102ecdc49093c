/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Verb "fault": load, list and clear fault rules. The language itself is in
 * rules/emu_fault_parse.c.
 */

#include "ctl.h"
#include "../core/emu_map.h"
#include "../fault/emu_fault.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define CTL_FAULT_ERR_MAX 384

enum {
    CTL_FAULT_FILE = 256,
    CTL_FAULT_JSON,
    CTL_FAULT_CHECK
};

static const struct option ctl_fault_options[] = {
    {"file",  required_argument, NULL, CTL_FAULT_FILE},
    {"json",  no_argument,       NULL, CTL_FAULT_JSON},
    {"check", no_argument,       NULL, CTL_FAULT_CHECK},
    {NULL,    0,                 NULL, 0}
};

typedef struct ctl_fault_args {
    const char *file;
    int        json;
    int        check;
} ctl_fault_args_t;


static int ctl_fault_check_host(uint32_t host, const char *name, char *err)
{
    if ((host == EMU_FAULT_ANY) || (host < emu_fabric->cfg.hosts)) {
        return 0;
    }

    snprintf(err, CTL_FAULT_ERR_MAX, "%s%u: the fabric has hosts 0 to %u",
             name, host, emu_fabric->cfg.hosts - 1);
    return -1;
}

static int ctl_fault_check_link(uint32_t link, const char *name, char *err)
{
    if ((link == EMU_FAULT_ANY) || (link < emu_fabric->cfg.links)) {
        return 0;
    }

    snprintf(err, CTL_FAULT_ERR_MAX, "%s%u: the fabric has links 0 to %u",
             name, link, emu_fabric->cfg.links - 1);
    return -1;
}

/* Parse a rule and compare it with the open fabric: one that could never fire
 * is an error */
static int ctl_fault_parse(const char *line, emu_fault_rule_t *rule, char *err)
{
    const char *action;

    if (emu_fault_rule_parse(line, rule, err, CTL_FAULT_ERR_MAX)) {
        return -1;
    }

    action = emu_fault_action_names[rule->action];
    return (ctl_fault_check_host(rule->host, "host=", err) ||
            ctl_fault_check_host(rule->peer, "peer=", err) ||
            ctl_fault_check_link(rule->link, "link=", err) ||
            ctl_fault_check_host(rule->at_host, action, err) ||
            ctl_fault_check_link(rule->at_link, action, err)) ? -1 : 0;
}

static int ctl_fault_add_rule(const emu_fault_rule_t *rule, int verbose)
{
    char line[EMU_FAULT_LINE_MAX];
    int id = emu_fault_add(rule);

    if (id < 0) {
        return ctl_fail("cannot load the rule: %s",
                        (id == -ENOSPC) ? "the fabric has as many as it can"
                        " hold; \"" CTL_PROGRAM " fault clear\" unloads them" :
                        strerror(-id));
    }

    if (verbose) {
        printf("%d: %s\n", id,
               emu_fault_rule_format(rule, line, sizeof(line)));
    }

    return 0;
}

/* Read all rules of a file. @return their number, or -1 */
static int ctl_fault_read(FILE *stream, const char *path,
                          emu_fault_rule_t *rules)
{
    char line[EMU_FAULT_LINE_MAX * 2];
    char err[CTL_FAULT_ERR_MAX];
    unsigned line_num = 0;
    unsigned num      = 0;

    while (fgets(line, sizeof(line), stream) != NULL) {
        ++line_num;
        line[strcspn(line, "#\n")] = '\0';
        if (line[strspn(line, " \t\r")] == '\0') {
            continue;
        }

        if (num == EMU_FAULT_MAX_RULES) {
            ctl_fail("%s:%u: more than %d rules", path, line_num,
                     EMU_FAULT_MAX_RULES);
            return -1;
        }

        if (ctl_fault_parse(line, &rules[num], err)) {
            ctl_fail("%s:%u: %s", path, line_num, err);
            return -1;
        }

        ++num;
    }

    if (ferror(stream)) {
        ctl_fail("cannot read %s: %s", path, strerror(errno));
        return -1;
    }

    return num;
}

static int ctl_fault_load_stream(FILE *stream, const char *name, int verbose)
{
    static emu_fault_rule_t rules[EMU_FAULT_MAX_RULES];
    int num = ctl_fault_read(stream, name, rules);
    int i;

    for (i = 0; i < num; ++i) {
        if (ctl_fault_add_rule(&rules[i], verbose)) {
            return CTL_FAILED;
        }
    }

    return (num < 0) ? CTL_FAILED : CTL_OK;
}

int ctl_fault_load(const char *path, int verbose)
{
    FILE *stream = strcmp(path, "-") ? fopen(path, "r") : stdin;
    int status;

    if (stream == NULL) {
        return ctl_fail("cannot open %s: %s", path, strerror(errno));
    }

    status = ctl_fault_load_stream(stream, path, verbose);
    if (stream != stdin) {
        fclose(stream);
    }

    return status;
}

int ctl_fault_load_text(const char *text, const char *name)
{
    char *copy = strdup(text);
    FILE *stream;
    int status;
    char *p;

    if (copy == NULL) {
        return ctl_fail("out of memory");
    }

    for (p = copy; *p != '\0'; ++p) {
        *p = (*p == ';') ? '\n' : *p;
    }

    /* An empty buffer can not be opened, and has no rules */
    stream = (p == copy) ? NULL : fmemopen(copy, p - copy, "r");
    status = (p == copy) ? CTL_OK :
             (stream == NULL) ? ctl_fail("out of memory") :
             ctl_fault_load_stream(stream, name, 0);
    if (stream != NULL) {
        fclose(stream);
    }

    free(copy);
    return status;
}

unsigned ctl_fault_report_idle(void)
{
    static emu_fault_rule_t rules[EMU_FAULT_MAX_RULES];
    char line[EMU_FAULT_LINE_MAX];
    unsigned num      = emu_fault_list(rules, EMU_FAULT_MAX_RULES);
    unsigned num_idle = 0;
    unsigned i;

    for (i = 0; i < num; ++i) {
        if (rules[i].fired == 0) {
            ++num_idle;
            ctl_fail("rule %" PRIu32 " never fired (%" PRIu64 " matches): %s",
                     rules[i].id, rules[i].matched,
                     emu_fault_rule_format(&rules[i], line, sizeof(line)));
        }
    }

    return num_idle;
}

static int ctl_fault_add(int argc, char **argv, const ctl_fault_args_t *args)
{
    char line[EMU_FAULT_LINE_MAX * 2] = "";
    char err[CTL_FAULT_ERR_MAX];
    emu_fault_rule_t rule;
    size_t len = 0;
    int i;

    if (args->file != NULL) {
        return (argc == 0) ? ctl_fault_load(args->file, 1) :
               ctl_usage_fail(&ctl_verb_fault, "give a rule or --file, not"
                              " both");
    }

    for (i = 0; (i < argc) && (len < sizeof(line)); ++i) {
        len += snprintf(line + len, sizeof(line) - len, "%s%s", i ? " " : "",
                        argv[i]);
    }

    if (ctl_fault_parse(line, &rule, err)) {
        return ctl_usage_fail(&ctl_verb_fault, "%s", err);
    }

    return ctl_fault_add_rule(&rule, 1);
}

static int ctl_fault_print_json(const emu_fault_rule_t *rules, unsigned num)
{
    json_t *root = json_array();
    char line[EMU_FAULT_LINE_MAX];
    unsigned i;
    int ret;

    for (i = 0; i < num; ++i) {
        json_array_append_new(
                root, json_pack("{s:I, s:s, s:I, s:I}", "id",
                                (json_int_t)rules[i].id, "rule",
                                emu_fault_rule_format(&rules[i], line,
                                                      sizeof(line)),
                                "matched", (json_int_t)rules[i].matched,
                                "fired", (json_int_t)rules[i].fired));
    }

    ret = json_dumpf(root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    json_decref(root);
    printf("\n");
    return ret ? ctl_fail("cannot write JSON") : CTL_OK;
}

static int ctl_fault_list(int argc, char **argv, const ctl_fault_args_t *args)
{
    static emu_fault_rule_t rules[EMU_FAULT_MAX_RULES];
    char line[EMU_FAULT_LINE_MAX];
    unsigned num_idle = 0;
    unsigned num      = emu_fault_list(rules, EMU_FAULT_MAX_RULES);
    int status        = CTL_OK;
    unsigned i;

    if (argc > 0) {
        return ctl_usage_fail(&ctl_verb_fault, "unexpected \"%s\"", argv[0]);
    }

    if (args->json) {
        status = ctl_fault_print_json(rules, num);
    } else if (num > 0) {
        printf("%4s %9s %9s  %s\n", "ID", "MATCHED", "FIRED", "RULE");
    }

    for (i = 0; i < num; ++i) {
        num_idle += (rules[i].fired == 0);
        if (!args->json) {
            printf("%4" PRIu32 " %9" PRIu64 " %9" PRIu64 "  %s\n",
                   rules[i].id, rules[i].matched, rules[i].fired,
                   emu_fault_rule_format(&rules[i], line, sizeof(line)));
        }
    }

    if ((status == CTL_OK) && args->check && (num_idle > 0)) {
        ctl_fail("%u of %u rules never fired", num_idle, num);
        status = CTL_INCOMPLETE;
    }

    return status;
}

static int ctl_fault_clear(int argc, char **argv)
{
    uint64_t id;
    int i;

    if (argc == 0) {
        emu_fault_clear(0);
        return CTL_OK;
    }

    for (i = 0; i < argc; ++i) {
        if (ctl_parse_number(argv[i], 1, UINT32_MAX, &id)) {
            return ctl_usage_fail(&ctl_verb_fault, "\"%s\" is not the id of a"
                                  " rule", argv[i]);
        }

        if (emu_fault_clear(id) == -ENOENT) {
            return ctl_fail("there is no rule %" PRIu64 "; \"" CTL_PROGRAM
                            " fault list\" shows them", id);
        }
    }

    return CTL_OK;
}

static int ctl_fault_dispatch(int argc, char **argv,
                              const ctl_fault_args_t *args)
{
    int is_load  = !strcmp(argv[0], "load");
    int is_add   = !strcmp(argv[0], "add");
    int is_list  = !strcmp(argv[0], "list");
    int is_clear = !strcmp(argv[0], "clear");
    int status;

    if (!is_load && !is_add && !is_list && !is_clear) {
        return ctl_usage_fail(&ctl_verb_fault, "expected add, load, list or"
                              " clear, not \"%s\"", argv[0]);
    }

    if (is_load && (argc != 2)) {
        return ctl_usage_fail(&ctl_verb_fault, "load needs one file, or \"-\""
                              " for standard input");
    }

    if ((args->file && !is_add) || ((args->json || args->check) && !is_list)) {
        return ctl_usage_fail(&ctl_verb_fault, "--file goes with add, --json"
                              " and --check go with list");
    }

    status = ctl_fabric_open();
    if (status) {
        return status;
    }

    if (is_load) {
        status = ctl_fault_load(argv[1], 1);
    } else if (is_add) {
        status = ctl_fault_add(argc - 1, argv + 1, args);
    } else if (is_list) {
        status = ctl_fault_list(argc - 1, argv + 1, args);
    } else {
        status = ctl_fault_clear(argc - 1, argv + 1);
    }

    emu_fabric_close();
    return status;
}

static int ctl_fault_run(int argc, char **argv)
{
    ctl_fault_args_t args = {0};
    int status            = 0;
    int c;

    while ((c = ctl_getopt(&ctl_verb_fault, argc, argv, "", ctl_fault_options,
                           &status)) != -1) {
        switch (c) {
        case CTL_FAULT_FILE:
            args.file = optarg;
            break;
        case CTL_FAULT_JSON:
            args.json = 1;
            break;
        case CTL_FAULT_CHECK:
            args.check = 1;
            break;
        default:
            return status;
        }
    }

    if (optind == argc) {
        return ctl_usage_fail(&ctl_verb_fault, "expected add, load, list or"
                              " clear");
    }

    return ctl_fault_dispatch(argc - optind, argv + optind, &args);
}

const ctl_verb_t ctl_verb_fault = {
    .name    = "fault",
    .run     = ctl_fault_run,
    .usage   = "[-n NAME] add RULE | load FILE | list [--json] [--check]"
               " | clear [ID]...",
    .help    = "Make chosen packets of chosen operations go wrong",
    .details =
    "  RULE         POINT [SELECTOR=VALUE]... ACTION\n"
    "  POINT        post     before the first packet of a work request\n"
    "               packet   a request packet enters the wire\n"
    "               exec     the responder executed it, nothing was answered\n"
    "               ack      an acknowledgement or response enters the wire\n"
    "               rmw      an atomic has read memory and will write it\n"
    "  SELECTOR     op=KIND[,KIND]  send send_imm write write_imm read cas"
    " faa\n"
    "               type=rc,ud,dc   kind of queue pair\n"
    "               host=N peer=N link=N qp=N wqe=N  the requester's; peer is\n"
    "                               the responder's host\n"
    "               size=N, MIN-MAX, MIN-, -MAX  of the message, in bytes\n"
    "               prev=KIND[,KIND] prev_size=...  what was posted before it\n"
    "               pkt=N, first, middle, last   packet within the message\n"
    "               try=first, again             sent before, or not\n"
    "               nth=N           fire from the N-th match on (1)\n"
    "               count=N, all    how often (1)\n"
    "               prob=P seed=N   chance of each match\n"
    "               name=WORD       for delay=until:WORD of other rules\n"
    "  ACTION       drop | delay=TIME | dup[=TIME] | hang | count |\n"
    "               down[=HOST:LINK] | silent[=HOST:LINK] | up[=HOST:LINK] |\n"
    "               flap=PERIOD[,DUTY][@HOST:LINK] |\n"
    "               kill[=HOST:LINK] | kill_silent[=HOST:LINK]\n"
    "  TIME         500us, 20ms, 1s, or until:WORD (such a rule fires),\n"
    "               until:post+N, until:up=HOST:LINK (or down, silent)\n\n"
    "  load FILE    Rules, one a line; '#' starts a comment; \"-\" is standard"
    " input\n"
    "  --json       List as JSON\n"
    "  --check      Exit with status 3 if a rule never fired\n\n"
    "  mlx5emu fault add ack op=cas nth=3 drop\n"
    "  mlx5emu fault add packet op=write size=64k- pkt=7 silent\n"
};
