/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * A program over plain UCP that puts, gets and sends active messages, and detects each
 * operation that is lost, executed twice, out of order, or not completed exactly once.
 */
#include "demo_roles.h"

#include <stdlib.h>


int main(int argc, char **argv)
{
    demo_opts_t opts;
    int ret;

    ret = demo_opts_parse(argc, argv, &opts);
    if (ret != 0) {
        return (ret > 0) ? EXIT_SUCCESS : 2;
    }

    return opts.is_server ? demo_server_run(&opts) : demo_client_run(&opts);
}
