/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Commands from standard input, for programs that make progress between them.
 */
#ifndef FT_LINE_H_
#define FT_LINE_H_

#include <stddef.h>

#define FT_LINE_MAX 4096

/* Initialize it with zeros */
typedef struct {
    char   text[FT_LINE_MAX];
    size_t length;           /* What was read */
    size_t used;             /* Length of the last line */
    int    eof;
} ft_line_t;

/** Read a line. (poll() does not see what a FILE has buffered.)
 *  @return The line without its end, valid until the next call; or NULL if none comes
 *  within @a timeout_ms, or if the input has ended (input->eof). */
char *ft_line_read(ft_line_t *input, int timeout_ms);

#endif
