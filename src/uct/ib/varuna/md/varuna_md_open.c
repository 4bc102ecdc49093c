/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The memory domain: its options, which NICs it uses, and its table of operations; and the
 * component. Called by UCT; iface/varuna_module.c registers the component.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_md.h"
#include "varuna_health.h"
#include <uct/ib/varuna/core/varuna_amo_mode.h>
#include <uct/ib/varuna/ucx/varuna_compat.h>
#include <uct/ib/varuna/ucx/varuna_fork.h>
#include <uct/ib/varuna/ucx/varuna_random.h>
#include <uct/ib/varuna/core/varuna_link.h>
#include <uct/ib/varuna/ucx/varuna_mlx5.h>
#include <uct/ib/varuna/ucx/varuna_mlx5_dev.h>

#include <ucs/arch/atomic.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/math.h>
#include <ucs/sys/string.h>
#include <ucs/time/time.h>
#include <ucs/type/param.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The primary and one to fall back to */
#define UCT_VARUNA_AUTO_VQP_LINKS    2

ucs_config_field_t uct_varuna_md_config_table[] = {
    {"", "", NULL, ucs_offsetof(uct_varuna_md_config_t, super),
     UCS_CONFIG_TYPE_TABLE(uct_md_config_table)},

    {"LINKS", "all",
     "Network devices to use as links, in order of priority: the first one is\n"
     "the primary, the others take over when it fails. The k-th link of a host\n"
     "must reach the k-th link of every other host. Only ports on which both\n"
     "rc_mlx5 and dc_mlx5 work, or rc_verbs, can be links, at most 8. One that is\n"
     "down becomes a link when it comes up; one that does not exist is a warning.\n"
     " - <device>:<port> - This port (e.g. mlx5_0:1).\n"
     " - <device>        - All ports of this device (e.g. mlx5_0).\n"
     " - all             - All ports that are not named before it, in order of\n"
     "                     their names.\n"
     " - file:<path>     - The links that this file lists; see TUNING.md.",
     ucs_offsetof(uct_varuna_md_config_t, links), UCS_CONFIG_TYPE_STRING_ARRAY},

    {"LANES", "auto",
     "Which transports of a network device are used. A host reaches only peers whose\n"
     "devices use the same ones.\n"
     " - auto  - On each device the best that it supports: mlx5 before verbs.\n"
     " - mlx5  - rc_mlx5, with dc_mlx5 to continue at once after a failure. Other\n"
     "           devices are not used.\n"
     " - verbs - rc_verbs. After a failure another connection is made first.",
     ucs_offsetof(uct_varuna_md_config_t, lanes),
     UCS_CONFIG_TYPE_ENUM(uct_varuna_lanes_names)},

    {"ATOMIC_MODE", "proxy",
     "How atomics on the memory of this process and of its peers are executed.\n"
     "All processes that share memory must use the same mode.\n"
     " - native   - By the NIC, as rc_mlx5 does. A result that a failure loses\n"
     "              is not recovered, and atomics of two NICs are not atomic\n"
     "              with each other.\n"
     " - proxy    - By the CPU of the target's process, on request: exactly\n"
     "              once, and atomic with the target's own instructions. Memory\n"
     "              must be host memory.\n"
     " - reread   - As native; a compare and swap whose result was lost is\n"
     "              judged by the value of its target. For unique values only.\n"
     " - extended - In two stages with extended status: exactly once, with the\n"
     "              result.",
     ucs_offsetof(uct_varuna_md_config_t, atomic_mode),
     UCS_CONFIG_TYPE_ENUM(uct_varuna_atomic_mode_names)},

    {"VQP_LINKS", "inf",
     "Number of links that a vQP uses: its device's and the nearest others, by\n"
     "UCX's topology.\n"
     " - auto - 2 of the links that LINKS=all finds; all that are named.\n"
     " - inf  - All links, from the beginning.",
     ucs_offsetof(uct_varuna_md_config_t, vqp_links), UCS_CONFIG_TYPE_ULUNITS},

    {"DMABUF", "auto",
     "Register the memory of GPUs, by its dmabuf or by a peer-memory module, with\n"
     "UCX 1.14 or later. Otherwise UCP copies it through host memory. The CPU never\n"
     "accesses such memory: a put from it whose fate only its data can tell is\n"
     "decided by AMBIGUOUS, and atomics on it are refused in mode proxy.\n"
     " - auto - On each network device whose driver can. Not in mode extended.\n"
     " - y    - As auto; if it is not possible, a warning says why, and with mode\n"
     "          extended an error.\n"
     " - n    - Not.",
     ucs_offsetof(uct_varuna_md_config_t, dmabuf), UCS_CONFIG_TYPE_TERNARY_AUTO},

    {"UCX_CHECK", "strict",
     "What must be equal in the UCX that the plugin finds and in the one that it was\n"
     "built for, or rc_varuna is not available. It is read from the environment only,\n"
     "when the plugin is loaded.\n"
     " - strict  - The version, the build-ids of libucs, libuct and of the libraries\n"
     "             with InfiniBand, and the sizes of structures.\n"
     " - version - The version.\n"
     " - off     - Nothing.",
     ucs_offsetof(uct_varuna_md_config_t, ucx_check), UCS_CONFIG_TYPE_STRING},

    {NULL}
};


static ucs_status_t uct_varuna_md_query_common(uct_md_h tl_md,
                                               uct_varuna_md_attr_t *attr)
{
    uct_varuna_md_t *md = ucs_derived_of(tl_md, uct_varuna_md_t);

    *attr = md->attr;
    return UCS_OK;
}

UCT_VARUNA_COMPAT_MD_QUERY(uct_varuna_md_query, uct_varuna_md_query_common)

UCT_VARUNA_COMPAT_MKEY_PACK(uct_varuna_md_mkey_pack,
                            uct_varuna_md_mkey_pack_common)

static void uct_varuna_md_close(uct_md_h tl_md)
{
    uct_varuna_md_t *md = ucs_derived_of(tl_md, uct_varuna_md_t);
    unsigned nic;

    uct_varuna_returns_stop(md);
    uct_varuna_md_release_spares(md);
    uct_varuna_md_cmds_cleanup(md);
    for (nic = 0; nic < md->num_nics; ++nic) {
        md->nics[nic].is_link = 0;
    }
    uct_varuna_nics_close_unused(md->nics, md->num_nics);
    if (md->rests_at_fork) {
        uct_varuna_ucx_fork_put();
    }
    pthread_mutex_destroy(&md->lock);
    ucs_free(md);
}

static uct_md_ops_t uct_varuna_md_ops = {
    .close              = uct_varuna_md_close,
    .query              = uct_varuna_md_query,
    .mem_alloc          = (void*)ucs_empty_function_return_unsupported,
    .mem_free           = (void*)ucs_empty_function_return_unsupported,
    .mem_advise         = uct_varuna_md_mem_advise,
    .mem_reg            = uct_varuna_md_mem_reg,
    .mem_dereg          = uct_varuna_md_mem_dereg,
    .mem_query          = (void*)ucs_empty_function_return_unsupported,
    .mkey_pack          = uct_varuna_md_mkey_pack,
    .detect_memory_type = (void*)ucs_empty_function_return_unsupported,
    UCT_VARUNA_COMPAT_MD_OPS
};

void uct_varuna_md_attr_init(uct_varuna_md_attr_t *attr, uint64_t flags)
{
    memset(attr, 0, sizeof(*attr));
    attr->flags                  = UCT_MD_FLAG_REG | UCT_MD_FLAG_NEED_MEMH |
                                   UCT_MD_FLAG_NEED_RKEY | UCT_MD_FLAG_ADVISE |
                                   UCT_VARUNA_COMPAT_INVALIDATE | flags;
    attr->max_reg                = SIZE_MAX;
    attr->max_alloc              = SIZE_MAX;
    attr->reg_mem_types          = UCT_VARUNA_MEM_TYPES;
    attr->reg_nonblock_mem_types = UCT_VARUNA_MEM_TYPES;
    attr->access_mem_types       = UCT_VARUNA_MEM_TYPES;
    attr->cache_mem_types        = UCS_MASK(UCS_MEMORY_TYPE_LAST);
    attr->reg_alignment          = 1;
}

void uct_varuna_md_attr_add(uct_varuna_md_attr_t *attr, const uct_varuna_md_attr_t *inner)
{
    attr->flags                  &= inner->flags | UCT_MD_FLAG_NEED_MEMH |
                                    UCT_MD_FLAG_NEED_RKEY |
                                    UCT_VARUNA_COMPAT_REG_DMABUF; /* One NIC is enough */
    attr->max_reg                 = ucs_min(attr->max_reg, inner->max_reg);
    attr->max_alloc               = ucs_min(attr->max_alloc, inner->max_alloc);
    attr->reg_mem_types          &= inner->reg_mem_types;
    attr->reg_nonblock_mem_types &= inner->reg_nonblock_mem_types;
    attr->access_mem_types       &= inner->access_mem_types;
    attr->cache_mem_types        &= inner->cache_mem_types;
    attr->reg_alignment           = ucs_max(attr->reg_alignment, inner->reg_alignment);
    attr->required_mem_flags     |= inner->required_mem_flags;
    attr->reg_cost                = ucs_linear_func_add(attr->reg_cost, inner->reg_cost);
}

/* What NICs can do with the memory of devices, if the user wants it: one of them is enough, as
 * the others leave it to that one. */
static void uct_varuna_md_find_devices(const uct_varuna_md_t *md, int dmabuf,
                                       uint64_t *flags_p, uint64_t *mem_types_p)
{
    unsigned nic;

    *flags_p     = 0;
    *mem_types_p = 0;
    if ((dmabuf == UCS_NO) || (UCT_VARUNA_COMPAT_REG_DMABUF == 0)) {
        return;
    }

    uct_varuna_md_for_each_inner(md, nic) {
        *flags_p     |= md->nics[nic].md_attr.flags & UCT_VARUNA_COMPAT_REG_DMABUF;
        *mem_types_p |= md->nics[nic].md_attr.reg_mem_types & ~UCT_VARUNA_MEM_TYPES;
    }
}

static void uct_varuna_md_init_attr(uct_varuna_md_t *md, int dmabuf)
{
    uint64_t flags, mem_types;
    unsigned nic;

    uct_varuna_md_find_devices(md, dmabuf, &flags, &mem_types);
    uct_varuna_md_attr_init(&md->attr, flags);
    md->attr.rkey_packed_size = uct_varuna_rkey_packed_size(md->num_links);
    md->attr.local_cpus       = md->nics[md->links[0]].md_attr.local_cpus;
    uct_varuna_md_for_each_inner(md, nic) {
        uct_varuna_md_attr_add(&md->attr, &md->nics[nic].md_attr);
    }
    md->attr.reg_mem_types |= mem_types;
    if ((dmabuf == UCS_YES) && (flags == 0) && (mem_types == 0)) {
        ucs_warn("UCX_RC_VARUNA_DMABUF=y: %s: memory of GPUs is copied through host memory",
                 (UCT_VARUNA_COMPAT_REG_DMABUF == 0) ?
                 "this UCX knows no dmabufs, UCX 1.14 or later is needed" :
                 "no driver of a NIC registers dmabufs");
    }
}

/* @return Which memory of devices is to be registered, or -1 if that is a mistake. A GET of a
 * word is resolved by the CPU, which writes the result, in a mode with slots. */
static int uct_varuna_md_get_dmabuf(const uct_varuna_md_config_t *config)
{
    if ((config->dmabuf == UCS_NO) ||
        !uct_varuna_atomic_modes[config->atomic_mode].by_home) {
        return config->dmabuf;
    }

    if (config->dmabuf == UCS_YES) {
        ucs_error("UCX_RC_VARUNA_DMABUF=y cannot be combined with "
                  "UCX_RC_VARUNA_ATOMIC_MODE=extended: use proxy, native or reread");
        return -1;
    }

    ucs_diag("rc_varuna: in UCX_RC_VARUNA_ATOMIC_MODE=extended memory of GPUs is copied "
             "through host memory");
    return UCS_NO;
}

/* @return The first port of the same device */
static unsigned uct_varuna_md_first_port(const uct_varuna_md_t *md, unsigned nic)
{
    unsigned first;

    for (first = 0; (md->nics[nic].md != NULL) && (first < nic); ++first) {
        if (md->nics[first].md == md->nics[nic].md) {
            return first;
        }
    }

    return nic;
}

/*
 * Take over the NICs that are needed. They keep their canonical numbers; on a host with
 * more NICs than there are numbers, only links get one.
 */
static void uct_varuna_md_set_nics(uct_varuna_md_t *md,
                                   const uct_varuna_nic_t *nics,
                                   unsigned num_nics, const unsigned *links,
                                   unsigned num_links)
{
    unsigned i, link;

    md->num_nics = 0;
    for (i = 0; (i < num_nics) && (md->num_nics < UCT_VARUNA_MAX_LINKS); ++i) {
        if ((num_nics > UCT_VARUNA_MAX_LINKS) && !nics[i].is_link) {
            continue;
        }

        for (link = 0; link < ucs_min(num_links, UCT_VARUNA_MAX_LINKS); ++link) {
            if (links[link] == i) {
                md->links[link] = md->num_nics;
            }
        }
        md->nics[md->num_nics] = nics[i];
        md->nics[md->num_nics].owner = uct_varuna_md_first_port(md, md->num_nics);
        ++md->num_nics;
    }
    md->num_links     = num_links;
    md->num_primaries = ((md->num_primaries == 0) ||
                         (md->num_primaries > num_links)) ? num_links :
                        md->num_primaries;
}

static ucs_status_t uct_varuna_md_check_key_size(const uct_varuna_nic_t *nics,
                                                 unsigned num_nics)
{
    unsigned i;

    for (i = 0; i < num_nics; ++i) {
        if (!nics[i].is_missing &&
            (nics[i].md_attr.rkey_packed_size != UCT_VARUNA_INNER_KEY_SIZE)) {
            ucs_error("%s packs remote keys in %zu bytes, this UCX is not "
                      "supported (expected %zu)", nics[i].md_name,
                      nics[i].md_attr.rkey_packed_size,
                      UCT_VARUNA_INNER_KEY_SIZE);
            return UCS_ERR_UNSUPPORTED;
        }
    }
    return UCS_OK;
}

/* Read and parse a file. Mistakes are logged as errors, with file and line. */
static ucs_status_t
uct_varuna_md_read_links_file(const char *path, uct_varuna_links_file_t *file_p)
{
    ucs_status_t status;
    char error[256];
    unsigned line;
    size_t length;
    FILE *stream;
    char *text;

    text = ucs_malloc(UCT_VARUNA_LINKS_FILE_MAX_SIZE + 1, "varuna_links_file");
    if (text == NULL) {
        ucs_error("failed to allocate the text of %s", path);
        return UCS_ERR_NO_MEMORY;
    }

    stream = fopen(path, "re");
    if (stream == NULL) {
        ucs_error("UCX_RC_VARUNA_LINKS: failed to open %s: %m", path);
        status = UCS_ERR_INVALID_PARAM;
        goto out_free;
    }

    length = fread(text, 1, UCT_VARUNA_LINKS_FILE_MAX_SIZE + 1, stream);
    if (ferror(stream) || (length > UCT_VARUNA_LINKS_FILE_MAX_SIZE)) {
        ucs_error("UCX_RC_VARUNA_LINKS: %s is not a file of %d bytes at most",
                  path, UCT_VARUNA_LINKS_FILE_MAX_SIZE);
        status = UCS_ERR_INVALID_PARAM;
        goto out_close;
    }

    status = uct_varuna_links_file_parse(text, length, file_p, &line, error,
                                         sizeof(error));
    if (status != UCS_OK) {
        ucs_error("%s:%u: %s", path, line, error);
    }

out_close:
    fclose(stream);
out_free:
    ucs_free(text);
    return status;
}

/* Choose links as the file says; primaries come first. */
static ucs_status_t
uct_varuna_md_select_file(uct_varuna_md_t *md, uct_varuna_nic_t **nics_p,
                          unsigned *num_nics_p, const char *path, unsigned *links,
                          unsigned *num_links_p)
{
    char where[UCT_VARUNA_LINKS_FILE_MAX][UCT_VARUNA_LINKS_FILE_MAX_WHERE];
    char *names[UCT_VARUNA_LINKS_FILE_MAX], *wheres[UCT_VARUNA_LINKS_FILE_MAX];
    unsigned num_names     = 0;
    unsigned num_primaries = 0;
    uct_varuna_links_file_t file;
    uct_varuna_links_entry_t *entry;
    ucs_status_t status;
    unsigned i;

    status = uct_varuna_md_read_links_file(path, &file);
    if (status != UCS_OK) {
        return status;
    }

    for (i = 0; i < file.num_entries; ++i) {
        entry = &file.entries[i];
        if (entry->role == UCT_VARUNA_LINK_ROLE_DISABLED) {
            uct_varuna_nics_disable(*nics_p, *num_nics_p, entry->name);
            continue;
        }

        status = uct_varuna_nics_add_missing(nics_p, num_nics_p, entry->name);
        if (status != UCS_OK) {
            return status;
        }

        ucs_snprintf_safe(where[i], sizeof(where[i]), "%s:%u", path,
                          entry->line);
        md->links_are_named = md->links_are_named && strcmp(entry->name, "all");
        names[num_names]    = entry->name;
        wheres[num_names++] = where[i];
        num_primaries      += (entry->role == UCT_VARUNA_LINK_ROLE_PRIMARY);
    }

    md->num_primaries        = uct_varuna_nics_count(*nics_p, *num_nics_p, names,
                                                     num_primaries);
    md->return_policy.is_set = file.has_return;
    md->return_policy.delay  = isinf(file.return_delay) ? UCS_TIME_INFINITY :
                               ucs_time_from_sec(file.return_delay);
    return uct_varuna_nics_select(*nics_p, *num_nics_p, names, num_names, wheres,
                                  links, num_links_p);
}

/* Links that a vQP does not use at first cost it nothing; named ones are all wanted. */
static ucs_status_t
uct_varuna_md_set_vqp_links(uct_varuna_md_t *md, const uct_varuna_md_config_t *config)
{
    int is_all = 0;
    unsigned i;

    for (i = 0; i < config->links.count; ++i) {
        is_all |= !strcmp(config->links.names[i], UCT_VARUNA_LINKS_ALL);
    }

    if (config->vqp_links == 0) {
        ucs_error("UCX_RC_VARUNA_VQP_LINKS=0: a vQP needs a link; expected a number "
                  "from 1, auto or inf");
        return UCS_ERR_INVALID_PARAM;
    }

    if (config->vqp_links == UCS_ULUNITS_AUTO) {
        md->vqp_links = is_all ? UCT_VARUNA_AUTO_VQP_LINKS : UCT_VARUNA_MAX_LINKS;
    } else {
        md->vqp_links = ucs_min(config->vqp_links, UCT_VARUNA_MAX_LINKS);
    }
    return UCS_OK;
}

static ucs_status_t
uct_varuna_md_select(uct_varuna_md_t *md, const uct_varuna_md_config_t *config,
                     uct_varuna_nic_t **nics_p, unsigned *num_nics_p,
                     unsigned *links, unsigned *num_links_p)
{
    const size_t prefix_length = strlen(UCT_VARUNA_LINKS_FILE_PREFIX);
    ucs_status_t status;
    unsigned i;

    md->links_are_named = 1;

    for (i = 0; i < config->links.count; ++i) {
        if (strncmp(config->links.names[i], UCT_VARUNA_LINKS_FILE_PREFIX,
                    prefix_length)) {
            continue;
        }

        if (config->links.count != 1) {
            ucs_error("UCX_RC_VARUNA_LINKS: '%s' must be the only entry, and its path "
                      "may have no comma", config->links.names[i]);
            return UCS_ERR_INVALID_PARAM;
        }

        md->order_is_given = 1;
        return uct_varuna_md_select_file(md, nics_p, num_nics_p,
                                         config->links.names[i] + prefix_length,
                                         links, num_links_p);
    }

    for (i = 0; i < config->links.count; ++i) {
        md->links_are_named = md->links_are_named &&
                              strcmp(config->links.names[i], "all");
        status              = uct_varuna_nics_add_missing(nics_p, num_nics_p,
                                                          config->links.names[i]);
        if (status != UCS_OK) {
            return status;
        }
    }

    return uct_varuna_nics_select(*nics_p, *num_nics_p, config->links.names,
                                  config->links.count, NULL, links,
                                  num_links_p);
}

/* Without a port that is up there is no transport, so that UCP chooses another one. */
static int uct_varuna_md_any_is_up(const uct_varuna_nic_t *nics,
                                   const unsigned *links, unsigned num_links)
{
    unsigned i;

    for (i = 0; i < num_links; ++i) {
        if (!nics[links[i]].was_down) {
            return 1;
        }
    }

    return 0;
}

/* Open all NICs, choose links. */
static ucs_status_t
uct_varuna_md_open_nics(uct_varuna_md_t *md,
                        const uct_varuna_md_config_t *config)
{
    unsigned links[UCT_VARUNA_MAX_LINKS];
    unsigned i, num_nics, num_links;
    uct_varuna_nic_t *nics;
    ucs_status_t status;

    status = uct_varuna_nics_open(md->ib, config->lanes, &nics, &num_nics);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_varuna_md_check_key_size(nics, num_nics);
    if (status != UCS_OK) {
        goto out_close;
    }

    md->num_primaries = 0;
    status = uct_varuna_md_select(md, config, &nics, &num_nics, links,
                                  &num_links);
    if (status != UCS_OK) {
        goto out_close;
    }

    if (!uct_varuna_md_any_is_up(nics, links, num_links)) {
        ucs_debug("there is no port with " UCT_VARUNA_RC_TL " and "
                  UCT_VARUNA_DC_TL ", or " UCT_VARUNA_VERBS_TL ", that is up");
        status = UCS_ERR_NO_DEVICE;
        goto out_close;
    }

    uct_varuna_nics_close_unused(nics, num_nics);
    uct_varuna_md_set_nics(md, nics, num_nics, links, num_links);
    goto out_free;

out_close:
    for (i = 0; i < num_nics; ++i) {
        nics[i].is_link = 0;
    }
    uct_varuna_nics_close_unused(nics, num_nics);
out_free:
    ucs_free(nics);
    return status;
}

static void uct_varuna_md_init_mems(uct_varuna_md_t *md)
{
    pthread_mutex_init(&md->lock, NULL);
    uct_varuna_regions_init(&md->shared);
    ucs_list_head_init(&md->mems);
}

static ucs_status_t uct_varuna_md_check_atomics(const uct_varuna_md_config_t *config)
{
    if (!uct_varuna_atomic_modes[config->atomic_mode].is_built) {
        ucs_error("UCX_RC_VARUNA_ATOMIC_MODE=%s is not in this rc_varuna, which was built with "
                  "configure --disable-extended: use proxy or native",
                  uct_varuna_atomic_mode_names[config->atomic_mode]);
        return UCS_ERR_UNSUPPORTED;
    }

    return UCS_OK;
}

ucs_status_t uct_varuna_md_create(uct_component_t *component,
                                  uct_component_h ib,
                                  const uct_varuna_md_config_t *config,
                                  uct_md_h *md_p)
{
    int dmabuf = uct_varuna_md_get_dmabuf(config);
    uct_varuna_md_t *md;
    ucs_status_t status;

    status = (dmabuf < 0) ? UCS_ERR_INVALID_PARAM : uct_varuna_md_check_atomics(config);
    if (status != UCS_OK) {
        return status;
    }

    md = ucs_calloc(1, sizeof(*md), "varuna_md");
    if (md == NULL) {
        ucs_error("failed to allocate a memory domain");
        return UCS_ERR_NO_MEMORY;
    }

    uct_varuna_md_init_mems(md);
    md->super.ops       = &uct_varuna_md_ops;
    md->super.component = component;
    md->ib              = ib;
    md->atomic_mode     = (uct_varuna_atomic_mode_t)config->atomic_mode;
    status              = uct_varuna_md_set_vqp_links(md, config);
    if (status != UCS_OK) {
        goto err_free;
    }

    status = uct_varuna_random(&md->tokens.key, sizeof(md->tokens.key));
    if (status != UCS_OK) {
        goto err_free;
    }

    status = uct_varuna_md_open_nics(md, config);
    if (status != UCS_OK) {
        goto err_free;
    }

    uct_varuna_md_init_attr(md, dmabuf);

    status = uct_varuna_md_cmds_init(md);
    if (status != UCS_OK) {
        goto err_close;
    }

    *md_p = &md->super;
    return UCS_OK;

err_close:
    uct_varuna_md_close(&md->super);
    return status;
err_free:
    pthread_mutex_destroy(&md->lock);
    ucs_free(md);
    return status;
}

ucs_status_t uct_varuna_query_devices(uct_md_h tl_md,
                                      uct_tl_device_resource_t **devices_p,
                                      unsigned *num_devices_p)
{
    uct_varuna_md_t *md = ucs_derived_of(tl_md, uct_varuna_md_t);
    uct_tl_device_resource_t *devices;
    const uct_varuna_nic_t *nic;
    unsigned i;

    devices = ucs_calloc(md->num_primaries, sizeof(*devices), "varuna_devices");
    if (devices == NULL) {
        ucs_error("failed to allocate a list of %u devices", md->num_primaries);
        return UCS_ERR_NO_MEMORY;
    }

    for (i = 0; i < md->num_primaries; ++i) {
        nic                   = &md->nics[md->links[i]];
        devices[i].type       = UCT_DEVICE_TYPE_NET;
        devices[i].sys_device = nic->sys_device;
        ucs_snprintf_safe(devices[i].name, sizeof(devices[i].name), "%s%s",
                          UCT_VARUNA_DEV_PREFIX, nic->dev_name);
    }

    *devices_p     = devices;
    *num_devices_p = md->num_primaries;
    return UCS_OK;
}

/* --- The inner component --------------------------------------------------- */

static int uct_varuna_component_has_name(uct_component_h component,
                                         const char *name)
{
    uct_component_attr_t attr;

    attr.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME;
    return (uct_component_query(component, &attr) == UCS_OK) &&
           !strcmp(attr.name, name);
}

/* Searched when it is needed for the first time, because it may be loaded after us.
 * @return UCS_ERR_NO_DEVICE, which is not logged, if this UCX has none. */
static ucs_status_t uct_varuna_inner_component(uct_component_h *ib_p)
{
    /* Components are never unloaded. Several threads may search at the same time, and
     * find the same one. */
    static uct_component_h volatile ib = NULL;
    uct_component_h *components;
    unsigned i, num_components;
    ucs_status_t status;

    if (ib == NULL) {
        status = uct_query_components(&components, &num_components);
        if (status != UCS_OK) {
            return status;
        }

        for (i = 0; i < num_components; ++i) {
            if (uct_varuna_component_has_name(components[i],
                                              UCT_VARUNA_INNER_COMPONENT)) {
                ib = components[i];
            }
        }
        uct_release_component_list(components);
    }

    *ib_p = ib;
    return (ib == NULL) ? UCS_ERR_NO_DEVICE : UCS_OK;
}


/* --- Component operations -------------------------------------------------- */

static ucs_status_t
uct_varuna_query_md_resources(uct_component_t *component UCS_V_UNUSED,
                              uct_md_resource_desc_t **resources_p,
                              unsigned *num_resources_p)
{
    uct_md_resource_desc_t *resource;
    uct_component_attr_t attr;
    uct_component_h ib;

    if (uct_varuna_ucx_fork_renew() != UCS_OK) {
        return uct_md_query_empty_md_resource(resources_p, num_resources_p);
    }

    attr.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT;
    if ((uct_varuna_inner_component(&ib) != UCS_OK) ||
        (uct_component_query(ib, &attr) != UCS_OK) ||
        (attr.md_resource_count == 0)) {
        ucs_debug("no InfiniBand or RoCE device: rc_varuna is not available");
        return uct_md_query_empty_md_resource(resources_p, num_resources_p);
    }

    if (!uct_varuna_ucx_check_ib(ib)) {
        return uct_md_query_empty_md_resource(resources_p, num_resources_p);
    }

    resource = ucs_calloc(1, sizeof(*resource), "varuna_md_resource");
    if (resource == NULL) {
        ucs_error("failed to allocate a memory domain resource");
        return UCS_ERR_NO_MEMORY;
    }

    ucs_strncpy_zero(resource->md_name, UCT_VARUNA_MD_NAME,
                     sizeof(resource->md_name));
    *resources_p     = resource;
    *num_resources_p = 1;
    return UCS_OK;
}

static ucs_status_t
uct_varuna_md_open(uct_component_t *component, const char *md_name,
                   const uct_md_config_t *config, uct_md_h *md_p)
{
    uct_varuna_md_t *md;
    uct_component_h ib;
    ucs_status_t status;

    ucs_debug("opening memory domain %s", md_name);
    status = uct_varuna_inner_component(&ib);
    if (status != UCS_OK) {
        return status;
    }

    if (!uct_varuna_ucx_check_ib(ib)) {
        return UCS_ERR_UNSUPPORTED;
    }

    status = uct_varuna_md_create(component, ib,
                                  ucs_derived_of(config,
                                                 uct_varuna_md_config_t),
                                  md_p);
    if (status == UCS_OK) {
        uct_varuna_ucx_fork_get();
        md                = ucs_derived_of(*md_p, uct_varuna_md_t);
        md->is_dead       = uct_varuna_mlx5_is_md_dead;
        md->answers       = uct_varuna_mlx5_port_answers;
        md->rests_at_fork = 1;
    }
    return status;
}

static ucs_status_t uct_varuna_component_rkey_unpack(const void *rkey_buffer,
                                                     uct_rkey_t *rkey_p,
                                                     void **handle_p)
{
    uct_varuna_rkey_t *rkey;
    ucs_status_t status;
    uct_component_h ib;

    status = uct_varuna_inner_component(&ib);
    if (status != UCS_OK) {
        ucs_error("can't unpack a remote key without UCX's component '%s'",
                  UCT_VARUNA_INNER_COMPONENT);
        return status;
    }

    status = uct_varuna_rkey_unpack(ib, rkey_buffer, &rkey);
    if (status != UCS_OK) {
        return status;
    }

    *rkey_p   = (uct_rkey_t)rkey;
    *handle_p = NULL;
    return UCS_OK;
}

UCT_VARUNA_COMPAT_RKEY_UNPACK(uct_varuna_component_rkey_unpack_op,
                              uct_varuna_component_rkey_unpack)

static ucs_status_t
uct_varuna_component_rkey_release(uct_component_t *component UCS_V_UNUSED,
                                  uct_rkey_t rkey, void *handle UCS_V_UNUSED)
{
    ucs_status_t status;
    uct_component_h ib;

    status = uct_varuna_inner_component(&ib);
    if (status == UCS_OK) {
        uct_varuna_rkey_release(ib, (uct_varuna_rkey_t*)rkey);
    }
    return status;
}

uct_component_t uct_varuna_component = {
    .query_md_resources = uct_varuna_query_md_resources,
    .md_open            = uct_varuna_md_open,
    .cm_open            = (void*)ucs_empty_function_return_unsupported,
    .rkey_unpack        = uct_varuna_component_rkey_unpack_op,
    .rkey_ptr           = (void*)ucs_empty_function_return_unsupported,
    .rkey_release       = uct_varuna_component_rkey_release,
    UCT_VARUNA_COMPAT_COMPONENT_OPS
    .name               = UCT_VARUNA_COMPONENT_NAME,
    .md_config          = {
        .name           = "Varuna memory domain",
        .prefix         = UCT_VARUNA_CONFIG_PREFIX,
        .table          = uct_varuna_md_config_table,
        .size           = sizeof(uct_varuna_md_config_t),
    },
    .cm_config          = UCS_CONFIG_EMPTY_GLOBAL_LIST_ENTRY,
    .tl_list            = UCT_COMPONENT_TL_LIST_INITIALIZER(
                                  &uct_varuna_component),
    .flags              = 0,
    .md_vfs_init        = (void*)ucs_empty_function
};
