/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Devices: what one reports about its ports and about the order of packets, registrations
 * on it, and reading back what it has written. UCX keeps what it read when it opened the device.
 */
#ifndef UCT_VARUNA_MLX5_DEV_H_
#define UCT_VARUNA_MLX5_DEV_H_

#include <uct/ib/varuna/core/varuna_oplog.h>

#include <uct/api/uct.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucs/time/time_def.h>

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

/* --- The order of packets --- */

/* What a device reports about the order of packets, and asking it for order. See
 * core/varuna_oplog.h. */

/* A move to another service level. It may have another virtual lane, or none. */
typedef struct uct_varuna_sl_move {
    uint8_t                    is_allowed; /* The user agrees */
    uint8_t                    is_done;
    uint8_t                    from;       /* The level that UCX uses without us */
    uint8_t                    to;
} uct_varuna_sl_move_t;

/**
 * Ask for order before an inner interface is opened: a service level without adaptive
 * routing, if the user agrees and the user's choice (UCX_IB_SL) has one; and, where the device
 * can be forced to do that, queue pairs with the order of the specification on RoCE and on such
 * a level, and messages that are placed in order on others.
 *
 * @param [in]     md        Memory domain of ib.
 * @param [in]     dev_name  Name of the port.
 * @param [in]     kind      The transport, an uct_varuna_lane_kind_t.
 * @param [in,out] config    Its configuration.
 * @param [in,out] move      Whether the level may change, and whether it does.
 *
 * @return Error if UCX does not take an option, which is logged.
 */
ucs_status_t uct_varuna_mlx5_order_request(uct_md_h md, const char *dev_name,
                                           unsigned kind, uct_iface_config_t *config,
                                           uct_varuna_sl_move_t *move);

/** Let an open interface use another service level for what is connected from now on. */
void uct_varuna_mlx5_order_set_sl(uct_iface_h inner, uint8_t sl);

/**
 * What is known of the network. A port's ooo_sl_mask has the service levels on which packets
 * may overtake each other. There is none on RoCE, and without DEVX.
 *
 * @param [in]  inner   Open inner interface.
 * @param [out] sl_p    Its service level.
 * @param [out] mask_p  Service levels out of order; only if that is known.
 */
uct_varuna_order_t uct_varuna_mlx5_order(uct_iface_h inner, uint8_t *sl_p,
                                         uint16_t *mask_p);

/** What is known of the queue pair of an RC endpoint that receives. A command to the NIC. */
uct_varuna_order_t uct_varuna_mlx5_order_of_rc(uct_ep_h ep);

/** What is known of the target of a DC interface. A command to the NIC. */
uct_varuna_order_t uct_varuna_mlx5_order_of_dct(uct_iface_h inner);

/* --- Registrations --- */

/* Registrations with rights and keys of their own. UCX's memory domains give every
 * region the right of remote writes, whatever its flags say, and share registrations
 * (and so keys) of memory on the same pages. Used by varuna_own.c. */

/** What a peer may do with a key. */
enum {
    UCT_VARUNA_MR_READ   = UCS_BIT(0),
    UCT_VARUNA_MR_WRITE  = UCS_BIT(1),
    UCT_VARUNA_MR_ATOMIC = UCS_BIT(2)  /* Compare and swap, fetch and add */
};

/**
 * Register memory with the protection domain of an inner memory domain, without
 * relaxed ordering. Any thread.
 *
 * @param [in]  md       Inner memory domain.
 * @param [in]  address  Memory; any address, any length.
 * @param [in]  length   Bytes.
 * @param [in]  iova     Address by which peers name it. It differs from @a address by whole
 *                       pages.
 * @param [in]  rights   UCT_VARUNA_MR_xx.
 * @param [out] mr_p     To be released by uct_varuna_mlx5_mr_dereg().
 * @param [out] key_p    Packed key, as uct_md_mkey_pack() of @a md would make it:
 *                       for uct_rkey_unpack(). It may be the key of a registration that was
 *                       released just before: the kernel keeps them in a cache.
 *
 * @return UCS_ERR_IO_ERROR if the device refuses. Not logged as an error: the
 *         caller knows whether the device may be dead.
 */
ucs_status_t uct_varuna_mlx5_mr_reg(uct_md_h md, void *address, size_t length,
                                    uint64_t iova, unsigned rights, void **mr_p,
                                    uint64_t *key_p);

/** Deregister. When it returns, the key gives no access to the memory any more. */
void uct_varuna_mlx5_mr_dereg(void *mr);

/* --- Reading back --- */

/* A queue pair that is connected to itself: its NIC reads memory of this host. Requests to the
 * own port turn back inside the NIC, whether its link works or not. On PCIe a read does not
 * pass the NIC's earlier writes to the same device, so what the NIC has accepted is there when
 * it returns. */

typedef struct uct_varuna_readback uct_varuna_readback_t;

/**
 * Make one. Gives commands to the NIC.
 *
 * @param [in]  inner       Inner interface of ib: its port and address are used.
 * @param [out] readback_p  To be released by uct_varuna_readback_close().
 */
ucs_status_t uct_varuna_readback_open(uct_iface_h inner, uct_varuna_readback_t **readback_p);

void uct_varuna_readback_close(uct_varuna_readback_t *readback);

/**
 * Read one byte, and wait for it. After an error no other read succeeds.
 *
 * @param [in] address  Of memory of this process.
 * @param [in] rkey     Key of ib, for the same NIC.
 * @param [in] until    When to give up.
 */
ucs_status_t uct_varuna_readback_run(uct_varuna_readback_t *readback, uint64_t address,
                                     uct_rkey_t rkey, ucs_time_t until);

#endif
