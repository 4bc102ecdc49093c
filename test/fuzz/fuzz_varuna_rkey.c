/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Any bytes as a packed remote key, and any names as UCX_RC_VARUNA_LINKS.
 */
#include "fuzz.h"
#include "config.h"
#include <uct/ib/varuna/md/varuna_nic.h>
#include <uct/ib/varuna/md/varuna_md.h>
#include <uct/ib/varuna/ucx/varuna_tl.h>
#include <uct/ib/varuna/core/varuna_wire.h>
#include <uct/ib/varuna/ucx/varuna_mlx5_dev.h>

#include <ucs/debug/log.h>

#define RKEY_NICS  10
#define RKEY_NAMES 12

/* Stand-ins for the inner component, which refuses keys that end in 0xff */
static int rkey_held;

ucs_status_t uct_rkey_unpack(uct_component_h component, const void *rkey_buffer,
                             uct_rkey_bundle_t *rkey_ob)
{
    uint64_t key;

    memcpy(&key, rkey_buffer, sizeof(key));
    if ((key & 0xff) == 0xff) {
        return UCS_ERR_INVALID_PARAM;
    }

    ++rkey_held;
    rkey_ob->rkey   = key;
    rkey_ob->handle = NULL;
    rkey_ob->type   = NULL;
    return UCS_OK;
}

ucs_status_t uct_rkey_release(uct_component_h component,
                              const uct_rkey_bundle_t *rkey_ob)
{
    --rkey_held;
    return UCS_OK;
}

uint64_t uct_varuna_mlx5_ports_keep(uct_md_h md)
{
    return 0;
}

void uct_varuna_tl_note_dead(uct_md_h md, int is_dead)
{
}

/* It has what was packed, and nobody has found out yet for which lives that is complete */
static void check_keys(const uint8_t *buffer, const uct_varuna_rkey_t *rkey)
{
    const uct_varuna_packed_rkey_t *packed = (const void*)buffer;
    const uct_varuna_packed_key_t *key     = (const void*)(packed + 1);
    unsigned nic;

    for (nic = 0; nic < UCT_VARUNA_MAX_LINKS; ++nic) {
        if (packed->nic_map & (1u << nic)) {
            FUZZ_CHECK(rkey->keys[nic] == key->key);
            FUZZ_CHECK(rkey->generations[nic] == key->generation);
            ++key;
        } else {
            FUZZ_CHECK(rkey->keys[nic] == UCT_INVALID_RKEY);
        }
    }
    FUZZ_CHECK(rkey->lacks == UINT8_MAX);
}

static void check_rkey(const uint8_t *data, size_t size)
{
    /* unpack does not know the length; use the maximum for this header */
    size_t room     = sizeof(uct_varuna_packed_rkey_t) +
                      sizeof(uct_varuna_packed_key_t) * UCT_VARUNA_MAX_LINKS;
    uint8_t *buffer = malloc(room);
    uct_varuna_rkey_t *rkey;
    fuzz_input_t in = { data, size };
    unsigned nic;

    FUZZ_CHECK(buffer != NULL);
    fuzz_take(&in, buffer, room);
    if (uct_varuna_rkey_unpack(NULL, buffer, &rkey) == UCS_OK) {
        FUZZ_CHECK(rkey->num_keys <= UCT_VARUNA_MAX_LINKS);
        check_keys(buffer, rkey);
        for (nic = 0; nic < 256; ++nic) {
            uct_varuna_rkey_inner((uct_rkey_t)rkey, nic);
        }
        uct_varuna_rkey_release(NULL, rkey);
    }
    /* A key whose value means "no key" is never released */
    FUZZ_CHECK(rkey_held >= 0);
    rkey_held = 0;
    free(buffer);
}

static void check_links(const uint8_t *data, size_t size)
{
    uct_varuna_nic_t *nics = calloc(RKEY_NICS, sizeof(*nics));
    unsigned links[UCT_VARUNA_MAX_LINKS] = { 0 };
    unsigned num_links                   = 0;
    char *text                           = malloc(size + 1);
    char *names[RKEY_NAMES];
    unsigned num_names = 0;
    char *name, *save;
    unsigned i, num_nics;

    FUZZ_CHECK((nics != NULL) && (text != NULL));
    num_nics = (size > 0) ? (1 + data[0] % RKEY_NICS) : 1;
    for (i = 0; i < num_nics; ++i) {
        snprintf(nics[i].dev_name, sizeof(nics[i].dev_name), "mlx5_%u:1", i);
    }

    memcpy(text, data, size);
    text[size] = '\0';
    for (name = strtok_r(text, ",", &save);
         (name != NULL) && (num_names < RKEY_NAMES);
         name = strtok_r(NULL, ",", &save)) {
        names[num_names++] = name;
    }

    if (uct_varuna_nics_select(nics, num_nics, names, num_names, NULL, links,
                               &num_links) == UCS_OK) {
        FUZZ_CHECK(num_links <= UCT_VARUNA_MAX_LINKS);
        for (i = 0; i < num_links; ++i) {
            FUZZ_CHECK(links[i] < num_nics);
        }
    }
    free(text);
    free(nics);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int is_init = 0;

    if (!is_init) {
        ucs_global_opts.log_component.log_level = UCS_LOG_LEVEL_FATAL;
        is_init = 1;
    }

    if ((size < 1) || (size > 1024)) {
        return 0;
    }

    if (data[0] & 0x80) {
        check_links(data + 1, size - 1);
    } else {
        check_rkey(data + 1, size - 1);
    }
    return 0;
}

void fuzz_seeds(void (*add)(const void *data, size_t size))
{
    static const char *names[] = {
        "\x81" "amlx5_0:1,mlx5_1:1", "\x81" "eall", "\x81" "bmlx5_0:1,all",
        "\x81" "cmlx5_9", "\x81" "dvaruna_mlx5_0:1,mlx5_*"
    };
    uint8_t data[1 + sizeof(uct_varuna_packed_rkey_t) +
                 (UCT_VARUNA_MAX_LINKS * sizeof(uct_varuna_packed_key_t))] = { 0 };
    unsigned i, nic;
    void *key;

    for (i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
        add(names[i], strlen(names[i]));
    }

    for (i = 0; i < 256; i = (i << 1) | 1) {
        key = uct_varuna_rkey_pack_header(i, i & 3, i, (i * 0x9e3779b97f4a7c15ul) >> 1,
                                          data + 1);
        for (nic = 0; (i >> nic) != 0; ++nic) {
            key = uct_varuna_rkey_pack_key(nic, (i & 1) << (2 * nic), key);
        }
        add(data, sizeof(data));
    }
}
