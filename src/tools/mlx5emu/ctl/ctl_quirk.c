/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Verb "quirk": switch quirks on and off, and list them. The table of quirks and
 * their text are in rules/emu_quirk_rule.c.
 */

#include "ctl.h"
#include "../core/emu_map.h"
#include "../core/emu_quirk.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>
#include <unistd.h>

#define CTL_QUIRK_ERR_MAX 1024

enum {
    CTL_QUIRK_JSON = 256,
    CTL_QUIRK_CHECK
};

static const struct option ctl_quirk_options[] = {
    {"json",  no_argument, NULL, CTL_QUIRK_JSON},
    {"check", no_argument, NULL, CTL_QUIRK_CHECK},
    {NULL,    0,           NULL, 0}
};

typedef struct ctl_quirk_args {
    int json;
    int check;
} ctl_quirk_args_t;


/* "1:2=psn-lost", with its values */
static void ctl_quirk_name(const emu_quirk_rule_t *rule, char *buf, size_t max)
{
    size_t length = 0;

    if (rule->host != EMU_QUIRK_ANY) {
        length = snprintf(buf, max, (rule->link != EMU_QUIRK_ANY) ? "%u:%u=" :
                          "%u=", rule->host, rule->link);
    }

    emu_quirk_format(rule->quirk, rule->values, buf + length, max - length);
}

/* All of them must be possible before one is carried out */
static int ctl_quirk_check_places(const ctl_verb_t *verb,
                                  const emu_quirk_rule_t *rules, unsigned num)
{
    char name[EMU_QUIRK_TEXT_MAX + 16];
    unsigned i;

    for (i = 0; i < num; ++i) {
        if (((rules[i].host == EMU_QUIRK_ANY) ||
             (rules[i].host < emu_fabric->cfg.hosts)) &&
            ((rules[i].link == EMU_QUIRK_ANY) ||
             (rules[i].link < emu_fabric->cfg.links))) {
            continue;
        }

        ctl_quirk_name(&rules[i], name, sizeof(name));
        return ctl_usage_fail(verb, "%s: there is no such place: fabric \"%s\""
                              " has hosts 0 to %u with links 0 to %u", name,
                              ctl_fabric_name(), emu_fabric->cfg.hosts - 1,
                              emu_fabric->cfg.links - 1);
    }

    return 0;
}

/* Some can be chosen by "up" alone */
static int ctl_quirk_check_fixed(const ctl_verb_t *verb,
                                 const emu_quirk_rule_t *rules, unsigned num)
{
    unsigned i;

    for (i = 0; i < num; ++i) {
        if ((verb == &ctl_verb_quirk) &&
            emu_quirk_infos[rules[i].quirk].is_fixed) {
            return ctl_usage_fail(verb, "%s cannot change while the fabric is"
                                  " there: choose it by \"" CTL_PROGRAM
                                  " up --quirk\"",
                                  emu_quirk_infos[rules[i].quirk].name);
        }
    }

    return 0;
}

static int ctl_quirk_parse(const ctl_verb_t *verb, const char *text,
                           emu_quirk_rule_t *rules, unsigned *num_p)
{
    char err[CTL_QUIRK_ERR_MAX];
    int status;

    if (emu_quirk_parse(text, rules, num_p, err, sizeof(err))) {
        return ctl_usage_fail(verb, "%s", err);
    }

    status = ctl_quirk_check_fixed(verb, rules, *num_p);
    return status ? status : ctl_quirk_check_places(verb, rules, *num_p);
}

int ctl_quirk_add(const ctl_verb_t *verb, const char *text)
{
    emu_quirk_rule_t rules[EMU_QUIRK_MAX_RULES];
    unsigned num, i;
    int status;

    status = ctl_quirk_parse(verb, text, rules, &num);
    for (i = 0; (status == 0) && (i < num); ++i) {
        (void)emu_quirk_add(&rules[i]);
    }

    return status;
}

int ctl_quirk_add_list(const ctl_verb_t *verb, const char *list,
                       const char *name)
{
    char text[CTL_QUIRK_ERR_MAX];
    int status = 0;
    size_t length;

    for (; (*list != 0) && (status == 0);
         list += length + (list[length] != 0)) {
        length = strcspn(list, ";");
        if (length >= sizeof(text)) {
            return ctl_usage_fail(verb, "%s is too long", name);
        }

        memcpy(text, list, length);
        text[length] = '\0';
        if (length > 0) {
            status = ctl_quirk_add(verb, text);
        }
    }

    return status;
}

static int ctl_quirk_remove(const char *text)
{
    emu_quirk_rule_t rules[EMU_QUIRK_MAX_RULES];
    char name[EMU_QUIRK_TEXT_MAX + 16];
    unsigned num, i;
    int status;

    status = ctl_quirk_parse(&ctl_verb_quirk, text, rules, &num);
    for (i = 0; (status == 0) && (i < num); ++i) {
        ctl_quirk_name(&rules[i], name, sizeof(name));
        if (rules[i].has_values) {
            status = ctl_usage_fail(&ctl_verb_quirk, "%s: remove takes no"
                                    " values", name);
        } else if (emu_quirk_remove(&rules[i]) == -ENOENT) {
            status = ctl_fail("%s is not on; \"" CTL_PROGRAM " quirk list\""
                              " shows which are", name);
        }
    }

    return status;
}

/* What to print of a quirk at a port. @return whether it is on or has acted */
static int ctl_quirk_state(uint32_t port, emu_quirk_t quirk, int *is_on_p,
                           uint64_t *count_p, uint64_t *values)
{
    unsigned i;

    *is_on_p = emu_quirk_on(port, quirk);
    *count_p = emu_quirk_count(port, quirk);
    for (i = 0; i < EMU_QUIRK_MAX_VALUES; ++i) {
        values[i] = emu_quirk_value(port, quirk, i);
    }

    return *is_on_p || (*count_p > 0);
}

static void ctl_quirk_print_state(emu_quirk_t quirk, const char *indent)
{
    uint32_t links = emu_fabric->cfg.links;
    uint64_t values[EMU_QUIRK_MAX_VALUES];
    char name[EMU_QUIRK_TEXT_MAX];
    uint32_t port;
    uint64_t count;
    int is_on;

    for (port = 0; port < emu_fabric->cfg.hosts * links; ++port) {
        if (ctl_quirk_state(port, quirk, &is_on, &count, values)) {
            printf("%squirk %u:%u=%s  acted %" PRIu64 "%s\n", indent,
                   port / links, port % links,
                   emu_quirk_format(quirk, values, name, sizeof(name)), count,
                   is_on ? "" : "  (off now)");
        }
    }
}

void ctl_quirk_print_status(void)
{
    unsigned quirk;

    for (quirk = 0; quirk < EMU_QUIRK_LAST; ++quirk) {
        ctl_quirk_print_state(quirk, "");
    }
}

static json_t *ctl_quirk_json_values(emu_quirk_t quirk, const uint64_t *values)
{
    json_t *root = json_object();
    unsigned i;

    for (i = 0; (i < EMU_QUIRK_MAX_VALUES) &&
                (emu_quirk_infos[quirk].values[i].name != NULL); ++i) {
        json_object_set_new(root, emu_quirk_infos[quirk].values[i].name,
                            json_integer(values[i]));
    }

    return root;
}

static void ctl_quirk_json_state(json_t *root, emu_quirk_t quirk)
{
    uint32_t links = emu_fabric->cfg.links;
    uint64_t values[EMU_QUIRK_MAX_VALUES];
    uint32_t port;
    uint64_t count;
    int is_on;

    for (port = 0; port < emu_fabric->cfg.hosts * links; ++port) {
        if (ctl_quirk_state(port, quirk, &is_on, &count, values)) {
            json_array_append_new(root,
                    json_pack("{s:s, s:i, s:i, s:b, s:I, s:o}", "name",
                              emu_quirk_infos[quirk].name, "host",
                              (int)(port / links), "link", (int)(port % links),
                              "on", is_on, "acted", (json_int_t)count, "values",
                              ctl_quirk_json_values(quirk, values)));
        }
    }
}

json_t *ctl_quirk_json_status(void)
{
    json_t *root = json_array();
    unsigned quirk;

    for (quirk = 0; quirk < EMU_QUIRK_LAST; ++quirk) {
        ctl_quirk_json_state(root, quirk);
    }

    return root;
}

static void ctl_quirk_print(emu_quirk_t quirk)
{
    const emu_quirk_info_t *info = &emu_quirk_infos[quirk];
    char values[EMU_QUIRK_TEXT_MAX];

    emu_quirk_format_usage(quirk, values, sizeof(values));
    printf("%s%s%s\n  %s\n  for a %s%s%s\n  real: %s\n  source: %s\n",
           info->name, (values[0] != '\0') ? "  " : "", values, info->what,
           emu_quirk_scope_names[info->scope],
           info->is_random ? ", random" : "",
           info->is_fixed ? ", by \"up\" only" : "", info->real, info->source);
    if (emu_fabric != NULL) {
        ctl_quirk_print_state(quirk, "  ");
    }
}

static int ctl_quirk_print_json(void)
{
    json_t *root = json_array();
    const emu_quirk_info_t *info;
    unsigned quirk;
    json_t *where;
    int ret;

    for (quirk = 0; quirk < EMU_QUIRK_LAST; ++quirk) {
        info  = &emu_quirk_infos[quirk];
        where = json_array();
        if (emu_fabric != NULL) {
            ctl_quirk_json_state(where, quirk);
        }

        json_array_append_new(root,
                json_pack("{s:s, s:s, s:b, s:b, s:s, s:s, s:s, s:o}", "name",
                          info->name, "scope",
                          emu_quirk_scope_names[info->scope], "random",
                          info->is_random, "fixed", info->is_fixed, "what", info->what, "real",
                          info->real, "source", info->source, "where", where));
    }

    ret = json_dumpf(root, stdout, JSON_INDENT(2));
    json_decref(root);
    printf("\n");
    return ret ? ctl_fail("cannot write JSON") : CTL_OK;
}

/* A test whose quirk has never acted has tested nothing */
static int ctl_quirk_report_idle(void)
{
    unsigned num_on = 0, num_idle = 0;
    uint64_t count;
    unsigned quirk;
    uint32_t port;
    int is_on;

    for (quirk = 0; quirk < EMU_QUIRK_LAST; ++quirk) {
        is_on = 0;
        count = 0;
        for (port = 0; port < emu_fabric->cfg.hosts * emu_fabric->cfg.links;
             ++port) {
            is_on |= emu_quirk_on(port, quirk);
            count += emu_quirk_count(port, quirk);
        }

        num_on += is_on;
        if (is_on && (count == 0)) {
            ctl_fail("quirk %s never acted", emu_quirk_infos[quirk].name);
            ++num_idle;
        }
    }

    if (num_on == 0) {
        return ctl_fail("no quirk is on");
    }

    return (num_idle == 0) ? CTL_OK : CTL_INCOMPLETE;
}

static int ctl_quirk_list(const ctl_quirk_args_t *args)
{
    int status = CTL_OK;
    unsigned quirk;

    if (args->json) {
        status = ctl_quirk_print_json();
    } else {
        for (quirk = 0; quirk < EMU_QUIRK_LAST; ++quirk) {
            ctl_quirk_print(quirk);
        }
    }

    return ((status == CTL_OK) && args->check) ? ctl_quirk_report_idle() :
                                                 status;
}

/* The descriptions can be read without a fabric */
static int ctl_quirk_open(int is_list, int check)
{
    char path[128];

    snprintf(path, sizeof(path), EMU_FILE_FMT, ctl_fabric_name());
    if (is_list && !check && access(path, F_OK) &&
        !strcmp(ctl_fabric_name(), CTL_DEFAULT_NAME)) {
        return 0;
    }

    return ctl_fabric_open();
}

static int ctl_quirk_dispatch(int argc, char **argv,
                              const ctl_quirk_args_t *args)
{
    int is_add    = !strcmp(argv[0], "add");
    int is_remove = !strcmp(argv[0], "remove");
    int is_list   = !strcmp(argv[0], "list");
    int status, i;

    if (!is_add && !is_remove && !is_list) {
        return ctl_usage_fail(&ctl_verb_quirk, "expected add, remove or list,"
                              " not \"%s\"", argv[0]);
    }

    if (is_list ? (argc > 1) : (argc == 1)) {
        return ctl_usage_fail(&ctl_verb_quirk, is_list ? "list takes no"
                              " arguments" : "%s needs quirks, such as"
                              " psn-lost or 0:1=psn-lost", argv[0]);
    }

    if ((args->json || args->check) && !is_list) {
        return ctl_usage_fail(&ctl_verb_quirk, "--json and --check go with"
                              " list");
    }

    status = ctl_quirk_open(is_list, args->check);
    for (i = 1; (status == 0) && (i < argc); ++i) {
        status = is_add ? ctl_quirk_add(&ctl_verb_quirk, argv[i]) :
                          ctl_quirk_remove(argv[i]);
    }

    if (is_list && (status == 0)) {
        status = ctl_quirk_list(args);
    }

    emu_fabric_close();
    return status;
}

static int ctl_quirk_run(int argc, char **argv)
{
    ctl_quirk_args_t args = {0};
    int status            = 0;
    int c;

    while ((c = ctl_getopt(&ctl_verb_quirk, argc, argv, "", ctl_quirk_options,
                           &status)) != -1) {
        switch (c) {
        case CTL_QUIRK_JSON:
            args.json = 1;
            break;
        case CTL_QUIRK_CHECK:
            args.check = 1;
            break;
        default:
            return status;
        }
    }

    if (optind == argc) {
        return ctl_usage_fail(&ctl_verb_quirk, "expected add, remove or list");
    }

    return ctl_quirk_dispatch(argc - optind, argv + optind, &args);
}

const ctl_verb_t ctl_verb_quirk = {
    .name    = "quirk",
    .run     = ctl_quirk_run,
    .usage   = "[-n NAME] add|remove QUIRK... | list [--json] [--check]",
    .help    = "Be as unkind as real NICs and fabrics",
    .details =
    "  -n NAME  Name of the fabric\n\n"
    "  QUIRK    [HOST[:LINK]=]NAME[:VALUE]...[,NAME[:VALUE]...]...: on all ports,\n"
    "           on those of a host, or on one\n\n"
    "  list     All quirks: what they do, where reality does that, the values that\n"
    "           they take with their presets, and where they are on\n"
    "  --json   List as JSON\n"
    "  --check  Exit with status 3 if a quirk that is on has never acted\n\n"
    "  mlx5emu quirk add 0:1=psn-lost\n"
};
