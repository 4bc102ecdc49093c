/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Limits the remote ports of which strangers and guests make UCX keep something. See
 * varuna_reach.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_reach.h"
#include "varuna_ctl.h"

#include <string.h>

/* Remote ports in the life of an interface: of strangers alone, and in all */
#define UCT_VARUNA_STRANGER_PORTS    1024
#define UCT_VARUNA_GUEST_PORTS       65536


int uct_varuna_reach_allow(uct_varuna_ctl_t *ctl, unsigned link,
                                  const void *device_addr, size_t length,
                                  int is_guest)
{
    khint_t limit = is_guest ? UCT_VARUNA_GUEST_PORTS :
                    UCT_VARUNA_STRANGER_PORTS;
    uint64_t hash = link;
    uint64_t word;
    size_t size;
    int ret;

    for (; length > 0; length -= size) {
        size        = ucs_min(length, sizeof(word));
        word        = 0;
        memcpy(&word, device_addr, size);
        device_addr = UCS_PTR_BYTE_OFFSET(device_addr, size);
        hash        = uct_varuna_secret_hash(&ctl->iface->secret_key, hash) ^ word;
    }

    if (kh_get(uct_varuna_ports, &ctl->strangers.ports, hash) !=
        kh_end(&ctl->strangers.ports)) {
        return 1;
    }

    if (kh_size(&ctl->strangers.ports) >= limit) {
        return 0;
    }

    kh_put(uct_varuna_ports, &ctl->strangers.ports, hash, &ret);
    return ret != UCS_KH_PUT_FAILED;
}
