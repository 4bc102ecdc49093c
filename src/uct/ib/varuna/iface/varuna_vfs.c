/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The counters in UCX's VFS tree, which ucx_vfs mounts:
 *
 *     uct/worker/<worker>/iface/<iface>/link/<device>/...
 *                                       target/...
 *                                       vqp/<id>/...
 *
 * Called by UCX when an interface's directory is listed or a file is read, in any
 * thread. An endpoint's files have its id and not its address: it is looked up, and kept
 * from being destroyed, under the requester's eps_lock. Counters are read without a lock.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_tl_iface.h"
#include <uct/ib/varuna/requester/varuna_requester.h>
#include <uct/ib/varuna/requester/varuna_stat.h>
#include <uct/ib/varuna/responder/varuna_responder.h>

#include <ucs/vfs/base/vfs_cb.h>
#include <ucs/vfs/base/vfs_obj.h>

static const struct {
    const char                 *name;
    size_t                     offset;
} uct_varuna_vfs_ep_counters[] = {
#define UCT_VARUNA_VFS_EP(_name) \
    { #_name, ucs_offsetof(uct_varuna_ep_t, stats._name) },
    UCT_VARUNA_STAT_EP(UCT_VARUNA_VFS_EP)
#define UCT_VARUNA_VFS_AMO(_name) \
    { "atomics/" #_name, ucs_offsetof(uct_varuna_ep_t, amo.stats._name) },
    UCT_VARUNA_STAT_AMO(UCT_VARUNA_VFS_AMO)
};

static const struct {
    const char                 *name;
    size_t                     offset;
} uct_varuna_vfs_link_counters[] = {
#define UCT_VARUNA_VFS_LINK(_name) \
    { #_name, ucs_offsetof(uct_varuna_requester_t, link_stats[0]._name) }
    UCT_VARUNA_VFS_LINK(switches),
    UCT_VARUNA_VFS_LINK(executed),
    UCT_VARUNA_VFS_LINK(lost),
    UCT_VARUNA_VFS_LINK(ambiguous),
    UCT_VARUNA_VFS_LINK(repeated),
#define UCT_VARUNA_VFS_FENCES(_name, _fenced) \
    { #_name, ucs_offsetof(uct_varuna_requester_t, \
                           link_stats[0].fences[UCT_VARUNA_FENCED_##_fenced]) }
    UCT_VARUNA_VFS_FENCES(fences_none, NOT),
    UCT_VARUNA_VFS_FENCES(fences_reset, RESET),
    UCT_VARUNA_VFS_FENCES(fences_dc, DC),
    UCT_VARUNA_VFS_FENCES(fences_dead, DEAD),
    UCT_VARUNA_VFS_FENCES(fences_hung, HUNG),
    UCT_VARUNA_VFS_FENCES(fences_other, OTHER)
};

/* What is shown of an endpoint. */
typedef void (*uct_varuna_vfs_ep_func_t)(const uct_varuna_ep_t *ep,
                                         ucs_string_buffer_t *strb);

static void uct_varuna_vfs_print_state(const uct_varuna_ep_t *ep,
                                       ucs_string_buffer_t *strb)
{
    ucs_string_buffer_appendf(strb, "%s\n",
                              uct_varuna_ep_state_names[ep->hot.state]);
}

static void uct_varuna_vfs_print_lane(const uct_varuna_ep_t *ep,
                                      ucs_string_buffer_t *strb)
{
    unsigned link = ep->lane.link;

    ucs_string_buffer_appendf(strb, "%s %s\n",
                              uct_varuna_lane_names[ep->lane.kind],
                              (link == UCT_VARUNA_LINK_NONE) ? "none" :
                              uct_varuna_link_name(uct_varuna_ep_iface(ep),
                                                   link));
}

static void uct_varuna_vfs_print_counter(const uct_varuna_ep_t *ep,
                                         unsigned index,
                                         ucs_string_buffer_t *strb)
{
    size_t offset = uct_varuna_vfs_ep_counters[index].offset;

    ucs_string_buffer_appendf(strb, "%lu\n",
                              *(const uint64_t*)UCS_PTR_BYTE_OFFSET(ep, offset));
}

/* Files of an endpoint: the counters follow those two. */
static const struct {
    const char                 *name;
    uct_varuna_vfs_ep_func_t   print;
} uct_varuna_vfs_ep_files[] = {
    { "state", uct_varuna_vfs_print_state },
    { "lane",  uct_varuna_vfs_print_lane }
};

/* @a arg_ptr: the interface; @a arg_u64: the file, and the vQP's id below it. What is
 * called @a obj may have been destroyed. */
static void uct_varuna_vfs_show_ep(void *obj, ucs_string_buffer_t *strb,
                                   void *arg_ptr, uint64_t arg_u64)
{
    const unsigned num_files  = ucs_static_array_size(uct_varuna_vfs_ep_files);
    uct_varuna_iface_t *iface = arg_ptr;
    unsigned file             = arg_u64 >> 32;
    const uct_varuna_ep_t *ep;

    pthread_mutex_lock(&uct_varuna_requester(iface)->eps_lock);
    ep = uct_varuna_ep_find(iface, (uint32_t)arg_u64);
    if (ep == NULL) {
        ucs_string_buffer_appendf(strb, "closed\n");
    } else if (file < num_files) {
        uct_varuna_vfs_ep_files[file].print(ep, strb);
    } else {
        uct_varuna_vfs_print_counter(ep, file - num_files, strb);
    }
    pthread_mutex_unlock(&uct_varuna_requester(iface)->eps_lock);
}

static void uct_varuna_vfs_show_link(void *obj, ucs_string_buffer_t *strb,
                                     void *arg_ptr, uint64_t arg_u64)
{
    const uct_varuna_link_entry_t *link = arg_ptr;

    ucs_string_buffer_appendf(strb, "%s\n",
                              uct_varuna_damp_state_names[link->damp.state]);
}

/* Endpoints count for themselves while they post; the sum is made when asked for */
static void uct_varuna_vfs_show_posted(void *obj, ucs_string_buffer_t *strb,
                                       void *arg_ptr, uint64_t arg_u64)
{
    uct_varuna_iface_t *iface = obj;
    uint64_t posted           = uct_varuna_requester(iface)->link_stats[arg_u64].posted;
    const uct_varuna_ep_t *ep;
    void *element;
    unsigned i;

    pthread_mutex_lock(&uct_varuna_requester(iface)->eps_lock);
    ucs_ptr_array_for_each(element, i, &uct_varuna_requester(iface)->eps) {
        ep      = element;
        posted += (ep->lane.link == arg_u64) ? uct_varuna_stat_unsettled(ep) : 0;
    }
    pthread_mutex_unlock(&uct_varuna_requester(iface)->eps_lock);

    ucs_string_buffer_appendf(strb, "%lu\n", posted);
}

static void uct_varuna_vfs_add_link_sums(uct_varuna_iface_t *iface,
                                         unsigned link, const char *name)
{
    size_t offset = link * sizeof(uct_varuna_requester(iface)->link_stats[0]);
    unsigned i;

    ucs_vfs_obj_add_ro_file(iface, uct_varuna_vfs_show_posted, NULL, link,
                            "link/%s/posted", name);
    for (i = 0; i < ucs_static_array_size(uct_varuna_vfs_link_counters); ++i) {
        ucs_vfs_obj_add_ro_file(
                iface, ucs_vfs_show_primitive,
                UCS_PTR_BYTE_OFFSET(iface, offset +
                                    uct_varuna_vfs_link_counters[i].offset),
                UCS_VFS_TYPE_ULONG, "link/%s/%s", name,
                uct_varuna_vfs_link_counters[i].name);
    }
}

static void uct_varuna_vfs_add_file(uct_varuna_iface_t *iface,
                                    uct_varuna_ep_t *ep, uint64_t file,
                                    const char *name)
{
    ucs_vfs_obj_add_ro_file(ep, uct_varuna_vfs_show_ep, iface,
                            (file << 32) | ep->id, "%s", name);
}

static void uct_varuna_vfs_add_ep(uct_varuna_iface_t *iface,
                                  uct_varuna_ep_t *ep)
{
    const unsigned num_files = ucs_static_array_size(uct_varuna_vfs_ep_files);
    unsigned i;

    ucs_vfs_obj_add_dir(iface, ep, "vqp/%u", ep->id);
    for (i = 0; i < num_files; ++i) {
        uct_varuna_vfs_add_file(iface, ep, i, uct_varuna_vfs_ep_files[i].name);
    }

    for (i = 0; i < ucs_static_array_size(uct_varuna_vfs_ep_counters); ++i) {
        uct_varuna_vfs_add_file(iface, ep, num_files + i,
                                uct_varuna_vfs_ep_counters[i].name);
    }
}

static void uct_varuna_vfs_add_sums(uct_varuna_iface_t *iface)
{
    const struct {
        const char             *name;
        uint32_t               *value;
    } sums[] = {
        { "target/open",              &iface->responder->stats.open },
        { "target/orphans",           &iface->responder->stats.orphans },
        { "target/given_up",          &iface->responder->stats.given_up },
        { "target/stale",             &iface->ctl->stats.stale },
        { "target/mismatched",        &iface->ctl->stats.mismatched },
        { "target/foreign",           &iface->foreign },
        { "target/unexpected",        &iface->responder->stats.unexpected },
        { "target/strangers_answered", &iface->ctl->stats.answered },
        { "target/strangers_ignored", &iface->ctl->stats.ignored },
        { "rest/queue_pairs",         &iface->rest.num },
        { "rest/ended_early",         &iface->rest.num_early },
        { "late_opens",               &uct_varuna_requester(iface)->late_opens }
    };
    unsigned i;

    for (i = 0; i < ucs_static_array_size(sums); ++i) {
        ucs_vfs_obj_add_ro_file(iface, ucs_vfs_show_primitive, sums[i].value,
                                UCS_VFS_TYPE_U32, "%s", sums[i].name);
    }
}

static void uct_varuna_vfs_add_link(uct_varuna_iface_t *iface, unsigned link)
{
    uct_varuna_link_entry_t *entry = &iface->link_table.links[link];
    const char *name               = uct_varuna_link_name(iface, link);

    ucs_vfs_obj_add_ro_file(iface, uct_varuna_vfs_show_link, entry, 0, "link/%s/state", name);
    ucs_vfs_obj_add_ro_file(iface, ucs_vfs_show_primitive, &entry->generation,
                            UCS_VFS_TYPE_U32, "link/%s/failures", name);
    ucs_vfs_obj_add_ro_file(iface, ucs_vfs_show_primitive, &entry->damp.flaps,
                            UCS_VFS_TYPE_U32, "link/%s/flaps", name);
    uct_varuna_vfs_add_link_sums(iface, link, name);
}

void uct_varuna_iface_vfs_refresh(uct_iface_h tl_iface)
{
    uct_varuna_iface_t *iface = ucs_derived_of(tl_iface, uct_varuna_iface_t);
    unsigned i;
    void *ep;

    for (i = 0; i < iface->num_links; ++i) {
        uct_varuna_vfs_add_link(iface, i);
    }

    uct_varuna_vfs_add_sums(iface);
    pthread_mutex_lock(&uct_varuna_requester(iface)->eps_lock);
    ucs_ptr_array_for_each(ep, i, &uct_varuna_requester(iface)->eps) {
        uct_varuna_vfs_add_ep(iface, ep);
    }
    pthread_mutex_unlock(&uct_varuna_requester(iface)->eps_lock);
}
