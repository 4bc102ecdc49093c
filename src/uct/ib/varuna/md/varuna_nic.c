/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Finding NIC ports which can be links, and choosing among them. Called by
 * varuna_md_open.c when the memory domain is opened.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_nic.h"
#include <uct/ib/varuna/ucx/varuna_compat.h>
#include <uct/ib/varuna/ucx/varuna_tl.h>
#include <uct/ib/varuna/ucx/varuna_mlx5_dev.h>

#include <ucs/algorithm/crc.h>
#include <ucs/arch/atomic.h>
#include <ucs/datastruct/string_buffer.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/compiler.h>
#include <ucs/sys/string.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <ucs/sys/topo/base/topo.h>

#define UCT_VARUNA_LINKS_ENV    "UCX_" UCT_VARUNA_CONFIG_PREFIX "LINKS"

/* Missing ones are reported of so many: there can't be more links than 8 */
#define UCT_VARUNA_LINKS_MAX_NAMES 64

/* Growing list of NICs */
typedef struct {
    uct_varuna_nic_t *nics;
    unsigned         num_nics;
    unsigned         lanes;         /* Of uct_varuna_lanes_names */
} uct_varuna_nic_list_t;


static int uct_varuna_nic_compare(const void *a, const void *b)
{
    const uct_varuna_nic_t *nic_a = a;
    const uct_varuna_nic_t *nic_b = b;

    /* Natural order: mlx5_2:1 comes before mlx5_10:1 */
    return strverscmp(nic_a->dev_name, nic_b->dev_name);
}

/* @return A new one, all zeros but for its name; NULL if there is no memory. */
static uct_varuna_nic_t *
uct_varuna_nic_list_append(uct_varuna_nic_list_t *list, const char *dev_name)
{
    uct_varuna_nic_t *nics, *nic;

    nics = ucs_realloc(list->nics, (list->num_nics + 1) * sizeof(*nics),
                       "varuna_nics");
    if (nics == NULL) {
        ucs_error("failed to allocate a list of %u NICs", list->num_nics + 1);
        return NULL;
    }

    list->nics = nics;
    nic        = &nics[list->num_nics++];
    memset(nic, 0, sizeof(*nic));
    ucs_strncpy_zero(nic->dev_name, dev_name, sizeof(nic->dev_name));
    return nic;
}

static ucs_status_t
uct_varuna_nic_list_append_port(uct_varuna_nic_list_t *list, uct_md_h md,
                                const char *md_name,
                                const uct_varuna_md_attr_t *md_attr,
                                const uct_tl_resource_desc_t *tl_resource,
                                const uct_varuna_set_t *set, uint64_t ports_down)
{
    uct_varuna_nic_t *nic;
    uint8_t port_num;

    nic = uct_varuna_nic_list_append(list, tl_resource->dev_name);
    if (nic == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    port_num        = uct_varuna_mlx5_port_num(nic->dev_name);
    nic->md         = md;
    nic->set        = set;
    nic->md_attr    = *md_attr;
    nic->sys_device = tl_resource->sys_device;
    nic->was_down   = !!(ports_down & UCS_BIT(port_num));
    ucs_strncpy_zero(nic->md_name, md_name, sizeof(nic->md_name));
    return UCS_OK;
}

static int uct_varuna_has_tl(const uct_tl_resource_desc_t *resources,
                             unsigned num_resources, const char *tl_name,
                             const char *dev_name)
{
    unsigned i;

    for (i = 0; i < num_resources; ++i) {
        if (!strcmp(resources[i].tl_name, tl_name) &&
            !strcmp(resources[i].dev_name, dev_name)) {
            return 1;
        }
    }
    return 0;
}

/* @return The best set of which a port has all transports, if @a resource is its fast one */
static const uct_varuna_set_t *
uct_varuna_set_of(const uct_varuna_nic_list_t *list,
                  const uct_tl_resource_desc_t *resources, unsigned num_resources,
                  const uct_tl_resource_desc_t *resource)
{
    const uct_varuna_set_t *set;

    for (set = uct_varuna_sets; set->name != NULL; ++set) {
        if ((list->lanes != 0) && (set != &uct_varuna_sets[list->lanes - 1])) {
            continue;
        }

        if (uct_varuna_has_tl(resources, num_resources,
                              uct_varuna_tl_name(set->fast), resource->dev_name) &&
            ((set->fallback == UCT_VARUNA_LANE_NONE) ||
             uct_varuna_has_tl(resources, num_resources,
                               uct_varuna_tl_name(set->fallback),
                               resource->dev_name))) {
            return strcmp(resource->tl_name, uct_varuna_tl_name(set->fast)) ? NULL :
                   set;
        }
    }

    return NULL;
}

/* Append the ports of an open memory domain which have all transports of a set. */
static ucs_status_t
uct_varuna_nic_list_append_ports(uct_varuna_nic_list_t *list, uct_md_h md,
                                 const char *md_name)
{
    uct_tl_resource_desc_t *resources;
    const uct_varuna_set_t *set;
    unsigned i, num_resources;
    uct_varuna_md_attr_t md_attr;
    uint64_t ports_down;
    ucs_status_t status;

    ports_down = uct_varuna_mlx5_ports_keep(md);
    status     = uct_varuna_compat_md_query(md, &md_attr);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_md_query_tl_resources(md, &resources, &num_resources);
    if (status != UCS_OK) {
        return status;
    }

    for (i = 0; (i < num_resources) && (status == UCS_OK); ++i) {
        set = uct_varuna_set_of(list, resources, num_resources, &resources[i]);
        if (set != NULL) {
            status = uct_varuna_nic_list_append_port(list, md, md_name, &md_attr,
                                                     &resources[i], set, ports_down);
        }
    }

    uct_release_tl_resource_list(resources);
    return status;
}

/* A log entry must never be visible before its data, so the device may not reorder its
 * writes. All other options of the inner memory domain are as without us. */
static ucs_status_t uct_varuna_nic_override(const char *md_name,
                                            uct_md_config_t *config)
{
    ucs_status_t status;

    status = uct_config_modify(config, UCT_VARUNA_COMPAT_RELAXED_ORDERING,
                               "off");
    if (status != UCS_OK) {
        ucs_error("rc_varuna: UCX refuses " UCT_VARUNA_COMPAT_RELAXED_ORDERING
                  "=off for %s (%s), so log entries may be placed before their "
                  "data. Set UCX_IB_PCI_RELAXED_ORDERING=off, and use the UCX that "
                  "rc_varuna was built for", md_name, ucs_status_string(status));
    }

    return status;
}

/* Open one memory domain, and append its ports. */
static ucs_status_t
uct_varuna_nic_list_open_md(uct_varuna_nic_list_t *list, uct_component_h ib,
                           const char *md_name)
{
    unsigned num_before = list->num_nics;
    uct_md_config_t *config;
    ucs_status_t status;
    uct_md_h md;

    status = uct_md_config_read(ib, NULL, NULL, &config);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_varuna_nic_override(md_name, config);
    if (status != UCS_OK) {
        uct_config_release(config);
        return status;
    }

    status = uct_md_open(ib, md_name, config, &md);
    uct_config_release(config);
    if (status != UCS_OK) {
        ucs_debug("failed to open %s: %s", md_name, ucs_status_string(status));
        return UCS_OK; /* Do without it */
    }

    status = uct_varuna_nic_list_append_ports(list, md, md_name);
    if (list->num_nics == num_before) {
        uct_md_close(md);
    }
    return status;
}

static ucs_status_t
uct_varuna_nic_list_open_all(uct_varuna_nic_list_t *list, uct_component_h ib)
{
    uct_component_attr_t attr;
    ucs_status_t status;
    unsigned i;

    attr.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT;
    status          = uct_component_query(ib, &attr);
    if ((status != UCS_OK) || (attr.md_resource_count == 0)) {
        return status;
    }

    attr.field_mask   = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
    attr.md_resources = ucs_calloc(attr.md_resource_count,
                                   sizeof(*attr.md_resources),
                                   "varuna_md_resources");
    if (attr.md_resources == NULL) {
        ucs_error("failed to allocate a list of %u memory domains",
                  attr.md_resource_count);
        return UCS_ERR_NO_MEMORY;
    }

    status = uct_component_query(ib, &attr);
    for (i = 0; (i < attr.md_resource_count) && (status == UCS_OK); ++i) {
        status = uct_varuna_nic_list_open_md(list, ib,
                                             attr.md_resources[i].md_name);
    }

    ucs_free(attr.md_resources);
    return status;
}

static void uct_varuna_nics_sort(uct_varuna_nic_t *nics, unsigned num_nics)
{
    if (num_nics > 0) {
        qsort(nics, num_nics, sizeof(*nics), uct_varuna_nic_compare);
    }
}

ucs_status_t uct_varuna_nics_open(uct_component_h ib, unsigned lanes,
                                  uct_varuna_nic_t **nics_p,
                                  unsigned *num_nics_p)
{
    uct_varuna_nic_list_t list = {NULL, 0};
    ucs_status_t status;

    list.lanes = lanes;
    status = uct_varuna_nic_list_open_all(&list, ib);
    if (status != UCS_OK) {
        uct_varuna_nics_close_unused(list.nics, list.num_nics);
        ucs_free(list.nics);
        return status;
    }

    uct_varuna_nics_sort(list.nics, list.num_nics);
    *nics_p     = list.nics;
    *num_nics_p = list.num_nics;
    return UCS_OK;
}

ucs_status_t uct_varuna_nics_open_device(uct_component_h ib, const uct_varuna_set_t *set,
                                         const char *md_name, uct_varuna_nic_t **nics_p,
                                         unsigned *num_nics_p)
{
    uct_varuna_nic_list_t list = {NULL, 0};
    ucs_status_t status;

    list.lanes = (set - uct_varuna_sets) + 1;
    status     = uct_varuna_nic_list_open_md(&list, ib, md_name);
    if (status != UCS_OK) {
        uct_varuna_nics_close_unused(list.nics, list.num_nics);
        ucs_free(list.nics);
        return status;
    }

    *nics_p     = list.nics;
    *num_nics_p = list.num_nics;
    return UCS_OK;
}

static int uct_varuna_nics_md_is_used(const uct_varuna_nic_t *nics,
                                      unsigned num_nics, uct_md_h md)
{
    unsigned i;

    for (i = 0; i < num_nics; ++i) {
        if (nics[i].md == md) {
            return 1;
        }
    }
    return 0;
}

void uct_varuna_nics_close_unused(uct_varuna_nic_t *nics, unsigned num_nics)
{
    unsigned i;
    uct_md_h md;

    for (i = 0; i < num_nics; ++i) {
        md = nics[i].md;
        if ((md == NULL) || nics[i].is_link) {
            continue;
        }

        nics[i].md = NULL;
        if (!uct_varuna_nics_md_is_used(nics, num_nics, md)) {
            uct_varuna_tl_note_dead(md, 0);
            uct_md_close(md);
        }
    }
}

/* @return The name without our own prefix */
static const char *uct_varuna_nic_inner_name(const char *name)
{
    const size_t length = strlen(UCT_VARUNA_DEV_PREFIX);

    return strncmp(name, UCT_VARUNA_DEV_PREFIX, length) ? name : (name + length);
}

static int uct_varuna_nic_matches(const uct_varuna_nic_t *nic, const char *name)
{
    const char *port;
    size_t length;

    name = uct_varuna_nic_inner_name(name);
    if (!strcmp(nic->dev_name, name)) {
        return 1;
    }

    /* Without port number: all ports of the device */
    port   = strrchr(nic->dev_name, ':');
    length = strlen(name);
    return (port != NULL) && (length == (size_t)(port - nic->dev_name)) &&
           !strncmp(nic->dev_name, name, length);
}

static void uct_varuna_nics_str(const uct_varuna_nic_t *nics, unsigned num_nics,
                                ucs_string_buffer_t *strb)
{
    const char *separator = "";
    unsigned i;

    for (i = 0; i < num_nics; ++i) {
        if (!nics[i].is_missing) {
            ucs_string_buffer_appendf(strb, "%s%s", separator, nics[i].dev_name);
            separator = ",";
        }
    }

    if (*separator == '\0') {
        ucs_string_buffer_appendf(strb, "none");
    }
}

ucs_status_t uct_varuna_nics_add_missing(uct_varuna_nic_t **nics_p,
                                         unsigned *num_nics_p, const char *name)
{
    uct_varuna_nic_list_t list = {*nics_p, *num_nics_p};
    char dev_name[UCT_DEVICE_NAME_MAX];
    uct_varuna_nic_t *nic;
    unsigned i;

    if (!strcmp(name, UCT_VARUNA_LINKS_ALL)) {
        return UCS_OK;
    }

    for (i = 0; i < list.num_nics; ++i) {
        if (uct_varuna_nic_matches(&list.nics[i], name)) {
            return UCS_OK;
        }
    }

    name = uct_varuna_nic_inner_name(name);
    ucs_snprintf_zero(dev_name, sizeof(dev_name), "%s%s", name,
                      (strchr(name, ':') == NULL) ? ":1" : "");
    nic = uct_varuna_nic_list_append(&list, dev_name);
    if (nic == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    nic->is_missing = 1;
    uct_varuna_nics_sort(list.nics, list.num_nics);
    *nics_p     = list.nics;
    *num_nics_p = list.num_nics;
    return UCS_OK;
}

/* Every memory domain of a process has the same names: one warning for each is enough.
 * Without a lock, which a forked process might find held. */
static int uct_varuna_nics_is_news(const char *name)
{
    static uint64_t known[UCT_VARUNA_MAX_LINKS]; /* Hashes of names; 0: none */
    uint64_t hash = ucs_crc32(1, name, strlen(name)) + 1ul, old = 0;
    unsigned i;

    for (i = 0; (i < UCT_VARUNA_MAX_LINKS) && (old != hash); ++i) {
        old = ucs_atomic_cswap64(&known[i], 0, hash);
        if (old == 0) {
            return 1;
        }
    }
    return 0;
}

/* No NIC has this name. */
static void uct_varuna_nics_report_missing(const uct_varuna_nic_t *nics,
                                           unsigned num_nics, const char *name,
                                           const char *where, int is_error)
{
    UCS_STRING_BUFFER_ONSTACK(strb, 512);

    if (is_error || uct_varuna_nics_is_news(name)) {
        uct_varuna_nics_str(nics, num_nics, &strb);
        ucs_log(is_error ? UCS_LOG_LEVEL_ERROR : UCS_LOG_LEVEL_WARN,
                "%s: there is no port '%s' with " UCT_VARUNA_RC_TL " and "
                UCT_VARUNA_DC_TL ", or " UCT_VARUNA_VERBS_TL " (there are: %s)%s",
                where, name, ucs_string_buffer_cstr(&strb),
                is_error ? "" : ": it is not used until the process starts again");
    }
}

/* Make one NIC a link, because of a name other than "all". */
static ucs_status_t
uct_varuna_nics_select_one(uct_varuna_nic_t *nics, unsigned num_nics,
                           unsigned nic, const char *name, const char *where,
                           unsigned *links, unsigned *num_links_p)
{
    UCS_STRING_BUFFER_ONSTACK(strb, 512);

    if (nics[nic].is_link) {
        uct_varuna_nics_str(nics, num_nics, &strb);
        ucs_error("%s: '%s' names %s a second time "
                  "(there are: %s)", where, name, nics[nic].dev_name,
                  ucs_string_buffer_cstr(&strb));
        return UCS_ERR_INVALID_PARAM;
    }

    if (*num_links_p == UCT_VARUNA_MAX_LINKS) {
        ucs_error("%s: '%s' is one too many, there can't be "
                  "more than %u links", where, name, UCT_VARUNA_MAX_LINKS);
        return UCS_ERR_INVALID_PARAM;
    }

    nics[nic].is_link       = 1;
    links[(*num_links_p)++] = nic;
    return UCS_OK;
}

/* @return UCS_ERR_NO_DEVICE if there is none of this name, which is not logged. */
static ucs_status_t
uct_varuna_nics_select_name(uct_varuna_nic_t *nics, unsigned num_nics,
                            const char *name, const char *where,
                            unsigned *links, unsigned *num_links_p)
{
    unsigned num_found = 0;
    ucs_status_t status;
    unsigned i;

    for (i = 0; i < num_nics; ++i) {
        if (nics[i].is_missing || !uct_varuna_nic_matches(&nics[i], name)) {
            continue;
        }

        ++num_found;
        status = uct_varuna_nics_select_one(nics, num_nics, i, name, where,
                                            links, num_links_p);
        if (status != UCS_OK) {
            return status;
        }
    }

    return (num_found == 0) ? UCS_ERR_NO_DEVICE : UCS_OK;
}

/* @return Number of NICs that "all" means. */
static unsigned uct_varuna_nics_count_rest(const uct_varuna_nic_t *nics,
                                           unsigned num_nics)
{
    unsigned count = 0;
    unsigned i;

    for (i = 0; i < num_nics; ++i) {
        count += !nics[i].is_link && !nics[i].is_disabled && !nics[i].is_missing;
    }

    return count;
}

/* Make the other NICs links, as far as possible. If there are too many, those whose
 * ports are down have no cable. */
static void uct_varuna_nics_select_rest(uct_varuna_nic_t *nics,
                                        unsigned num_nics, unsigned *links,
                                        unsigned *num_links_p)
{
    int are_few = (*num_links_p + uct_varuna_nics_count_rest(nics, num_nics)) <=
                  UCT_VARUNA_MAX_LINKS;
    unsigned i;

    for (i = 0; i < num_nics; ++i) {
        if (nics[i].is_link || nics[i].is_disabled || nics[i].is_missing ||
            (nics[i].was_down && !are_few)) {
            continue;
        }

        if (*num_links_p == UCT_VARUNA_MAX_LINKS) {
            ucs_debug("%s is not used, as there are %u links already",
                      nics[i].dev_name, UCT_VARUNA_MAX_LINKS);
            continue;
        }

        nics[i].is_link         = 1;
        links[(*num_links_p)++] = i;
    }
}

void uct_varuna_nics_disable(uct_varuna_nic_t *nics, unsigned num_nics,
                             const char *name)
{
    unsigned i;

    for (i = 0; i < num_nics; ++i) {
        if (uct_varuna_nic_matches(&nics[i], name)) {
            nics[i].is_disabled = 1;
        }
    }
}

unsigned uct_varuna_nics_count(const uct_varuna_nic_t *nics, unsigned num_nics,
                               char **names, unsigned num_names)
{
    unsigned count = 0;
    unsigned i, name;

    for (i = 0; i < num_nics; ++i) {
        for (name = 0; name < num_names; ++name) {
            if (!nics[i].is_missing &&
                (uct_varuna_nic_matches(&nics[i], names[name]) ||
                 (!strcmp(names[name], UCT_VARUNA_LINKS_ALL) &&
                  !nics[i].is_disabled))) {
                ++count;
                break;
            }
        }
    }

    return count;
}

ucs_status_t uct_varuna_nics_select(uct_varuna_nic_t *nics, unsigned num_nics,
                                    char **names, unsigned num_names,
                                    char **wheres,
                                    unsigned *links, unsigned *num_links_p)
{
    unsigned num_links = 0;
    uint64_t missing   = 0;
    UCS_STRING_BUFFER_ONSTACK(strb, 512);
    ucs_status_t status;
    unsigned i;

    if (num_names == 0) {
        uct_varuna_nics_str(nics, num_nics, &strb);
        ucs_error(UCT_VARUNA_LINKS_ENV " names no link (there are: %s)",
                  ucs_string_buffer_cstr(&strb));
        return UCS_ERR_INVALID_PARAM;
    }

    for (i = 0; i < num_names; ++i) {
        if (!strcmp(names[i], UCT_VARUNA_LINKS_ALL)) {
            uct_varuna_nics_select_rest(nics, num_nics, links, &num_links);
            continue;
        }

        status = uct_varuna_nics_select_name(nics, num_nics, names[i],
                                             (wheres == NULL) ?
                                             UCT_VARUNA_LINKS_ENV : wheres[i],
                                             links, &num_links);
        if (status == UCS_ERR_NO_DEVICE) {
            missing |= (i < UCT_VARUNA_LINKS_MAX_NAMES) ? UCS_BIT(i) : 0;
        } else if (status != UCS_OK) {
            return status;
        }
    }

    ucs_for_each_bit(i, missing) {
        uct_varuna_nics_report_missing(nics, num_nics, names[i],
                                       (wheres == NULL) ?
                                       UCT_VARUNA_LINKS_ENV : wheres[i],
                                       num_links == 0);
        if (num_links == 0) {
            return UCS_ERR_NO_DEVICE;
        }
    }

    *num_links_p = num_links;
    return UCS_OK;
}

/* --- Where NICs are --- */

double uct_varuna_nic_distance(const uct_varuna_nic_t *nic1,
                               const uct_varuna_nic_t *nic2)
{
    ucs_sys_dev_distance_t distance;
    ucs_status_t status;

    if ((nic1->sys_device == UCS_SYS_DEVICE_ID_UNKNOWN) ||
        (nic2->sys_device == UCS_SYS_DEVICE_ID_UNKNOWN)) {
        return 0;
    }

    status = ucs_topo_get_distance(nic1->sys_device, nic2->sys_device, &distance);
    if (status != UCS_OK) {
        ucs_debug("the distance of %s and %s is unknown: %s", nic1->dev_name,
                  nic2->dev_name, ucs_status_string(status));
        return 0;
    }

    /* UCX's bandwidths are those of CPU models: on some, that between two root complexes
     * is higher than that below one of them */
    return distance.latency;
}

/* --- What a NIC is short of --- */

/* Something that a NIC has run out of. */

static void uct_varuna_shortage_failed(uct_varuna_backoff_t *backoff, const char *what,
                                       const char *where, ucs_status_t status,
                                       ucs_time_t now)
{
    if (uct_varuna_backoff_failed(backoff, UCS_ERR_NO_RESOURCE, now)) {
        ucs_warn("rc_varuna: %s gives no %s (%s): other links carry the traffic; it is asked "
                 "again in %.0f s, and less often after each refusal", where, what,
                 ucs_status_string(status), ucs_time_to_sec(uct_varuna_backoff_distance(backoff)));
    } else {
        ucs_debug("rc_varuna: %s gives no %s (%s), refusal %u: it is asked again in %.0f s",
                  where, what, ucs_status_string(status), backoff->failures,
                  ucs_time_to_sec(uct_varuna_backoff_distance(backoff)));
    }
}

void uct_varuna_shortage_note(uct_varuna_shortage_t *shortage, const char *what,
                              const char *where, ucs_status_t status, ucs_time_t now)
{
    unsigned failures;

    if (status != UCS_OK) {
        uct_varuna_shortage_failed(&shortage->backoff, what, where, status, now);
        return;
    }

    failures = uct_varuna_backoff_succeeded(&shortage->backoff);
    if (failures > 0) {
        ucs_diag("rc_varuna: %s gives %s %s again, after %u refusals", where,
                 (what[0] == 'a') ? "an" : "a", what, failures);
    }
}
