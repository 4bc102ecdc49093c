/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Parser of the file of links. See varuna_links_file.h. Called by varuna_md.c.
 */
#include "varuna_links_file.h"

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/compiler.h>

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define UCT_VARUNA_LINKS_FILE_MAX_WORDS  3
#define UCT_VARUNA_LINKS_FILE_MAX_LINE   256
#define UCT_VARUNA_LINKS_FILE_MAX_WEIGHT 1000
#define UCT_VARUNA_LINKS_FILE_MAX_DELAY  86400.0 /* seconds: one day */

static const char *uct_varuna_link_role_names[] = {
    [UCT_VARUNA_LINK_ROLE_PRIMARY]  = "primary",
    [UCT_VARUNA_LINK_ROLE_BACKUP]   = "backup",
    [UCT_VARUNA_LINK_ROLE_DISABLED] = "disabled",
    [UCT_VARUNA_LINK_ROLE_LAST]     = NULL
};

typedef struct uct_varuna_links_parser {
    uct_varuna_links_file_t    *file;
    unsigned                   line;
    char                       *error;
    size_t                     size;
} uct_varuna_links_parser_t;

static ucs_status_t UCS_F_PRINTF(2, 3)
uct_varuna_links_error(uct_varuna_links_parser_t *parser, const char *format,
                       ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(parser->error, parser->size, format, args);
    va_end(args);
    return UCS_ERR_INVALID_PARAM;
}

/* "yes", "no", or a time such as "5", "5s", "200ms", "1m" */
static ucs_status_t uct_varuna_links_parse_return(
        uct_varuna_links_parser_t *parser, char **words, unsigned num_words)
{
    static const struct {
        const char *suffix;
        double     factor;
    } units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"m", 60}};
    uct_varuna_links_file_t *file = parser->file;
    double value;
    char *end;
    size_t i;

    if (file->has_return) {
        return uct_varuna_links_error(parser, "a second 'return': remove one");
    }

    file->has_return   = 1;
    file->return_delay = 0;
    if ((num_words == 2) && !strcmp(words[1], "yes")) {
        return UCS_OK;
    } else if ((num_words == 2) && !strcmp(words[1], "no")) {
        file->return_delay = INFINITY;
        return UCS_OK;
    } else if ((num_words == 2) && isdigit((unsigned char)words[1][0])) {
        value = strtod(words[1], &end);
        for (i = 0; i < ucs_static_array_size(units); ++i) {
            file->return_delay = value * units[i].factor;
            if (!strcmp(end, units[i].suffix) && isfinite(value) &&
                (file->return_delay <= UCT_VARUNA_LINKS_FILE_MAX_DELAY)) {
                return UCS_OK;
            }
        }
    }

    return uct_varuna_links_error(parser, "'return' takes yes, no, or a time of a "
                                  "day at most, such as 500ms, 5s or 1m");
}

static ucs_status_t
uct_varuna_links_parse_weight(uct_varuna_links_parser_t *parser,
                              const char *word, unsigned *weight_p)
{
    static const char key[] = "weight=";
    unsigned long weight;
    char *end;

    if (!strncmp(word, key, sizeof(key) - 1) &&
        isdigit((unsigned char)word[sizeof(key) - 1])) {
        weight = strtoul(word + sizeof(key) - 1, &end, 10);
        if ((*end == '\0') && (weight <= UCT_VARUNA_LINKS_FILE_MAX_WEIGHT)) {
            *weight_p = weight;
            return UCS_OK;
        }
    }

    return uct_varuna_links_error(parser, "'%s' after the port: it can be "
                                  "weight=N, with N from 0 to %d", word,
                                  UCT_VARUNA_LINKS_FILE_MAX_WEIGHT);
}

static ucs_status_t uct_varuna_links_parse_port(
        uct_varuna_links_parser_t *parser, uct_varuna_link_role_t role,
        char **words, unsigned num_words)
{
    uct_varuna_links_file_t *file = parser->file;
    uct_varuna_links_entry_t *entry;
    unsigned i;

    if (num_words < 2) {
        return uct_varuna_links_error(parser, "'%s' needs a port, such as "
                                      "mlx5_0:1", words[0]);
    }

    if (strlen(words[1]) >= sizeof(entry->name)) {
        return uct_varuna_links_error(parser, "the name of the port is longer "
                                      "than %zu characters",
                                      sizeof(entry->name) - 1);
    }

    for (i = 0; i < file->num_entries; ++i) {
        if (!strcmp(file->entries[i].name, words[1])) {
            return uct_varuna_links_error(parser, "%s has a role already, in "
                                          "line %u: remove one of the two",
                                          words[1], file->entries[i].line);
        }
    }

    if (file->num_entries == UCT_VARUNA_LINKS_FILE_MAX) {
        return uct_varuna_links_error(parser, "more than %d ports",
                                      UCT_VARUNA_LINKS_FILE_MAX);
    }

    entry         = &file->entries[file->num_entries];
    entry->role   = role;
    entry->line   = parser->line;
    entry->weight = 1;
    strcpy(entry->name, words[1]);
    if ((num_words > 2) &&
        (uct_varuna_links_parse_weight(parser, words[2], &entry->weight) !=
         UCS_OK)) {
        return UCS_ERR_INVALID_PARAM;
    }

    ++file->num_entries;
    return UCS_OK;
}

/* @return Number of words; one more than fit, if there are more. */
static unsigned uct_varuna_links_split(char *line, char **words)
{
    unsigned num_words = 0;
    char *word, *rest;

    line[strcspn(line, "#")] = '\0';
    for (word = strtok_r(line, " \t\r", &rest); word != NULL;
         word = strtok_r(NULL, " \t\r", &rest)) {
        if (num_words == UCT_VARUNA_LINKS_FILE_MAX_WORDS) {
            return num_words + 1;
        }
        words[num_words++] = word;
    }

    return num_words;
}

static ucs_status_t
uct_varuna_links_parse_line(uct_varuna_links_parser_t *parser, char *line)
{
    char *words[UCT_VARUNA_LINKS_FILE_MAX_WORDS];
    unsigned num_words = uct_varuna_links_split(line, words);
    unsigned role;

    if (num_words == 0) {
        return UCS_OK;
    }

    if (num_words > UCT_VARUNA_LINKS_FILE_MAX_WORDS) {
        return uct_varuna_links_error(parser, "too many words: one statement per "
                                      "line, and a comment begins with '#'");
    }

    if (!strcmp(words[0], "return")) {
        return uct_varuna_links_parse_return(parser, words, num_words);
    }

    for (role = 0; role < UCT_VARUNA_LINK_ROLE_LAST; ++role) {
        if (!strcmp(words[0], uct_varuna_link_role_names[role])) {
            return uct_varuna_links_parse_port(parser, role, words, num_words);
        }
    }

    return uct_varuna_links_error(parser, "'%s' is not a statement: expected "
                                  "primary, backup, disabled or return",
                                  words[0]);
}

static int uct_varuna_links_compare(const void *a, const void *b)
{
    const uct_varuna_links_entry_t *entry_a = a;
    const uct_varuna_links_entry_t *entry_b = b;

    if (entry_a->role != entry_b->role) {
        return (entry_a->role < entry_b->role) ? -1 : 1;
    } else if (entry_a->weight != entry_b->weight) {
        return (entry_a->weight > entry_b->weight) ? -1 : 1;
    }

    return (entry_a->line < entry_b->line) ? -1 :
           (entry_a->line > entry_b->line);
}

static ucs_status_t uct_varuna_links_finish(uct_varuna_links_parser_t *parser)
{
    uct_varuna_links_file_t *file = parser->file;

    parser->line = 0;
    qsort(file->entries, file->num_entries, sizeof(*file->entries),
          uct_varuna_links_compare);
    if ((file->num_entries == 0) ||
        (file->entries[0].role == UCT_VARUNA_LINK_ROLE_DISABLED)) {
        return uct_varuna_links_error(parser, "it names no link: add lines such as"
                                      " 'primary mlx5_0:1' and 'backup all'");
    }

    return UCS_OK;
}

ucs_status_t uct_varuna_links_file_parse(const char *text, size_t length,
                                         uct_varuna_links_file_t *file,
                                         unsigned *line_p, char *error,
                                         size_t size)
{
    uct_varuna_links_parser_t parser = {file, 0, error, size};
    const char *end                  = text + length;
    ucs_status_t status              = UCS_OK;
    char line[UCT_VARUNA_LINKS_FILE_MAX_LINE];
    const char *eol;

    memset(file, 0, sizeof(*file));
    while ((text < end) && (status == UCS_OK)) {
        ++parser.line;
        eol = memchr(text, '\n', end - text);
        eol = (eol == NULL) ? end : eol;
        if ((size_t)(eol - text) >= sizeof(line)) {
            status = uct_varuna_links_error(&parser, "it is longer than %zu "
                                            "characters", sizeof(line) - 1);
        } else if (memchr(text, '\0', eol - text) != NULL) {
            status = uct_varuna_links_error(&parser, "it is not a text file");
        } else {
            memcpy(line, text, eol - text);
            line[eol - text] = '\0';
            status = uct_varuna_links_parse_line(&parser, line);
        }
        text = eol + 1;
    }

    if (status == UCS_OK) {
        status = uct_varuna_links_finish(&parser);
    }

    *line_p = parser.line;
    return status;
}

ucs_status_t uct_varuna_links_file_read(const char *path,
                                        uct_varuna_links_file_t *file_p)
{
    ucs_status_t status;
    char error[256];
    unsigned line;
    size_t length;
    FILE *stream;
    char *text;

    text = ucs_malloc(UCT_VARUNA_LINKS_FILE_MAX_SIZE + 1, "varuna_links_file");
    if (text == NULL) {
        ucs_error("failed to allocate the text of %s", path);
        return UCS_ERR_NO_MEMORY;
    }

    stream = fopen(path, "re");
    if (stream == NULL) {
        ucs_error("UCX_RC_VARUNA_LINKS: failed to open %s: %m", path);
        status = UCS_ERR_INVALID_PARAM;
        goto out_free;
    }

    length = fread(text, 1, UCT_VARUNA_LINKS_FILE_MAX_SIZE + 1, stream);
    if (ferror(stream) || (length > UCT_VARUNA_LINKS_FILE_MAX_SIZE)) {
        ucs_error("UCX_RC_VARUNA_LINKS: %s is not a file of %d bytes at most",
                  path, UCT_VARUNA_LINKS_FILE_MAX_SIZE);
        status = UCS_ERR_INVALID_PARAM;
        goto out_close;
    }

    status = uct_varuna_links_file_parse(text, length, file_p, &line, error,
                                         sizeof(error));
    if (status != UCS_OK) {
        ucs_error("%s:%u: %s", path, line, error);
    }

out_close:
    fclose(stream);
out_free:
    ucs_free(text);
    return status;
}
