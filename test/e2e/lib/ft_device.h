/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Memory that is registered as that of a device, by a dmabuf, for which a memory file stands.
 * Programs of the tests use it as any other. UCX 1.14 and later.
 */
#ifndef FT_DEVICE_H_
#define FT_DEVICE_H_

/* In the environment: "server" for the memory of servers, "all" for that of clients as well */
#define FT_DEVICE_ENV "RC_VARUNA_TEST_DEVICE"

/** Have ft_uct_reg() register memory of a device, if the environment says so. What is not the
 *  mapping of a file on a tmpfs becomes one then, with its contents: it must be whole pages. */
void ft_device_use(int is_server);

#endif
