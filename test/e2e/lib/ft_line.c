/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Commands from standard input. See ft_line.h.
 */
#include "ft_line.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

char *ft_line_read(ft_line_t *input, int timeout_ms)
{
    struct pollfd pfd = {.fd = STDIN_FILENO, .events = POLLIN};
    char *end;
    ssize_t ret;

    input->length -= input->used;
    memmove(input->text, input->text + input->used, input->length);
    input->used = 0;
    end         = memchr(input->text, '\n', input->length);
    if ((end == NULL) && (poll(&pfd, 1, timeout_ms) > 0)) {
        ret = read(STDIN_FILENO, input->text + input->length,
                   sizeof(input->text) - input->length);
        if (ret <= 0) {
            input->eof = 1;
            return NULL;
        }

        input->length += ret;
        end            = memchr(input->text, '\n', input->length);
    }

    if (end == NULL) {
        return NULL;
    }

    *end        = '\0';
    input->used = end + 1 - input->text;
    return input->text;
}
