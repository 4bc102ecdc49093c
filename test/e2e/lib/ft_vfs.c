/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 */
#include "ft_vfs.h"

#include <ucs/datastruct/string_buffer.h>
#include <ucs/vfs/base/vfs_obj.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *name;
    uint64_t   sum;
} ft_vfs_sum_t;

/* The tree is locked while it is listed, so collect the names first */
static void ft_vfs_add_name(const char *name, void *arg)
{
    ucs_string_buffer_appendf(arg, "%s\n", name);
}

void ft_vfs_read(const char *path, ft_vfs_func_t func, void *arg)
{
    ucs_string_buffer_t strb = UCS_STRING_BUFFER_INITIALIZER;
    char child[512];
    char *name;

    if (ucs_vfs_path_read_file(path, &strb) == UCS_OK) {
        func(path, ucs_string_buffer_cstr(&strb), arg);
    } else if (ucs_vfs_path_list_dir(path, ft_vfs_add_name, &strb) == UCS_OK) {
        ucs_string_buffer_for_each_token(name, &strb, "\n") {
            snprintf(child, sizeof(child), "%s/%s", path, name);
            ft_vfs_read(child, func, arg);
        }
    }

    ucs_string_buffer_cleanup(&strb);
}

static void ft_vfs_add(const char *path, const char *text, void *arg)
{
    ft_vfs_sum_t *sum = arg;

    if (strstr(path, "/vqp/") && !strcmp(strrchr(path, '/') + 1, sum->name)) {
        sum->sum += strtoull(text, NULL, 0);
    }
}

uint64_t ft_vfs_sum(const char *name)
{
    ft_vfs_sum_t sum = {name, 0};

    ft_vfs_read("/uct", ft_vfs_add, &sum);
    return sum.sum;
}

static void ft_vfs_add_rc(const char *path, const char *text, void *arg)
{
    if (strstr(path, "/vqp/") && strstr(path, "/lane") &&
        !strncmp(text, "rc ", 3) && !strstr(text, "none")) {
        ++*(unsigned*)arg;
    }
}

unsigned ft_vfs_count_rc(void)
{
    unsigned count = 0;

    ft_vfs_read("/uct", ft_vfs_add_rc, &count);
    return count;
}
