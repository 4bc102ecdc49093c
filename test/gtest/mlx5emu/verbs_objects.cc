/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Groups of checks of verbs_args about what objects do when they are used rightly,
 * and say when they are not.
 */

#include "verbs_args.h"

#include <string.h>

/* A device is the same in all lists, and stays when they are freed: libibverbs keeps
 * it as long as the kernel has it */
void check_device_list()
{
    ibv_device **list   = ibv_get_device_list(NULL);
    ibv_device **again  = ibv_get_device_list(NULL);
    ibv_device *devices[] = {list[0], list[1]};
    ibv_context *ctx;

    CHECK((again[0] == list[0]) && (again[1] == list[1]));
    CHECK(list[0] != list[1]);
    ibv_free_device_list(list);
    ibv_free_device_list(again);

    for (int i = 0; i < 2; ++i) {
        CHECK(ibv_get_device_name(devices[i])[5] == '0' + i);
        ctx = ibv_open_device(devices[i]);
        CHECK((ctx != NULL) && (ctx->device == devices[i]));
        list = ibv_get_device_list(NULL);
        CHECK(list[i] == devices[i]);
        ibv_free_device_list(list);
        CHECK(ibv_close_device(ctx) == 0);
    }

    ctx = ibv_open_device(devices[1]);
    CHECK(ctx != NULL);
    CHECK(!strcmp(ctx->device->name, "mlx5_1"));
    CHECK(ibv_close_device(ctx) == 0);
}
