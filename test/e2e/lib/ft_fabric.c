/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Calls of the command mlx5emu.
 */
#include "ft_fabric.h"
#include "ft_child.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FT_WORDS_MAX 512


static char *ft_fabric_vrun(const ft_fabric_t *fabric, const char *verb,
                            const char *format, va_list ap)
{
    char words[FT_WORDS_MAX];
    char *argv[FT_MAX_ARGS + 1];
    char *output, *save, *word;
    unsigned argc = 0;
    int status;

    vsnprintf(words, sizeof(words), format, ap);
    argv[argc++] = (char*)fabric->emu;
    argv[argc++] = (char*)verb;
    argv[argc++] = "-n";
    argv[argc++] = (char*)fabric->name;
    for (word = strtok_r(words, " ", &save);
         (word != NULL) && (argc < FT_MAX_ARGS);
         word = strtok_r(NULL, " ", &save)) {
        argv[argc++] = word;
    }

    argv[argc] = NULL;
    output     = ft_command(argv, &status);
    if (status != 0) {
        fprintf(stderr, "mlx5emu %s", verb);
        for (argc = 4; argv[argc] != NULL; ++argc) {
            fprintf(stderr, " %s", argv[argc]);
        }
        ft_fatal(" ended with status %d", status);
    }

    return output;
}

char *ft_fabric_run(const ft_fabric_t *fabric, const char *verb,
                    const char *format, ...)
{
    char *output;
    va_list ap;

    va_start(ap, format);
    output = ft_fabric_vrun(fabric, verb, format, ap);
    va_end(ap);
    return output;
}

void ft_fabric_do(const ft_fabric_t *fabric, const char *verb,
                  const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    free(ft_fabric_vrun(fabric, verb, format, ap));
    va_end(ap);
}

void ft_fabric_up(ft_fabric_t *fabric, const char *prefix, const char *name,
                  unsigned hosts, unsigned links, const char *options)
{
    const char *quirk = getenv("RC_VARUNA_QUIRK");
    int has_quirk     = (quirk != NULL) && (quirk[0] != '\0');

    snprintf(fabric->emu, sizeof(fabric->emu), "%s/bin/mlx5emu", prefix);
    snprintf(fabric->name, sizeof(fabric->name), "%s", name);
    fabric->hosts = hosts;
    fabric->links = links;
    ft_fabric_do(fabric, "up", "--hosts %u --links %u %s %s%s", hosts, links,
                 options, has_quirk ? "--quirk " : "", has_quirk ? quirk : "");
}

void ft_fabric_down(ft_fabric_t *fabric)
{
    ft_fabric_do(fabric, "down", "--force");
}

char *ft_fabric_trace(const ft_fabric_t *fabric, uint64_t seq, const char *host)
{
    return ft_fabric_run(fabric, "trace", "--json --from %" PRIu64 " %s", seq + 1,
                         host);
}

uint64_t ft_fabric_fired(const ft_fabric_t *fabric, unsigned n)
{
    char *output = ft_fabric_run(fabric, "fault", "list --json");
    json_t *root = json_loads(output, 0, NULL);
    uint64_t fired;

    if (json_array_size(root) <= n) {
        ft_fatal("there is no rule %u: %s", n, output);
    }

    fired = json_integer_value(json_object_get(json_array_get(root, n),
                                               "fired"));
    json_decref(root);
    free(output);
    return fired;
}

uint64_t ft_fabric_quirks_acted(const ft_fabric_t *fabric)
{
    char *output   = ft_fabric_run(fabric, "quirk", "list --json");
    json_t *root   = json_loads(output, 0, NULL);
    uint64_t acted = 0;
    json_t *quirk, *place;
    size_t i, j;

    json_array_foreach(root, i, quirk) {
        json_array_foreach(json_object_get(quirk, "where"), j, place) {
            acted += json_integer_value(json_object_get(place, "acted"));
        }
    }

    json_decref(root);
    free(output);
    return acted;
}
