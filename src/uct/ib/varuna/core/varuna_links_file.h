/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The file which UCX_RC_VARUNA_LINKS=file:PATH names. One statement a line, '#'
 * starts a comment:
 *
 *     primary  mlx5_0:1             # carries traffic while it is up
 *     backup   mlx5_1:1 weight=2    # takes over; greater weights first
 *     backup   all                  # whatever else there is
 *     disabled mlx5_3:1             # never used
 *     return   5s                   # back to the primary: yes, no, or after 5 s
 *
 * The parser is pure: it gets text, and gives statements or one error by line.
 */
#ifndef UCT_VARUNA_LINKS_FILE_H_
#define UCT_VARUNA_LINKS_FILE_H_

#include "varuna_def.h"

#define UCT_VARUNA_LINKS_FILE_PREFIX   "file:"
#define UCT_VARUNA_LINKS_FILE_MAX      64    /* Statements about ports */
#define UCT_VARUNA_LINKS_FILE_MAX_SIZE 65536 /* Bytes */
#define UCT_VARUNA_LINKS_FILE_MAX_NAME 48    /* Of a port */
#define UCT_VARUNA_LINKS_FILE_MAX_WHERE 256  /* "PATH:LINE" */

typedef enum {
    UCT_VARUNA_LINK_ROLE_PRIMARY,
    UCT_VARUNA_LINK_ROLE_BACKUP,
    UCT_VARUNA_LINK_ROLE_DISABLED,
    UCT_VARUNA_LINK_ROLE_LAST
} uct_varuna_link_role_t;

typedef struct uct_varuna_links_entry {
    uct_varuna_link_role_t     role;
    unsigned                   weight;
    unsigned                   line;
    char                       name[UCT_VARUNA_LINKS_FILE_MAX_NAME];
} uct_varuna_links_entry_t;

typedef struct uct_varuna_links_file {
    unsigned                   num_entries;
    uct_varuna_links_entry_t   entries[UCT_VARUNA_LINKS_FILE_MAX];
    uint8_t                    has_return;     /* There is a "return" */
    double                     return_delay;   /* Seconds; INFINITY: never */
} uct_varuna_links_file_t;

/**
 * Parse the text of a file. Afterwards entries are in order of preference:
 * primaries, backups, each by weight and then as they were written; disabled ones
 * last.
 *
 * @param [in]  text    Text, need not be terminated.
 * @param [in]  length  Its length.
 * @param [out] file_p  Filled if the text is right.
 * @param [out] line_p  Else filled with the line that is not (from 1; 0: the file
 *                      as a whole).
 * @param [out] error   Filled with what is wrong with it, and what to do.
 * @param [in]  size    Of error.
 *
 * @return UCS_OK or UCS_ERR_INVALID_PARAM.
 */
ucs_status_t uct_varuna_links_file_parse(const char *text, size_t length,
                                         uct_varuna_links_file_t *file_p,
                                         unsigned *line_p, char *error,
                                         size_t size);

/** Read and parse a file. Mistakes are logged as errors, with file and line. */
ucs_status_t uct_varuna_links_file_read(const char *path,
                                        uct_varuna_links_file_t *file_p);

#endif
