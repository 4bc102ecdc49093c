/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What the verbs of the mlx5emu command share: messages, options, numbers.
 */

#ifdef HAVE_CONFIG_H
#  include "rc_varuna_build.h"
#endif

#include "ctl.h"
#include "../core/emu_map.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CTL_MAX_OPTIONS 24

static const char *ctl_name; /* -n */


int ctl_fail(const char *fmt, ...)
{
    va_list ap;

    fflush(stdout);
    fprintf(stderr, CTL_PROGRAM ": ");
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fprintf(stderr, "\n");
    return CTL_FAILED;
}

int ctl_usage_fail(const ctl_verb_t *verb, const char *fmt, ...)
{
    va_list ap;

    fflush(stdout);
    fprintf(stderr, CTL_PROGRAM " %s: ", verb->name);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fprintf(stderr, "\nUsage: " CTL_PROGRAM " %s %s (see \"" CTL_PROGRAM
            " %s --help\")\n", verb->name, verb->usage, verb->name);
    return CTL_USAGE;
}

int ctl_help(const ctl_verb_t *verb)
{
    printf("Usage: " CTL_PROGRAM " %s %s\n\n%s.\n\n%s", verb->name,
           verb->usage, verb->help, verb->details);
    return CTL_OK;
}

int ctl_version(void)
{
    printf(CTL_PROGRAM " %s\n", PACKAGE_VERSION);
    return CTL_OK;
}

int ctl_getopt(const ctl_verb_t *verb, int argc, char **argv,
               const char *shorts, const struct option *longs, int *status_p)
{
    static const struct option common[] = {
        {"name",    required_argument, NULL, 'n'},
        {"version", no_argument,       NULL, 'V'},
        {"help",    no_argument,       NULL, 'h'}
    };
    struct option all[CTL_MAX_OPTIONS + 1];
    char all_shorts[CTL_MAX_OPTIONS * 2 + 8];
    const struct option *option;
    unsigned num = 0;
    int c;

    memset(all, 0, sizeof(all));
    for (option = longs; (option != NULL) && (option->name != NULL);
         ++option) {
        all[num++] = *option;
    }

    memcpy(&all[num], common, sizeof(common));
    /* '+' first, then ':' which makes a missing argument known */
    snprintf(all_shorts, sizeof(all_shorts), "%s:%sn:Vh",
             (shorts[0] == '+') ? "+" : "",
             (shorts[0] == '+') ? shorts + 1 : shorts);

    opterr = 0;
    c      = getopt_long(argc, argv, all_shorts, all, NULL);
    switch (c) {
    case 'n':
        if (!emu_fabric_name_valid(optarg)) {
            *status_p = ctl_usage_fail(verb, "\"%s\" cannot name a fabric: use"
                                       " at most %d letters, digits, '_', '-'"
                                       " and '.', no '.' first", optarg,
                                       EMU_NAME_MAX - 1);
            return '?';
        }
        ctl_name = optarg;
        return ctl_getopt(verb, argc, argv, shorts, longs, status_p);
    case 'V':
        *status_p = ctl_version();
        return '?';
    case 'h':
        *status_p = ctl_help(verb);
        return '?';
    case ':':
        *status_p = ctl_usage_fail(verb, "%s needs a value", argv[optind - 1]);
        return '?';
    case '?':
        *status_p = ctl_usage_fail(verb, "unknown option %s",
                                   argv[optind - 1]);
        return '?';
    default:
        return c;
    }
}

const char *ctl_fabric_name(void)
{
    const char *env = getenv(CTL_ENV_FABRIC);

    if (ctl_name != NULL) {
        return ctl_name;
    }

    return ((env != NULL) && emu_fabric_name_valid(env)) ? env :
           CTL_DEFAULT_NAME;
}

int ctl_fabric_open(void)
{
    char err[512];
    char path[128];

    snprintf(path, sizeof(path), EMU_FILE_FMT, ctl_fabric_name());
    if (access(path, F_OK) && (errno == ENOENT)) {
        return ctl_fail("there is no fabric \"%s\": \"" CTL_PROGRAM " up%s%s\""
                        " makes it", ctl_fabric_name(),
                        ctl_name ? " -n " : "", ctl_name ? ctl_name : "");
    }

    if (emu_fabric_open(ctl_fabric_name(), err, sizeof(err))) {
        return ctl_fail("%s", err);
    }

    return 0;
}

int ctl_parse_number(const char *text, uint64_t min, uint64_t max,
                     uint64_t *value_p)
{
    char *end;

    if ((text[0] < '0') || (text[0] > '9')) {
        return -1;
    }

    errno    = 0;
    *value_p = strtoull(text, &end, 10);
    return ((errno != 0) || (*end != '\0') || (*value_p < min) ||
            (*value_p > max)) ? -1 : 0;
}

int ctl_parse_host(const ctl_verb_t *verb, const char *text, unsigned *host_p)
{
    uint64_t value;

    if (ctl_parse_number(text, 0, emu_fabric->cfg.hosts - 1, &value)) {
        return ctl_usage_fail(verb, "there is no host \"%s\": fabric \"%s\" has"
                              " hosts 0 to %u", text, ctl_fabric_name(),
                              emu_fabric->cfg.hosts - 1);
    }

    *host_p = value;
    return 0;
}

int ctl_parse_port(const ctl_verb_t *verb, const char *text, unsigned *host_p,
                   unsigned *link_p)
{
    const char *colon = strchr(text, ':');
    char host_text[16];
    uint64_t host, link;

    if ((colon == NULL) || ((size_t)(colon - text) >= sizeof(host_text))) {
        return ctl_usage_fail(verb, "expected HOST:LINK, such as 0:1, not"
                              " \"%s\"", text);
    }

    memcpy(host_text, text, colon - text);
    host_text[colon - text] = '\0';
    if (ctl_parse_number(host_text, 0, emu_fabric->cfg.hosts - 1, &host) ||
        ctl_parse_number(colon + 1, 0, emu_fabric->cfg.links - 1, &link)) {
        return ctl_usage_fail(verb, "there is no link \"%s\": fabric \"%s\" has"
                              " hosts 0 to %u with links 0 to %u", text,
                              ctl_fabric_name(), emu_fabric->cfg.hosts - 1,
                              emu_fabric->cfg.links - 1);
    }

    *host_p = host;
    *link_p = link;
    return 0;
}
