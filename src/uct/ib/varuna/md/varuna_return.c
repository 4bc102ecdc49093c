/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The lives of NICs. See varuna_health.h.
 *
 * Locks: that of a return is taken before that of the memory domain. While a device is opened or
 * closed, or a region is registered, neither is held, since a NIC may hang: the memory domain may
 * be closed, and the region deregistered, meanwhile. Then the thread that comes back takes back
 * what it has made.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/varuna/core/varuna_amo_mode.h>
#include "varuna_health.h"
#include <uct/ib/varuna/ucx/varuna_compat.h>
#include <uct/ib/varuna/ucx/varuna_tl.h>

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/math.h>
#include <ucs/sys/string.h>
#include <ucs/sys/sys.h>

struct uct_varuna_return {
    uct_varuna_cmd_t           super;
    uct_component_h            ib;
    const uct_varuna_set_t     *set;
    char                       md_name[UCT_MD_NAME_MAX];
    unsigned                   owner;      /* The first port */
    pthread_mutex_t            lock;       /* Protects what follows */
    uct_varuna_md_t            *md;        /* NULL: it was closed */
    uct_varuna_mem_t           *mem;       /* Being registered; NULL: nothing is, or it was
                                              deregistered meanwhile */
    uct_varuna_backoff_t       backoff;    /* Of opening it */
    int                        is_running; /* A command is on its way */
};

/* What the NIC's thread does next, without locks */
typedef struct uct_varuna_return_step {
    enum {
        UCT_VARUNA_RETURN_NOTHING,
        UCT_VARUNA_RETURN_DEREG,           /* mem, of inner */
        UCT_VARUNA_RETURN_CLOSE,           /* inner, with its spare */
        UCT_VARUNA_RETURN_OPEN,
        UCT_VARUNA_RETURN_REG              /* region */
    } what;
    uct_md_h                   inner;
    uct_mem_h                  mem;
    uct_varuna_mem_t           region;     /* A copy */
} uct_varuna_return_step_t;


static void uct_varuna_life_set(uct_varuna_md_t *md, unsigned owner, uct_varuna_life_t state)
{
    __atomic_store_n(&md->nics[owner].life.state, state, __ATOMIC_RELEASE);
}

/* Lock of the memory domain */
static int uct_varuna_life_is_over(const uct_varuna_md_t *md, unsigned owner)
{
    return (md->nics[owner].life.state == UCT_VARUNA_LIFE_ENDING) ||
           (md->nics[owner].life.state == UCT_VARUNA_LIFE_CLOSED);
}

/* Loop over the ports of a device */
#define uct_varuna_return_for_each_port(_md, _owner, _nic) \
    for ((_nic) = (_owner); (_nic) < (_md)->num_nics; ++(_nic)) \
        if (((_md)->nics[_nic].owner == (_owner)) && (_md)->nics[_nic].is_link)


/* --- Ending --- */

/* All of these: lock of the memory domain. */

static void uct_varuna_return_forget_mem(uct_varuna_md_t *md, unsigned owner,
                                         uct_varuna_mem_t *mem)
{
    unsigned nic;

    mem->owed &= ~UCS_BIT(owner);
    uct_varuna_return_for_each_port(md, owner, nic) {
        __atomic_store_n(&mem->inner[nic], NULL, __ATOMIC_RELEASE);
        mem->packed &= ~UCS_BIT(nic);
    }
}

/* @return A region that is registered there; NULL: none. Those that were done are at the end */
static uct_varuna_mem_t *uct_varuna_return_registered(uct_varuna_md_t *md, unsigned owner)
{
    uct_varuna_mem_t *mem;

    ucs_list_for_each(mem, &md->mems, list) {
        if (!uct_varuna_md_is_spare(md, mem, owner)) {
            return mem;
        }
    }

    return NULL;
}

static void uct_varuna_return_step_close(uct_varuna_md_t *md, unsigned owner,
                                         uct_varuna_return_step_t *step)
{
    uct_varuna_mem_t *mem;
    unsigned nic;

    step->what  = UCT_VARUNA_RETURN_CLOSE;
    step->inner = md->nics[owner].md;
    step->mem   = md->nics[owner].spare;
    ucs_list_for_each(mem, &md->mems, list) {
        uct_varuna_return_forget_mem(md, owner, mem);
    }
    uct_varuna_return_for_each_port(md, owner, nic) {
        md->nics[nic].spare = NULL;
        __atomic_store_n(&md->nics[nic].md, NULL, __ATOMIC_RELEASE);
    }
}

/* Not before nothing uses the life: until then, a thread that has not heard of its end may post with
 * these registrations, and peers may write to them. All links of it are closed after that. */
static void uct_varuna_return_step_end(uct_varuna_md_t *md, unsigned owner,
                                       uct_varuna_return_step_t *step)
{
    uct_varuna_mem_t *mem;

    if (md->nics[owner].life.users > 0) {
        return;
    }

    if ((mem = uct_varuna_return_registered(md, owner)) == NULL) {
        uct_varuna_return_step_close(md, owner, step);
        return;
    }

    step->what  = UCT_VARUNA_RETURN_DEREG;
    step->inner = md->nics[owner].md;
    step->mem   = mem->inner[owner];
    uct_varuna_return_forget_mem(md, owner, mem);
    ucs_list_del(&mem->list);
    ucs_list_add_tail(&md->mems, &mem->list);
}

/* Nothing begins on it any more */
static void uct_varuna_life_end(uct_varuna_md_t *md, unsigned owner)
{
    uct_varuna_life_set(md, owner, UCT_VARUNA_LIFE_ENDING);
    uct_varuna_md_end_now(md, owner);
}


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

/* Lock of the memory domain. The device owes the region; until it is registered, the spare is
 * used. */
static void uct_varuna_return_owe(uct_varuna_md_t *md, unsigned owner, uct_varuna_mem_t *mem)
{
    unsigned nic;

    uct_varuna_return_for_each_port(md, owner, nic) {
        __atomic_store_n(&mem->inner[nic], md->nics[owner].spare, __ATOMIC_RELEASE);
    }
    mem->owed |= (mem->device != UCT_VARUNA_DEVICE_HOST) ? 0 : UCS_BIT(owner);
}

static void uct_varuna_return_renew_port(uct_varuna_nic_t *nic, const uct_varuna_nic_t *found,
                                         uct_mem_h spare)
{
    nic->md_attr   = found->md_attr;
    nic->was_down  = found->was_down;
    nic->spare     = spare;
    nic->is_barred = 0;
    nic->is_told   = 0;
    memset(&nic->no_lanes, 0, sizeof(nic->no_lanes));
    memset(nic->shortages, 0, sizeof(nic->shortages));
    ++nic->generation;
    __atomic_store_n(&nic->md, found->md, __ATOMIC_RELEASE);
}

/* Lock of the memory domain */
static ucs_status_t uct_varuna_return_publish(uct_varuna_md_t *md, unsigned owner,
                                              const uct_varuna_nic_t *nics, unsigned num_nics,
                                              uct_mem_h spare)
{
    uct_varuna_mem_t *mem;
    unsigned nic;

    uct_varuna_return_for_each_port(md, owner, nic) {
        if (uct_varuna_return_find(nics, num_nics, &md->nics[nic]) == NULL) {
            return UCS_ERR_NO_DEVICE;
        }
    }

    uct_varuna_return_for_each_port(md, owner, nic) {
        uct_varuna_return_renew_port(&md->nics[nic],
                                     uct_varuna_return_find(nics, num_nics, &md->nics[nic]),
                                     spare);
    }

    ucs_list_for_each(mem, &md->mems, list) {
        uct_varuna_return_owe(md, owner, mem);
    }

    uct_varuna_md_end_renew(md, owner);
    uct_varuna_life_set(md, owner, UCT_VARUNA_LIFE_BEGINNING);
    return UCS_OK;
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

/* @return UCS_ERR_CANCELED if the memory domain is closed, or the NIC was removed meanwhile. */
static ucs_status_t uct_varuna_return_take(uct_varuna_return_t *ret, uct_varuna_nic_t *nics,
                                           unsigned num_nics, uct_mem_h spare)
{
    ucs_status_t status = UCS_ERR_CANCELED;
    unsigned i;

    pthread_mutex_lock(&ret->lock);
    if (ret->md != NULL) {
        pthread_mutex_lock(&ret->md->lock);
        if (!ret->md->nics[ret->owner].life.is_removed) {
            status = uct_varuna_return_publish(ret->md, ret->owner, nics, num_nics, spare);
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

/* Lock of the memory domain. @return The next region that is owed; NULL: none, or the device is
 * dead again. Those that were done are at the end */
static uct_varuna_mem_t *uct_varuna_return_owed(uct_varuna_md_t *md, unsigned owner)
{
    uct_varuna_mem_t *mem;

    if (uct_varuna_md_is_nic_dead(md, owner)) {
        return NULL;
    }

    ucs_list_for_each(mem, &md->mems, list) {
        if (mem->owed & UCS_BIT(owner)) {
            return mem;
        }
    }

    return NULL;
}

/* Locks of the return and of the memory domain */
static void uct_varuna_return_step_register(uct_varuna_return_t *ret,
                                            uct_varuna_return_step_t *step)
{
    uct_varuna_md_t *md   = ret->md;
    uct_varuna_mem_t *mem = uct_varuna_return_owed(md, ret->owner);

    if (mem != NULL) {
        mem->owed &= ~UCS_BIT(ret->owner);
        ucs_list_del(&mem->list);
        ucs_list_add_tail(&md->mems, &mem->list);
        ret->mem     = mem;
        step->what   = UCT_VARUNA_RETURN_REG;
        step->inner  = md->nics[ret->owner].md;
        step->region = *mem;
    } else if (md->nics[ret->owner].life.state == UCT_VARUNA_LIFE_BEGINNING) {
        uct_varuna_life_set(md, ret->owner, UCT_VARUNA_LIFE_OPEN);
    }
}

/* Register a region, and pack a key for peers that have keys without this life */
static ucs_status_t uct_varuna_return_reg(const uct_varuna_return_step_t *step,
                                          uct_mem_h *inner_p, uint64_t *key_p)
{
    uct_md_mkey_pack_params_t params = {.field_mask = UCT_MD_MKEY_PACK_FIELD_FLAGS};
    const uct_varuna_mem_t *mem      = &step->region;
    ucs_status_t status;

    status = uct_md_mem_reg(step->inner, mem->address, mem->length,
                            mem->flags | UCT_MD_MEM_FLAG_HIDE_ERRORS, inner_p);
    if (status != UCS_OK) {
        return status;
    }

    params.flags = mem->pack_flags;
    status       = uct_varuna_compat_mkey_pack(step->inner, *inner_p, mem->address, mem->length,
                                               &params, key_p);
    if (status != UCS_OK) {
        (void)uct_md_mem_dereg(step->inner, *inner_p);
    }

    return status;
}

/* Lock of the return. All ports of the device share the registration and its key. @return Whether
 * it is used. */
static int uct_varuna_return_give(uct_varuna_return_t *ret, uct_mem_h inner, uint64_t key)
{
    uct_varuna_md_t *md = ret->md;
    unsigned nic;
    int is_used;

    pthread_mutex_lock(&md->lock);
    is_used = !uct_varuna_life_is_over(md, ret->owner);
    if (is_used) {
        uct_varuna_return_for_each_port(md, ret->owner, nic) {
            uct_varuna_mem_add_key(ret->mem, nic, key);
            __atomic_store_n(&ret->mem->inner[nic], inner, __ATOMIC_RELEASE);
        }
    }
    pthread_mutex_unlock(&md->lock);
    return is_used;
}

static void uct_varuna_return_register(uct_varuna_return_t *ret,
                                       const uct_varuna_return_step_t *step)
{
    uct_mem_h inner = NULL;
    uint64_t key    = 0;
    int is_used     = 0;
    ucs_status_t status;

    status = uct_varuna_return_reg(step, &inner, &key);
    pthread_mutex_lock(&ret->lock);
    if ((ret->md != NULL) && (ret->mem != NULL)) {
        if (status == UCS_OK) {
            is_used = uct_varuna_return_give(ret, inner, key);
        } else if (!uct_varuna_md_is_nic_dead(ret->md, ret->owner)) {
            uct_varuna_md_note_answer(ret->md, ret->owner, UCT_VARUNA_SHORT_MR, status,
                                      ucs_get_time());
        }
    }
    ret->mem = NULL;
    pthread_mutex_unlock(&ret->lock);

    if (!is_used && (status == UCS_OK)) {
        (void)uct_md_mem_dereg(step->inner, inner);
    }
}


/* --- Commands --- */

static void uct_varuna_return_free(uct_varuna_return_t *ret)
{
    pthread_mutex_destroy(&ret->lock);
    ucs_free(ret);
}

/* Locks of the return and of the memory domain. @return Whether there is something to do for the
 * NIC's thread now. */
static int uct_varuna_return_has_work(const uct_varuna_return_t *ret)
{
    const uct_varuna_nic_life_t *life = &ret->md->nics[ret->owner].life;

    switch (life->state) {
    case UCT_VARUNA_LIFE_ENDING:
        return life->users == 0;
    case UCT_VARUNA_LIFE_CLOSED:
        return !life->is_removed && uct_varuna_backoff_is_due(&ret->backoff, ucs_get_time());
    case UCT_VARUNA_LIFE_BEGINNING:
        return 1;
    default:
        return uct_varuna_return_owed(ret->md, ret->owner) != NULL;
    }
}

/* Locks of the return and of the memory domain */
static void uct_varuna_return_step_choose(uct_varuna_return_t *ret,
                                          uct_varuna_return_step_t *step)
{
    switch (ret->md->nics[ret->owner].life.state) {
    case UCT_VARUNA_LIFE_ENDING:
        uct_varuna_return_step_end(ret->md, ret->owner, step);
        break;
    case UCT_VARUNA_LIFE_CLOSED:
        if (uct_varuna_return_has_work(ret)) {
            step->what = UCT_VARUNA_RETURN_OPEN;
        }
        break;
    default:
        uct_varuna_return_step_register(ret, step);
        break;
    }
}

/* The device is closed, or could not be opened */
static void uct_varuna_return_closed(uct_varuna_return_t *ret, ucs_status_t status)
{
    pthread_mutex_lock(&ret->lock);
    if (status != UCS_OK) {
        (void)uct_varuna_backoff_failed(&ret->backoff, status, ucs_get_time());
    } else if (ret->md != NULL) {
        pthread_mutex_lock(&ret->md->lock);
        uct_varuna_life_set(ret->md, ret->owner, UCT_VARUNA_LIFE_CLOSED);
        pthread_mutex_unlock(&ret->md->lock);
    }
    pthread_mutex_unlock(&ret->lock);
}

static void uct_varuna_return_do_open(uct_varuna_return_t *ret)
{
    ucs_status_t status = uct_varuna_return_open(ret);

    if (status == UCS_OK) {
        pthread_mutex_lock(&ret->lock);
        (void)uct_varuna_backoff_succeeded(&ret->backoff);
        pthread_mutex_unlock(&ret->lock);
    } else {
        uct_varuna_return_closed(ret, status);
    }
}

static ucs_status_t uct_varuna_return_run(uct_varuna_cmd_t *cmd)
{
    uct_varuna_return_t *ret      = ucs_derived_of(cmd, uct_varuna_return_t);
    uct_varuna_return_step_t step = {.what = UCT_VARUNA_RETURN_NOTHING};

    pthread_mutex_lock(&ret->lock);
    if (ret->md != NULL) {
        pthread_mutex_lock(&ret->md->lock);
        uct_varuna_return_step_choose(ret, &step);
        pthread_mutex_unlock(&ret->md->lock);
    }
    pthread_mutex_unlock(&ret->lock);

    switch (step.what) {
    case UCT_VARUNA_RETURN_DEREG:
        (void)uct_md_mem_dereg(step.inner, step.mem);
        break;
    case UCT_VARUNA_RETURN_CLOSE:
        if (step.mem != NULL) {
            (void)uct_md_mem_dereg(step.inner, step.mem);
        }
        uct_varuna_tl_note_dead(step.inner, 0);
        uct_md_close(step.inner);
        uct_varuna_return_closed(ret, UCS_OK);
        break;
    case UCT_VARUNA_RETURN_OPEN:
        uct_varuna_return_do_open(ret);
        break;
    case UCT_VARUNA_RETURN_REG:
        uct_varuna_return_register(ret, &step);
        break;
    case UCT_VARUNA_RETURN_NOTHING:
        break;
    }

    return UCS_OK;
}

/* Lock of the return. @return The NIC's thread, if it is to do something; it is told of that. */
static uct_varuna_cmds_t *uct_varuna_return_next(uct_varuna_return_t *ret)
{
    pthread_mutex_lock(&ret->md->lock);
    ret->is_running = uct_varuna_return_has_work(ret);
    pthread_mutex_unlock(&ret->md->lock);
    return ret->is_running ? ret->md->cmds[ret->owner] : NULL;
}

/* A command is over: give the next one. Without a sink its thread calls this. */
static void uct_varuna_return_done(uct_varuna_cmd_t *cmd, ucs_status_t status)
{
    uct_varuna_return_t *ret = ucs_derived_of(cmd, uct_varuna_return_t);
    uct_varuna_cmds_t *cmds;
    int is_left;

    (void)status; /* It says nothing */
    pthread_mutex_lock(&ret->lock);
    is_left = (ret->md == NULL);
    cmds    = is_left ? NULL : uct_varuna_return_next(ret);
    pthread_mutex_unlock(&ret->lock);

    if (is_left) {
        uct_varuna_return_free(ret);
    } else if (cmds != NULL) {
        /* They are there: this thread is waited for first when the memory domain is closed */
        uct_varuna_cmds_submit(cmds, &ret->super);
    }
}

/* There may be something to do. The memory domain is not closed meanwhile. */
static void uct_varuna_return_kick(uct_varuna_md_t *md, unsigned owner)
{
    uct_varuna_return_t *ret = __atomic_load_n(&md->returns[owner], __ATOMIC_ACQUIRE);
    uct_varuna_cmds_t *cmds;

    if (ret == NULL) {
        return;
    }

    pthread_mutex_lock(&ret->lock);
    cmds = ret->is_running ? NULL : uct_varuna_return_next(ret);
    pthread_mutex_unlock(&ret->lock);
    if (cmds != NULL) {
        uct_varuna_cmds_submit(cmds, &ret->super); /* Without the lock: it may run here */
    }
}

/* @return Why the NIC cannot be used again by this process, NULL: it can. */
static const char *uct_varuna_return_obstacle(const uct_varuna_md_t *md, unsigned owner)
{
    if (uct_varuna_atomic_modes[md->atomic_mode].by_home) {
        return "atomics of mode extended need the registrations that it had";
    } else if (md->nics[owner].generation == UINT16_MAX) {
        return "it was opened too often";
    } else if (md->cmds[owner] == NULL) {
        return "it has no thread";
    }

    return NULL;
}

static int uct_varuna_return_create(uct_varuna_md_t *md, unsigned owner)
{
    uct_varuna_return_t *other = NULL;
    uct_varuna_return_t *ret;

    if (__atomic_load_n(&md->returns[owner], __ATOMIC_ACQUIRE) != NULL) {
        return 1;
    }

    ret = ucs_calloc(1, sizeof(*ret), "varuna_return");
    if (ret == NULL) {
        return 0; /* It is tried again */
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
    }

    return 1;
}

void uct_varuna_return_begin(uct_varuna_md_t *md, unsigned owner)
{
    const char *obstacle = uct_varuna_return_obstacle(md, owner);

    if (obstacle != NULL) {
        if (!__atomic_exchange_n(&md->nics[owner].is_told, 1, __ATOMIC_RELAXED)) {
            ucs_warn("rc_varuna: %s works again: programs that start now use it, this one "
                     "does not, as %s", md->nics[owner].dev_name, obstacle);
        }
        return;
    }

    if (!uct_varuna_return_create(md, owner)) {
        return;
    }

    /* Another thread may have begun, and opened it again, meanwhile */
    pthread_mutex_lock(&md->lock);
    if ((md->nics[owner].life.state < UCT_VARUNA_LIFE_ENDING) &&
        uct_varuna_md_is_nic_dead(md, owner)) {
        uct_varuna_life_end(md, owner);
    }
    pthread_mutex_unlock(&md->lock);
    uct_varuna_return_kick(md, owner);
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


/* --- Removing --- */

/* Lock of the memory domain. Traffic has left all links of a NIC that is to be removed, or it has
 * none. */
static void uct_varuna_life_check_left(uct_varuna_md_t *md, unsigned owner)
{
    const uct_varuna_nic_life_t *life = &md->nics[owner].life;

    if ((life->state == UCT_VARUNA_LIFE_LEAVING) && (life->num_left >= life->num_links)) {
        uct_varuna_life_end(md, owner);
    }
}

/* Lock of the memory domain */
static void uct_varuna_life_remove(uct_varuna_md_t *md, unsigned owner)
{
    uct_varuna_nic_life_t *life = &md->nics[owner].life;

    life->is_removed = 1;
    if ((life->state == UCT_VARUNA_LIFE_BEGINNING) ||
        __atomic_load_n(&md->nics[owner].is_dead, __ATOMIC_RELAXED)) {
        if (life->state != UCT_VARUNA_LIFE_CLOSED) {
            uct_varuna_life_end(md, owner);
        }
    } else if (life->state == UCT_VARUNA_LIFE_OPEN) {
        ++life->removal;
        life->num_left = 0;
        uct_varuna_life_set(md, owner, UCT_VARUNA_LIFE_LEAVING);
        uct_varuna_life_check_left(md, owner);
    }
}

/* Lock of the memory domain */
static void uct_varuna_life_add(uct_varuna_md_t *md, unsigned owner)
{
    uct_varuna_nic_life_t *life = &md->nics[owner].life;

    life->is_removed = 0;
    if (life->state == UCT_VARUNA_LIFE_LEAVING) {
        uct_varuna_life_set(md, owner, UCT_VARUNA_LIFE_OPEN);
    }
}

int uct_varuna_md_can_remove_nic(const uct_varuna_md_t *md, unsigned nic)
{
    return uct_varuna_return_obstacle(md, md->nics[nic].owner) == NULL;
}

void uct_varuna_md_remove_nic(uct_varuna_md_t *md, unsigned nic, int is_removed)
{
    unsigned owner = md->nics[nic].owner;

    if (is_removed && ((uct_varuna_return_obstacle(md, owner) != NULL) ||
                       !uct_varuna_return_create(md, owner))) {
        return; /* Asked again */
    }

    pthread_mutex_lock(&md->lock);
    if (is_removed && !md->nics[owner].life.is_removed) {
        uct_varuna_life_remove(md, owner);
    } else if (!is_removed && md->nics[owner].life.is_removed) {
        uct_varuna_life_add(md, owner);
    }
    pthread_mutex_unlock(&md->lock);
    uct_varuna_return_kick(md, owner);
}


/* --- Users --- */

int uct_varuna_md_use(uct_varuna_md_t *md, unsigned nic)
{
    unsigned owner = md->nics[nic].owner;
    int may_use;

    pthread_mutex_lock(&md->lock);
    may_use                     = !uct_varuna_life_is_over(md, owner);
    md->nics[owner].life.users += may_use;
    pthread_mutex_unlock(&md->lock);
    return may_use;
}

void uct_varuna_md_unuse(uct_varuna_md_t *md, unsigned nic)
{
    uct_varuna_md_unuse_all(md, UCS_BIT(md->nics[nic].owner));
}

/* Lock of the memory domain. @param [in] is_last  Also those that end: it ends itself. */
static uint8_t uct_varuna_lives_use(uct_varuna_md_t *md, int is_last)
{
    uint8_t used = 0;
    unsigned nic;

    uct_varuna_md_for_each_inner(md, nic) {
        if (is_last || !uct_varuna_life_is_over(md, nic)) {
            ++md->nics[nic].life.users;
            used |= UCS_BIT(nic);
        }
    }

    return used;
}

uint8_t uct_varuna_md_use_all(uct_varuna_md_t *md)
{
    uint8_t used;

    pthread_mutex_lock(&md->lock);
    used = uct_varuna_lives_use(md, 0);
    pthread_mutex_unlock(&md->lock);
    return used;
}

void uct_varuna_md_unuse_all(uct_varuna_md_t *md, uint8_t used)
{
    uint8_t last = 0;
    unsigned nic;

    pthread_mutex_lock(&md->lock);
    ucs_for_each_bit(nic, used) {
        ucs_assert(md->nics[nic].life.users > 0);
        if ((--md->nics[nic].life.users == 0) && uct_varuna_life_is_over(md, nic)) {
            last |= UCS_BIT(nic);
        }
    }
    pthread_mutex_unlock(&md->lock);

    ucs_for_each_bit(nic, last) {
        uct_varuna_return_kick(md, nic);
    }
}

int uct_varuna_md_link_open(uct_varuna_md_t *md, unsigned nic)
{
    uct_varuna_nic_life_t *life = &md->nics[md->nics[nic].owner].life;
    int may_open;

    pthread_mutex_lock(&md->lock);
    may_open = (life->state == UCT_VARUNA_LIFE_OPEN) ||
               (life->state == UCT_VARUNA_LIFE_LEAVING);
    life->users     += may_open;
    life->num_links += may_open;
    pthread_mutex_unlock(&md->lock);
    return may_open;
}

/* Lock of the memory domain. What was said in an earlier removal is over. */
static void uct_varuna_life_set_left(uct_varuna_nic_life_t *life, int is_left, uint32_t *left_p)
{
    int was_left = (*left_p != 0) && (*left_p == life->removal);

    life->num_left += is_left - was_left;
    *left_p         = is_left ? life->removal : 0;
}

void uct_varuna_md_link_set_left(uct_varuna_md_t *md, unsigned nic, int is_left,
                                 uint32_t *left_p)
{
    unsigned owner = md->nics[nic].owner;

    pthread_mutex_lock(&md->lock);
    if (md->nics[owner].life.state == UCT_VARUNA_LIFE_LEAVING) {
        uct_varuna_life_set_left(&md->nics[owner].life, is_left, left_p);
        uct_varuna_life_check_left(md, owner);
    }
    pthread_mutex_unlock(&md->lock);
    uct_varuna_return_kick(md, owner);
}

void uct_varuna_md_link_closed(uct_varuna_md_t *md, unsigned nic, uint32_t left)
{
    unsigned owner              = md->nics[nic].owner;
    uct_varuna_nic_life_t *life = &md->nics[owner].life;

    pthread_mutex_lock(&md->lock);
    --life->num_links;
    uct_varuna_life_set_left(life, 0, &left);
    uct_varuna_life_check_left(md, owner);
    pthread_mutex_unlock(&md->lock);
    uct_varuna_md_unuse(md, nic);
}


/* --- What exists --- */

/* Lock of the memory domain. It was opened while the region was being registered elsewhere. */
static void uct_varuna_return_look_at_mem(uct_varuna_md_t *md, unsigned owner,
                                          uct_varuna_mem_t *mem)
{
    if ((md->nics[owner].generation == 0) || uct_varuna_life_is_over(md, owner)) {
        return;
    }

    uct_varuna_return_owe(md, owner, mem);
}

void uct_varuna_return_add_mem(uct_varuna_md_t *md, uct_varuna_mem_t *mem, uint8_t used)
{
    uint8_t owed;
    unsigned nic;

    pthread_mutex_lock(&md->lock);
    uct_varuna_md_for_each_inner(md, nic) {
        if (!(used & UCS_BIT(nic))) {
            uct_varuna_return_look_at_mem(md, nic, mem);
        }
    }
    ucs_list_add_head(&md->mems, &mem->list);
    owed = mem->owed;
    pthread_mutex_unlock(&md->lock);

    ucs_for_each_bit(nic, owed) {
        uct_varuna_return_kick(md, nic);
    }
}

uint8_t uct_varuna_return_remove_mem(uct_varuna_md_t *md, uct_varuna_mem_t *mem)
{
    uct_varuna_return_t *ret;
    uint8_t used;
    unsigned nic;

    pthread_mutex_lock(&md->lock);
    used = uct_varuna_lives_use(md, 1);
    ucs_list_del(&mem->list);
    pthread_mutex_unlock(&md->lock);

    for (nic = 0; nic < UCT_VARUNA_MAX_LINKS; ++nic) {
        ret = __atomic_load_n(&md->returns[nic], __ATOMIC_ACQUIRE);
        if (ret == NULL) {
            continue;
        }

        pthread_mutex_lock(&ret->lock);
        if (ret->mem == mem) {
            ret->mem = NULL;
        }
        pthread_mutex_unlock(&ret->lock);
    }

    return used;
}
