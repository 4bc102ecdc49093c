/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Memory of our own that peers access. See varuna_own.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_own.h"
#include "varuna_md_dead.h"

#include <ucs/debug/log.h>
#include <ucs/sys/math.h>
#include <string.h>


/* Register on all NICs. @return those which have it. */
static ucs_status_t uct_varuna_own_reg_all(uct_varuna_md_t *md, void *address,
                                           size_t length, unsigned rights,
                                           uct_varuna_own_t *own,
                                           uint64_t *keys, uint8_t *nic_map_p)
{
    uint8_t nic_map = 0;
    ucs_status_t status;
    unsigned nic, owner;

    for (nic = 0; nic < md->num_nics; ++nic) {
        owner = uct_varuna_md_inner_owner(md, nic);
        if (owner > nic) {
            continue; /* It is no link */
        }

        if (owner < nic) {
            /* Another port of that device */
            keys[nic] = keys[owner];
            nic_map  |= (nic_map & UCS_BIT(owner)) ? UCS_BIT(nic) : 0;
            continue;
        }

        if (md->nics[nic].is_dead) {
            continue;
        }

        status = uct_varuna_mlx5_mr_reg(md->nics[nic].md, address, length,
                                        rights, &own->mrs[nic], &keys[nic]);
        if (status == UCS_OK) {
            nic_map |= UCS_BIT(nic);
        } else if (!uct_varuna_md_is_nic_dead(md, nic)) {
            ucs_error("failed to register %zu bytes for rc_varuna on %s (ulimit -l "
                      "may be too small)", length, md->nics[nic].md_name);
            return status;
        }
    }

    *nic_map_p = nic_map;
    return UCS_OK;
}

ucs_status_t uct_varuna_own_reg(uct_varuna_md_t *md, void *address,
                                size_t length, unsigned rights,
                                uct_varuna_own_t *own)
{
    uint64_t keys[UCT_VARUNA_MAX_LINKS];
    ucs_status_t status;
    uint8_t nic_map;
    unsigned nic;
    char *key;

    memset(own, 0, sizeof(*own));
    status = uct_varuna_own_reg_all(md, address, length, rights, own, keys,
                                    &nic_map);
    if ((status == UCS_OK) && (nic_map == 0)) {
        ucs_error("failed to register %zu bytes for rc_varuna: all NICs are dead",
                  length);
        status = UCS_ERR_IO_ERROR;
    }

    if (status != UCS_OK) {
        uct_varuna_own_dereg(own);
        return status;
    }

    key = uct_varuna_rkey_pack_header(nic_map, md->atomic_mode, 0, own->key);
    ucs_for_each_bit(nic, nic_map) {
        memcpy(key, &keys[nic], sizeof(keys[nic]));
        key += sizeof(keys[nic]);
    }

    own->key_len = key - own->key;
    return UCS_OK;
}

void uct_varuna_own_dereg(uct_varuna_own_t *own)
{
    unsigned nic;

    for (nic = 0; nic < UCT_VARUNA_MAX_LINKS; ++nic) {
        if (own->mrs[nic] != NULL) {
            uct_varuna_mlx5_mr_dereg(own->mrs[nic]);
        }
    }

    memset(own, 0, sizeof(*own));
}
