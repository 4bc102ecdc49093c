/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * NICs that work again. See varuna_health.h.
 *
 * Locks: that of a return is taken before that of the memory domain. While a device is opened
 * or a region is registered, neither is held, since a NIC may hang: the memory domain may be
 * closed, and the region deregistered, meanwhile. Then the thread that comes back takes back
 * what it has made.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/varuna/core/varuna_amo_mode.h>
#include "varuna_health.h"
#include <uct/ib/varuna/ucx/varuna_compat.h>

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/string.h>
#include <ucs/sys/sys.h>

struct uct_varuna_return {
    uct_varuna_cmd_t           super;
    uct_component_h            ib;
    const uct_varuna_set_t     *set;
    char                       md_name[UCT_MD_NAME_MAX];
    unsigned                   owner;      /* The first port in the former life, */
    unsigned                   nic;        /* and in the new one; 0: it is not open */
    uct_md_h                   inner;      /* The memory domain of the new life */
    pthread_mutex_t            lock;       /* Protects what follows */
    uct_varuna_md_t            *md;        /* NULL: it was closed */
    uct_varuna_mem_t           *mem;       /* Being registered; NULL: nothing is, or it was
                                              deregistered meanwhile */
    uct_varuna_backoff_t       backoff;    /* Of opening it */
    int                        is_running; /* A command is on its way */
};


/* --- Opening --- */

/* @return The port of the new life, NULL if the device has no such port any more. */
static const uct_varuna_nic_t *
uct_varuna_return_find(const uct_varuna_nic_t *nics, unsigned num_nics,
                       const uct_varuna_nic_t *former)
{
    unsigned i;

    for (i = 0; i < num_nics; ++i) {
        if (!strcmp(nics[i].dev_name, former->dev_name) && (nics[i].set == former->set) &&
            (nics[i].md_attr.rkey_packed_size == UCT_VARUNA_INNER_KEY_SIZE)) {
            return &nics[i];
        }
    }

    return NULL;
}

static int uct_varuna_return_is_port(const uct_varuna_md_t *md, unsigned owner, unsigned nic)
{
    return (md->nics[nic].md == md->nics[owner].md) && md->nics[nic].is_link;
}

/* @return How many numbers the ports of a device need. */
static unsigned uct_varuna_return_num_ports(const uct_varuna_md_t *md, unsigned owner)
{
    unsigned count = 0;
    unsigned nic;

    for (nic = owner; nic < md->num_nics; ++nic) {
        count += uct_varuna_return_is_port(md, owner, nic);
    }

    return count;
}

/* The last look before the new numbers are there: what can fail. Lock of the memory domain. */
static ucs_status_t
uct_varuna_return_prepare(uct_varuna_md_t *md, unsigned owner, const uct_varuna_nic_t *nics,
                          unsigned num_nics)
{
    unsigned first = md->num_nics;
    unsigned next  = first;
    const uct_varuna_nic_t *found;
    ucs_status_t status;
    unsigned nic;

    for (nic = owner; nic < first; ++nic) {
        if (!uct_varuna_return_is_port(md, owner, nic)) {
            continue;
        }

        found = uct_varuna_return_find(nics, num_nics, &md->nics[nic]);
        if ((found == NULL) || (next == UCT_VARUNA_MAX_LINKS)) {
            status = (found == NULL) ? UCS_ERR_NO_DEVICE : UCS_ERR_EXCEEDS_LIMIT;
            goto err;
        }

        md->nics[next]                 = *found;
        md->nics[next].port            = uct_varuna_md_port(md, nic);
        md->nics[next].has_returned    = 1;
        md->nics[next].is_link         = 1;
        md->nics[next].order_is_logged = md->nics[nic].order_is_logged;
        status = uct_varuna_md_cmds_create(md, next++);
        if (status != UCS_OK) {
            goto err;
        }
    }

    return UCS_OK;

err:
    while (next-- > first) {
        uct_varuna_md_cmds_discard(md, next);
    }
    return status;
}

/* Lock of the memory domain. The new number owes the region; until it is registered, the spare
 * is used. */
static void uct_varuna_return_owe(uct_varuna_md_t *md, uct_varuna_mem_t *mem)
{
    unsigned nic, owner;

    for (nic = mem->num_nics; nic < md->num_nics; ++nic) {
        owner = uct_varuna_md_inner_owner(md, nic);
        if (owner < nic) {
            __atomic_store_n(&mem->inner[nic], mem->inner[owner], __ATOMIC_RELEASE);
        } else if (uct_varuna_md_is_spare(md, mem, nic)) {
            __atomic_store_n(&mem->inner[nic], md->nics[nic].spare, __ATOMIC_RELEASE);
            mem->owed |= (mem->device != UCT_VARUNA_DEVICE_HOST) ? 0 : UCS_BIT(nic);
        }
    }

    mem->num_nics = md->num_nics;
}

/* The new numbers take the places of the former ones: in keys that are packed from now on, and
 * as links of interfaces that are opened from now on. Lock of the memory domain. */
static void uct_varuna_return_publish(uct_varuna_md_t *md, unsigned owner, uct_mem_h spare)
{
    unsigned first = md->num_nics;
    unsigned next  = first;
    unsigned nic, link;
    uct_varuna_mem_t *mem;

    for (nic = owner; nic < first; ++nic) {
        if (!uct_varuna_return_is_port(md, owner, nic)) {
            continue;
        }

        md->nics[next].spare  = spare;
        md->nics[nic].is_link = 0;
        md->nics[nic].next    = next;
        for (link = 0; link < md->num_links; ++link) {
            if (md->links[link] == nic) {
                md->links[link] = next;
            }
        }
        ++next;
    }

    __atomic_store_n(&md->num_nics, next, __ATOMIC_RELEASE);
    ucs_list_for_each(mem, &md->mems, list) {
        uct_varuna_return_owe(md, mem);
    }
}

/* @return The page that spares register, NULL if the memory domain is closed. */
static void *uct_varuna_return_page(uct_varuna_return_t *ret)
{
    void *page = NULL;

    pthread_mutex_lock(&ret->lock);
    if (ret->md != NULL) {
        pthread_mutex_lock(&ret->md->lock);
        page = uct_varuna_md_spare_page(ret->md);
        pthread_mutex_unlock(&ret->md->lock);
    }
    pthread_mutex_unlock(&ret->lock);
    return page;
}

/* @return UCS_ERR_CANCELED if the memory domain is closed. */
static ucs_status_t uct_varuna_return_take(uct_varuna_return_t *ret, uct_varuna_nic_t *nics,
                                           unsigned num_nics, uct_mem_h spare)
{
    ucs_status_t status = UCS_ERR_CANCELED;
    unsigned i;

    pthread_mutex_lock(&ret->lock);
    if (ret->md != NULL) {
        pthread_mutex_lock(&ret->md->lock);
        status = uct_varuna_return_prepare(ret->md, ret->owner, nics, num_nics);
        if (status == UCS_OK) {
            ret->nic   = ret->md->num_nics;
            ret->inner = ret->md->nics[ret->nic].md;
            uct_varuna_return_publish(ret->md, ret->owner, spare);
        }
        pthread_mutex_unlock(&ret->md->lock);
    }
    pthread_mutex_unlock(&ret->lock);

    for (i = 0; (i < num_nics) && (status == UCS_OK); ++i) {
        nics[i].is_link = 1; /* It is not closed */
    }
    return status;
}

static ucs_status_t uct_varuna_return_open(uct_varuna_return_t *ret)
{
    uct_varuna_nic_t *nics = NULL;
    unsigned num_nics      = 0;
    uct_mem_h spare        = NULL;
    ucs_status_t status;
    void *page;

    status = uct_varuna_nics_open_device(ret->ib, ret->set, ret->md_name, &nics, &num_nics);
    if (status != UCS_OK) {
        return status;
    }

    page   = uct_varuna_return_page(ret);
    status = ((num_nics == 0) || (page == NULL)) ? UCS_ERR_NO_DEVICE :
             uct_md_mem_reg(nics[0].md, page, ucs_get_page_size(),
                            UCT_MD_MEM_ACCESS_ALL | UCT_MD_MEM_FLAG_HIDE_ERRORS, &spare);
    if (status == UCS_OK) {
        status = uct_varuna_return_take(ret, nics, num_nics, spare);
        if (status != UCS_OK) {
            (void)uct_md_mem_dereg(nics[0].md, spare);
        }
    }

    uct_varuna_nics_close_unused(nics, num_nics);
    ucs_free(nics);
    return status;
}


/* --- Registering --- */

/* Locks of the return and of the memory domain. @return The next region that is owed. */
static uct_varuna_mem_t *uct_varuna_return_next_mem(const uct_varuna_return_t *ret)
{
    uct_varuna_mem_t *mem;

    if (uct_varuna_md_is_nic_dead(ret->md, ret->nic)) {
        return NULL; /* Again */
    }

    /* Those that were done are at the end */
    ucs_list_for_each(mem, &ret->md->mems, list) {
        if (mem->owed & UCS_BIT(ret->nic)) {
            return mem;
        }
    }

    return NULL;
}

/* @return Whether there is a region. It is ret->mem while nobody deregisters it. */
static int uct_varuna_return_pick(uct_varuna_return_t *ret, uct_varuna_mem_t *mem_p)
{
    int is_found = 0;

    pthread_mutex_lock(&ret->lock);
    if (ret->md != NULL) {
        pthread_mutex_lock(&ret->md->lock);
        ret->mem = uct_varuna_return_next_mem(ret);
        if (ret->mem != NULL) {
            ret->mem->owed &= ~UCS_BIT(ret->nic);
            ucs_list_del(&ret->mem->list);
            ucs_list_add_tail(&ret->md->mems, &ret->mem->list);
            *mem_p   = *ret->mem;
            is_found = 1;
        }
        pthread_mutex_unlock(&ret->md->lock);
    }
    pthread_mutex_unlock(&ret->lock);
    return is_found;
}

/* Lock of the return. All ports of the device share the registration and its key. */
static void uct_varuna_return_give(uct_varuna_return_t *ret, uct_mem_h inner, uint64_t key)
{
    uct_varuna_md_t *md = ret->md;
    unsigned nic;

    pthread_mutex_lock(&md->lock);
    for (nic = ret->nic; nic < md->num_nics; ++nic) {
        if (md->nics[nic].md == ret->inner) {
            uct_varuna_mem_add_key(ret->mem, nic, key);
            __atomic_store_n(&ret->mem->inner[nic], inner, __ATOMIC_RELEASE);
        }
    }
    pthread_mutex_unlock(&md->lock);
}

/* Register a region, and pack a key for peers that have keys without this NIC */
static ucs_status_t uct_varuna_return_reg(const uct_varuna_return_t *ret,
                                          const uct_varuna_mem_t *mem, uct_mem_h *inner_p,
                                          uint64_t *key_p)
{
    static const uct_md_mkey_pack_params_t params = {.field_mask = 0};
    ucs_status_t status;

    status = uct_md_mem_reg(ret->inner, mem->address, mem->length,
                            mem->flags | UCT_MD_MEM_FLAG_HIDE_ERRORS, inner_p);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_varuna_compat_mkey_pack(ret->inner, *inner_p, mem->address, mem->length,
                                         &params, key_p);
    if (status != UCS_OK) {
        (void)uct_md_mem_dereg(ret->inner, *inner_p);
    }

    return status;
}

static void uct_varuna_return_register(uct_varuna_return_t *ret)
{
    uct_mem_h inner = NULL;
    uint64_t key    = 0;
    uct_varuna_mem_t mem;
    ucs_status_t status;
    int is_left;

    if (!uct_varuna_return_pick(ret, &mem)) {
        return;
    }

    status = uct_varuna_return_reg(ret, &mem, &inner, &key);
    pthread_mutex_lock(&ret->lock);
    is_left = (ret->md == NULL) || (ret->mem == NULL);
    if (!is_left && (status == UCS_OK)) {
        uct_varuna_return_give(ret, inner, key);
    } else if (!is_left && !uct_varuna_md_is_nic_dead(ret->md, ret->nic)) {
        uct_varuna_md_note_answer(ret->md, ret->nic, UCT_VARUNA_SHORT_MR, status,
                                  ucs_get_time());
    }
    ret->mem = NULL;
    pthread_mutex_unlock(&ret->lock);

    if (is_left && (status == UCS_OK)) {
        (void)uct_md_mem_dereg(ret->inner, inner);
    }
}

/* Nothing is owed: it can be used. Lock of the return. */
static void uct_varuna_return_ready(uct_varuna_return_t *ret)
{
    uct_varuna_md_t *md = ret->md;
    unsigned nic;

    for (nic = ret->owner; nic < ret->nic; ++nic) {
        if ((md->nics[nic].md == md->nics[ret->owner].md) && (md->nics[nic].next != 0)) {
            __atomic_store_n(&md->nics[nic].next_is_ready, 1, __ATOMIC_RELEASE);
        }
    }
}

unsigned uct_varuna_return_nic(const uct_varuna_md_t *md, unsigned nic)
{
    return __atomic_load_n(&md->nics[nic].next_is_ready, __ATOMIC_ACQUIRE) ?
           md->nics[nic].next : UCT_VARUNA_MAX_LINKS;
}

unsigned uct_varuna_return_latest(const uct_varuna_md_t *md, unsigned nic)
{
    unsigned next;

    while ((next = uct_varuna_return_nic(md, nic)) != UCT_VARUNA_MAX_LINKS) {
        nic = next;
    }

    return nic;
}


/* --- Commands --- */

static void uct_varuna_return_free(uct_varuna_return_t *ret)
{
    pthread_mutex_destroy(&ret->lock);
    ucs_free(ret);
}

/* The open one has its own thread. Lock of the return. */
static uct_varuna_cmds_t *uct_varuna_return_cmds(const uct_varuna_return_t *ret)
{
    return ret->md->cmds[(ret->nic != 0) ? ret->nic : ret->owner];
}

static ucs_status_t uct_varuna_return_run(uct_varuna_cmd_t *cmd)
{
    uct_varuna_return_t *ret = ucs_derived_of(cmd, uct_varuna_return_t);

    if (ret->nic != 0) {
        uct_varuna_return_register(ret);
        return UCS_OK;
    }

    return uct_varuna_return_open(ret);
}

/* Lock of the return. @return Whether there is another region. */
static int uct_varuna_return_has_more(uct_varuna_return_t *ret)
{
    int has_more;

    if (ret->nic == 0) {
        return 0;
    }

    pthread_mutex_lock(&ret->md->lock);
    has_more = (uct_varuna_return_next_mem(ret) != NULL);
    pthread_mutex_unlock(&ret->md->lock);
    return has_more;
}

/* A command is over: give the next one. Without a sink its thread calls this. */
static void uct_varuna_return_done(uct_varuna_cmd_t *cmd, ucs_status_t status)
{
    uct_varuna_return_t *ret = ucs_derived_of(cmd, uct_varuna_return_t);
    uct_varuna_cmds_t *cmds  = NULL;
    int is_left;

    (void)status; /* It says nothing */
    pthread_mutex_lock(&ret->lock);
    is_left = (ret->md == NULL);
    if (!is_left) {
        if ((ret->nic != 0) && !uct_varuna_return_has_more(ret)) {
            uct_varuna_return_ready(ret);
        }

        ret->is_running = uct_varuna_return_has_more(ret);
        cmds            = ret->is_running ? uct_varuna_return_cmds(ret) : NULL;
    }
    pthread_mutex_unlock(&ret->lock);

    if (is_left) {
        uct_varuna_return_free(ret);
    } else if (cmds != NULL) {
        /* They are there: this thread is waited for first when the memory domain is closed */
        uct_varuna_cmds_submit(cmds, &ret->super);
    }
}

/* The memory domain is not closed meanwhile. Without the lock, as it may run here. */
static void uct_varuna_return_submit(uct_varuna_return_t *ret)
{
    uct_varuna_cmds_submit(uct_varuna_return_cmds(ret), &ret->super);
}

/* @return Why the NIC cannot be used again by this process, NULL: it can. */
static const char *uct_varuna_return_obstacle(uct_varuna_md_t *md, unsigned owner)
{
    const char *reason = NULL;

    pthread_mutex_lock(&md->lock);
    if (uct_varuna_atomic_modes[md->atomic_mode].by_home) {
        reason = "atomics of mode extended need the registrations that it had";
    } else if ((md->num_nics + uct_varuna_return_num_ports(md, owner)) >
               UCT_VARUNA_MAX_LINKS) {
        reason = "there is no number left for it";
    } else if (md->cmds[owner] == NULL) {
        reason = "it has no thread";
    }
    pthread_mutex_unlock(&md->lock);
    return reason;
}

static uct_varuna_return_t *uct_varuna_return_create(uct_varuna_md_t *md, unsigned owner)
{
    uct_varuna_return_t *other = NULL;
    uct_varuna_return_t *ret;

    ret = ucs_calloc(1, sizeof(*ret), "varuna_return");
    if (ret == NULL) {
        return NULL; /* It is tried again */
    }

    pthread_mutex_init(&ret->lock, NULL);
    ret->super.run  = uct_varuna_return_run;
    ret->super.done = uct_varuna_return_done;
    ret->ib         = md->ib;
    ret->set        = md->nics[owner].set;
    ret->owner      = owner;
    ret->md         = md;
    ucs_strncpy_zero(ret->md_name, md->nics[owner].md_name, sizeof(ret->md_name));
    if (!__atomic_compare_exchange_n(&md->returns[owner], &other, ret, 0, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE)) {
        uct_varuna_return_free(ret);
        return other;
    }

    return ret;
}

void uct_varuna_return_begin(uct_varuna_md_t *md, unsigned owner, ucs_time_t now)
{
    uct_varuna_return_t *ret = __atomic_load_n(&md->returns[owner], __ATOMIC_ACQUIRE);
    const char *obstacle     = (ret == NULL) ? uct_varuna_return_obstacle(md, owner) : NULL;
    int is_due;

    if (obstacle != NULL) {
        if (!__atomic_exchange_n(&md->nics[owner].is_told, 1, __ATOMIC_RELAXED)) {
            ucs_warn("rc_varuna: %s works again: programs that start now use it, this one "
                     "does not, as %s", md->nics[owner].dev_name, obstacle);
        }
        return;
    }

    ret = (ret == NULL) ? uct_varuna_return_create(md, owner) : ret;
    if (ret == NULL) {
        return;
    }

    pthread_mutex_lock(&ret->lock);
    is_due = (ret->nic == 0) && !ret->is_running &&
             uct_varuna_backoff_is_due(&ret->backoff, now);
    if (is_due) {
        (void)uct_varuna_backoff_failed(&ret->backoff, UCS_ERR_NO_DEVICE, now);
        ret->is_running = 1;
    }
    pthread_mutex_unlock(&ret->lock);
    if (is_due) {
        uct_varuna_return_submit(ret);
    }
}

void uct_varuna_returns_stop(uct_varuna_md_t *md)
{
    uct_varuna_return_t *ret;
    int is_running;
    unsigned nic;

    for (nic = 0; nic < UCT_VARUNA_MAX_LINKS; ++nic) {
        ret              = md->returns[nic];
        md->returns[nic] = NULL;
        if (ret == NULL) {
            continue;
        }

        pthread_mutex_lock(&ret->lock);
        ret->md    = NULL;
        is_running = ret->is_running;
        pthread_mutex_unlock(&ret->lock);
        if (!is_running) {
            uct_varuna_return_free(ret);
        }
    }
}


/* --- What exists --- */

/* Look at all that may be registering regions */
#define uct_varuna_return_for_each(_md, _nic, _ret) \
    for ((_nic) = 0; (_nic) < UCT_VARUNA_MAX_LINKS; ++(_nic)) \
        if (((_ret) = __atomic_load_n(&(_md)->returns[_nic], __ATOMIC_ACQUIRE)) != NULL)

void uct_varuna_return_add_mem(uct_varuna_md_t *md, uct_varuna_mem_t *mem)
{
    uct_varuna_return_t *ret;
    unsigned nic;
    uint8_t owed;
    int is_idle;

    pthread_mutex_lock(&md->lock);
    uct_varuna_return_owe(md, mem);
    ucs_list_add_head(&md->mems, &mem->list);
    owed = mem->owed;
    pthread_mutex_unlock(&md->lock);

    if (owed == 0) {
        return;
    }

    uct_varuna_return_for_each(md, nic, ret) {
        pthread_mutex_lock(&ret->lock);
        is_idle = (ret->nic != 0) && !ret->is_running;
        if (is_idle) {
            ret->is_running = 1;
        }
        pthread_mutex_unlock(&ret->lock);
        if (is_idle) {
            uct_varuna_return_submit(ret);
        }
    }
}

void uct_varuna_return_remove_mem(uct_varuna_md_t *md, uct_varuna_mem_t *mem)
{
    uct_varuna_return_t *ret;
    unsigned nic;

    pthread_mutex_lock(&md->lock);
    ucs_list_del(&mem->list);
    pthread_mutex_unlock(&md->lock);

    uct_varuna_return_for_each(md, nic, ret) {
        pthread_mutex_lock(&ret->lock);
        if (ret->mem == mem) {
            ret->mem = NULL;
        }
        pthread_mutex_unlock(&ret->lock);
    }
}
