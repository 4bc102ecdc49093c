/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The lanes of endpoints, see cost_lane.h.
 */
#include "cost_lane.h"

#include <ucs/datastruct/string_buffer.h>
#include <ucs/vfs/base/vfs_obj.h>

#include <stdio.h>
#include <string.h>


#define COST_LANE_PATH_MAX 512


/* The tree is locked while it is listed, so collect the names first */
static void cost_lane_add_name(const char *name, void *arg)
{
    ucs_string_buffer_appendf(arg, "%s\n", name);
}

/* Files are .../vqp/<id>/lane, with "rc <device>" or "dc <device>" */
static unsigned cost_lane_count(const char *path)
{
    ucs_string_buffer_t strb = UCS_STRING_BUFFER_INITIALIZER;
    unsigned count           = 0;
    char child[COST_LANE_PATH_MAX];
    char *name;

    if (ucs_vfs_path_read_file(path, &strb) == UCS_OK) {
        count = (strstr(path, "/vqp/") != NULL) &&
                !strcmp(strrchr(path, '/'), "/lane") &&
                !strncmp(ucs_string_buffer_cstr(&strb), "rc ", 3);
    } else if (ucs_vfs_path_list_dir(path, cost_lane_add_name, &strb) == UCS_OK) {
        ucs_string_buffer_for_each_token(name, &strb, "\n") {
            snprintf(child, sizeof(child), "%s/%s", path, name);
            count += cost_lane_count(child);
        }
    }

    ucs_string_buffer_cleanup(&strb);
    return count;
}

unsigned cost_lane_count_rc(void)
{
    return cost_lane_count("/uct");
}
