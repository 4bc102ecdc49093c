/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What a device reports about its ports. UCX keeps what it read when it opened the
 * device.
 */
#ifndef UCT_VARUNA_MLX5_PORT_H_
#define UCT_VARUNA_MLX5_PORT_H_

#include <uct/api/uct.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/** @return The port's number on its device, the last one in "mlx5_0:1". */
static inline uint8_t uct_varuna_mlx5_port_num(const char *dev_name)
{
    const char *colon = strrchr(dev_name, ':');

    return (colon == NULL) ? 1 : atoi(colon + 1);
}

/**
 * @param [in] md        Memory domain of ib.
 * @param [in] dev_name  Name of one of its ports, such as "mlx5_0:1".
 *
 * @return The longest time (seconds) for which the fabric may delay a packet of this
 * port, as the subnet manager reports it; if that is unknown, a value that is safe for
 * most.
 */
double uct_varuna_mlx5_port_lifetime(uct_md_h md, const char *dev_name);

/** @return Nonzero if the device of @a dev_name can be opened, and the port answers. What is
 *  open of the device is of no account: a reset ends that. May wait for the driver. */
int uct_varuna_mlx5_port_answers(const char *dev_name);

/**
 * Let UCX list, and open, those ports of a device, too, that are not active. UCX has asked
 * when it opened the device, and leaves them out.
 *
 * @param [in] md  Memory domain of ib.
 *
 * @return Bit map of the port numbers that were not active.
 */
uint64_t uct_varuna_mlx5_ports_keep(uct_md_h md);

/** Ask again what UCX knows of a port. To be called before an interface is opened on it.
 *  @return Nonzero if the port is active. */
int uct_varuna_mlx5_port_renew(uct_md_h md, const char *dev_name);

/* What peers know a port by, and what its queue pairs were made with */
typedef struct uct_varuna_mlx5_addr {
    uint16_t                   lid;
    uint8_t                    is_ib;
    uint8_t                    mtu;
    uint8_t                    gid_index;
    uint8_t                    gid[16];
} uct_varuna_mlx5_addr_t;

typedef enum {
    UCT_VARUNA_ADDR_SAME,      /* Nothing has changed */
    UCT_VARUNA_ADDR_MOVED,     /* The port has another one, which can be used */
    UCT_VARUNA_ADDR_GONE,      /* On Ethernet: the port does not have it any more, at
                                  present or for good */
    UCT_VARUNA_ADDR_UNKNOWN    /* The port is not active, or does not answer */
} uct_varuna_mlx5_addr_state_t;

/** @param [out] addr  What an inner interface uses. */
void uct_varuna_mlx5_addr_get(uct_iface_h inner, uct_varuna_mlx5_addr_t *addr);

/** Compare @a addr with what the port of an inner interface has now. Any thread. */
uct_varuna_mlx5_addr_state_t
uct_varuna_mlx5_addr_check(uct_iface_h inner, const uct_varuna_mlx5_addr_t *addr);

/** InfiniBand: let an inner interface use and report the LID that its port has now. Its
 *  queue pairs don't depend on it. */
void uct_varuna_mlx5_addr_refresh(uct_iface_h inner);

/**
 * @param [in]  inner    An inner interface.
 * @param [out] index_p  The entry of its port's table of GIDs that UCX would use for a new
 *                       interface: the one that GID_INDEX names, or the first one.
 *
 * @return Nonzero if there is nothing in it, so that no interface can be opened: UCX would
 *         log an error. Any thread.
 */
int uct_varuna_mlx5_gid_is_missing(uct_iface_h inner, unsigned *index_p);

/** Let queue pairs that will be connected on @a inner use the GID and the MTU of @a other,
 *  which was opened later. */
void uct_varuna_mlx5_addr_take(uct_iface_h inner, uct_iface_h other);

#endif
