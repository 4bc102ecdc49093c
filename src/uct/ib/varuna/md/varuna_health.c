/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The health of NICs. See varuna_health.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_health.h"
#include <uct/ib/varuna/ucx/varuna_tl.h>

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/string.h>
#include <ucs/sys/sys.h>
#include <ucs/sys/math.h>
#include <ucs/time/time.h>


/* What is asked of a NIC that may be gone. It may outlive the memory domain, if the NIC's
 * thread hangs */
struct uct_varuna_md_end {
    uct_varuna_cmd_t             super;
    uct_md_h                     inner;
    uct_varuna_md_is_dead_func_t is_dead;
    uct_varuna_md_answers_func_t answers;
    char                         dev_name[UCT_DEVICE_NAME_MAX];
    uct_varuna_backoff_t         backoff;   /* Of the thread that set is_asked */
    ucs_time_t                   failed_at; /* Written by the NIC's thread */
    int                          has_returned; /* The same */
    int                          is_asked;  /* Until the command has come back */
};

void *uct_varuna_md_spare_page(uct_varuna_md_t *md)
{
    size_t size = ucs_get_page_size();

    if ((md->spare_page == NULL) &&
        (ucs_posix_memalign(&md->spare_page, size, size, "varuna_spare") != 0)) {
        md->spare_page = NULL;
    }

    return md->spare_page;
}

/* @return Whether the NIC needs a spare, and the page for it: NULL if there is no memory. */
static int uct_varuna_md_needs_spare(uct_varuna_md_t *md, unsigned owner, void **page_p)
{
    int needs;

    pthread_mutex_lock(&md->lock);
    needs   = (md->nics[owner].spare == NULL) && (md->is_dead != NULL);
    *page_p = needs ? uct_varuna_md_spare_page(md) : NULL;
    pthread_mutex_unlock(&md->lock);
    return needs;
}

/* For all ports of the NIC. @return Nonzero if another thread was first. */
static int uct_varuna_md_publish_spare(uct_varuna_md_t *md, unsigned owner, uct_mem_h spare)
{
    int was_late;
    unsigned nic;

    pthread_mutex_lock(&md->lock);
    was_late = (md->nics[owner].spare != NULL);
    for (nic = owner; !was_late && (nic < md->num_nics); ++nic) {
        if (uct_varuna_md_inner_owner(md, nic) == owner) {
            md->nics[nic].spare = spare;
        }
    }
    pthread_mutex_unlock(&md->lock);
    return was_late;
}

/* Once, while the NIC is alive and has regions, for all of its ports. Without one, the NIC's
 * death makes registrations fail. It is registered without the lock: a NIC that hangs answers
 * after a minute, and meanwhile all threads ask for its state. */
static ucs_status_t uct_varuna_md_make_spare(uct_varuna_md_t *md, unsigned owner)
{
    uct_mem_h spare = NULL;
    ucs_status_t status;
    void *page;

    if (!uct_varuna_md_needs_spare(md, owner, &page)) {
        return UCS_OK;
    } else if (page == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    status = uct_md_mem_reg(md->nics[owner].md, page, ucs_get_page_size(),
                            UCT_MD_MEM_ACCESS_ALL | UCT_MD_MEM_FLAG_HIDE_ERRORS, &spare);
    if ((status == UCS_OK) && uct_varuna_md_publish_spare(md, owner, spare)) {
        (void)uct_md_mem_dereg(md->nics[owner].md, spare);
    }

    return status;
}

void uct_varuna_md_release_spares(uct_varuna_md_t *md)
{
    unsigned nic;

    uct_varuna_md_for_each_inner(md, nic) {
        if (md->nics[nic].spare != NULL) {
            (void)uct_md_mem_dereg(md->nics[nic].md, md->nics[nic].spare);
        }
    }
    ucs_free(md->spare_page);
}

/* The ports of a device share it */
static uct_varuna_shortage_t *
uct_varuna_md_shortage(uct_varuna_md_t *md, unsigned nic, uct_varuna_short_t what)
{
    return &md->nics[md->nics[nic].owner].shortages[what];
}

static int uct_varuna_md_has_returned(const uct_varuna_md_t *md, unsigned nic)
{
    const uct_varuna_md_end_t *end =
            __atomic_load_n(&md->ends[md->nics[nic].owner], __ATOMIC_ACQUIRE);

    return (end != NULL) && __atomic_load_n(&end->has_returned, __ATOMIC_RELAXED);
}

/* Lock held */
static int uct_varuna_md_is_short(uct_varuna_md_t *md, unsigned nic)
{
    unsigned what;

    for (what = 0; what < UCT_VARUNA_SHORT_LAST; ++what) {
        if (uct_varuna_md_shortage(md, nic, what)->backoff.failures > 0) {
            return 1;
        }
    }

    return 0;
}

static int uct_varuna_md_has_ended(const uct_varuna_md_t *md, unsigned nic);

int uct_varuna_md_is_nic_dead(uct_varuna_md_t *md, unsigned nic)
{
    unsigned owner = md->nics[nic].owner;

    if (uct_varuna_md_has_ended(md, owner)) {
        uct_varuna_md_nic_died(md, owner, "its commands fail");
    }

    return __atomic_load_n(&md->nics[owner].is_dead, __ATOMIC_RELAXED);
}

void uct_varuna_md_nic_died(uct_varuna_md_t *md, unsigned nic, const char *reason)
{
    unsigned owner = md->nics[nic].owner;
    uct_md_h inner;

    if (!__atomic_exchange_n(&md->nics[owner].is_dead, 1, __ATOMIC_RELAXED)) {
        inner = __atomic_load_n(&md->nics[owner].md, __ATOMIC_ACQUIRE);
        uct_varuna_tl_note_dead(inner, 1);
        if (__atomic_load_n(&md->nics[owner].md, __ATOMIC_ACQUIRE) != inner) {
            uct_varuna_tl_note_dead(inner, 0); /* It was closed meanwhile */
        }
        ucs_warn("rc_varuna: %s is dead (%s): this process does not use it before it was reset",
                 md->nics[owner].dev_name, reason);
    }
}

int uct_varuna_md_check_nic(uct_varuna_md_t *md, unsigned nic)
{
    if (!uct_varuna_md_is_nic_dead(md, nic) && (md->is_dead != NULL) &&
        uct_varuna_md_use(md, nic)) {
        if (md->is_dead(md->nics[nic].md)) {
            uct_varuna_md_nic_died(md, nic, "its commands fail");
        }
        uct_varuna_md_unuse(md, nic);
    }

    return uct_varuna_md_is_nic_dead(md, nic);
}

const char *uct_varuna_nic_state_names[] = {
    [UCT_VARUNA_NIC_WORKING] = "working",
    [UCT_VARUNA_NIC_SHORT]   = "short",
    [UCT_VARUNA_NIC_HUNG]    = "hung",
    [UCT_VARUNA_NIC_DEAD]    = "dead",
    [UCT_VARUNA_NIC_RESET]   = "reset",
    [UCT_VARUNA_NIC_LEAVING] = "leaving",
    [UCT_VARUNA_NIC_ABSENT]  = "absent"
};

UCT_VARUNA_STATIC_ASSERT(ucs_static_array_size(uct_varuna_nic_state_names) ==
                         UCT_VARUNA_NIC_LAST);

/* Whether it is about to be closed or opened. Lock held */
static int uct_varuna_md_is_between(const uct_varuna_md_t *md, unsigned nic,
                                    uct_varuna_nic_state_t *state_p)
{
    const uct_varuna_nic_life_t *life = &md->nics[md->nics[nic].owner].life;

    if (life->is_removed) {
        *state_p = (life->state == UCT_VARUNA_LIFE_CLOSED) ? UCT_VARUNA_NIC_ABSENT :
                   UCT_VARUNA_NIC_LEAVING;
        return 1;
    }

    *state_p = UCT_VARUNA_NIC_RESET;
    return life->state != UCT_VARUNA_LIFE_OPEN;
}

uct_varuna_nic_state_t uct_varuna_md_nic_state(uct_varuna_md_t *md, unsigned nic)
{
    uct_varuna_cmds_t *cmds = uct_varuna_md_cmds(md, nic);
    uct_varuna_nic_state_t state;
    int is_short, is_between;

    pthread_mutex_lock(&md->lock);
    is_between = uct_varuna_md_is_between(md, nic, &state);
    pthread_mutex_unlock(&md->lock);
    if (is_between) {
        return state;
    }

    if (uct_varuna_md_is_nic_dead(md, nic)) {
        return uct_varuna_md_has_returned(md, nic) ? UCT_VARUNA_NIC_RESET :
               UCT_VARUNA_NIC_DEAD;
    }

    if ((cmds != NULL) && uct_varuna_cmds_is_hung(cmds)) {
        return UCT_VARUNA_NIC_HUNG;
    }

    pthread_mutex_lock(&md->lock);
    is_short = uct_varuna_md_is_short(md, nic);
    pthread_mutex_unlock(&md->lock);
    return is_short ? UCT_VARUNA_NIC_SHORT : UCT_VARUNA_NIC_WORKING;
}

ucs_status_t uct_varuna_md_prepare_nic(uct_varuna_md_t *md, unsigned nic)
{
    unsigned owner      = md->nics[nic].owner;
    ucs_status_t status = md->nics[owner].is_barred ? UCS_ERR_NO_MEMORY :
                          uct_varuna_md_make_spare(md, owner);

    if ((status != UCS_OK) && !uct_varuna_md_check_nic(md, owner)) {
        uct_varuna_md_note_answer(md, owner, UCT_VARUNA_SHORT_MR, status, ucs_get_time());
    }

    return status;
}

ucs_status_t uct_varuna_md_reg_inner(uct_varuna_md_t *md, unsigned nic,
                                     void *address, size_t length,
                                     uct_varuna_reg_arg_t arg, int is_urgent,
                                     uct_mem_h *memh_p)
{
    uct_varuna_nic_t *inner = &md->nics[nic];
    ucs_status_t status     = UCS_ERR_IO_ERROR;
    int is_dead             = uct_varuna_md_is_nic_dead(md, nic);

    if (!is_dead && !is_urgent &&
        !uct_varuna_md_may_ask(md, nic, UCT_VARUNA_SHORT_MR, ucs_get_time())) {
        return UCS_ERR_NO_RESOURCE;
    }

    if (!is_dead) {
        status = uct_varuna_compat_mem_reg(inner->md, address, length, arg,
                                           memh_p);
        if (status == UCS_OK) {
            (void)uct_varuna_md_make_spare(md, nic);
            uct_varuna_md_note_answer(md, nic, UCT_VARUNA_SHORT_MR, UCS_OK, 0);
            return UCS_OK;
        }
    }

    if ((inner->spare == NULL) || !uct_varuna_md_check_nic(md, nic)) {
        return status;
    }

    *memh_p = inner->spare;
    return UCS_OK;
}

/* It registers host memory, and no memory of devices. */
static void uct_varuna_md_note_no_device(uct_varuna_md_t *md, unsigned nic)
{
    if (!__atomic_exchange_n(&md->nics[nic].no_device_is_logged, 1, __ATOMIC_RELAXED)) {
        ucs_diag("rc_varuna: %s does not register the memory of a device: it carries no "
                 "operation on it, other links do", md->nics[nic].dev_name);
    }
}

ucs_status_t uct_varuna_md_do_without(uct_varuna_md_t *md, unsigned nic,
                                      ucs_status_t status, uint8_t device,
                                      uct_mem_h *memh_p)
{
    uct_varuna_nic_t *inner = &md->nics[nic];

    if (md->is_dead == NULL) {
        return status;
    }

    if (device != UCT_VARUNA_DEVICE_HOST) {
        uct_varuna_md_note_no_device(md, nic);
    } else if ((status != UCS_ERR_NO_RESOURCE) && !uct_varuna_md_check_nic(md, nic)) {
        uct_varuna_md_note_answer(md, nic, UCT_VARUNA_SHORT_MR, status, ucs_get_time());
    }

    if (uct_varuna_md_make_spare(md, nic) != UCS_OK) {
        inner->is_barred = 1;
    }

    *memh_p = inner->spare;
    return UCS_OK;
}

/* --- The end of a NIC --- */


static ucs_status_t uct_varuna_md_end_run(uct_varuna_cmd_t *cmd)
{
    uct_varuna_md_end_t *end = ucs_derived_of(cmd, uct_varuna_md_end_t);

    if (end->failed_at == 0) {
        if (end->is_dead(end->inner)) {
            __atomic_store_n(&end->failed_at, ucs_get_time(), __ATOMIC_RELEASE);
        }
    } else if (!end->has_returned && (end->answers != NULL)) {
        /* Also if it was asked once more by a thread that had seen no failure yet */
        __atomic_store_n(&end->has_returned, !!end->answers(end->dev_name),
                         __ATOMIC_RELAXED);
    }

    return UCS_OK;
}

static void uct_varuna_md_end_done(uct_varuna_cmd_t *cmd, ucs_status_t status)
{
    uct_varuna_md_end_t *end = ucs_derived_of(cmd, uct_varuna_md_end_t);

    (void)status; /* Without a sink it says nothing */
    __atomic_store_n(&end->is_asked, 0, __ATOMIC_RELEASE);
}

static uct_varuna_md_end_t *uct_varuna_md_end_get(uct_varuna_md_t *md, unsigned owner)
{
    uct_varuna_md_end_t *end   = __atomic_load_n(&md->ends[owner], __ATOMIC_ACQUIRE);
    uct_varuna_md_end_t *other = NULL;

    if (end != NULL) {
        return end;
    }

    end = ucs_calloc(1, sizeof(*end), "varuna_md_end");
    if (end == NULL) {
        return NULL; /* Asked again */
    }

    end->super.run  = uct_varuna_md_end_run;
    end->super.done = uct_varuna_md_end_done;
    end->inner      = md->nics[owner].md;
    end->is_dead    = md->is_dead;
    end->answers    = md->answers;
    ucs_strncpy_zero(end->dev_name, md->nics[owner].dev_name, sizeof(end->dev_name));
    /* Not under the lock of the memory domain, whose owner may wait for a NIC */
    if (!__atomic_compare_exchange_n(&md->ends[owner], &other, end, 0, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE)) {
        ucs_free(end);
        return other;
    }

    return end;
}

/* @return Whether this thread asks: no question is on its way. */
static int uct_varuna_md_end_take(uct_varuna_md_end_t *end)
{
    return !__atomic_exchange_n(&end->is_asked, 1, __ATOMIC_ACQ_REL);
}

/* It was taken */
static void uct_varuna_md_end_ask(uct_varuna_md_t *md, unsigned owner,
                                  uct_varuna_md_end_t *end)
{
    if (md->cmds[owner] != NULL) {
        uct_varuna_cmds_submit(md->cmds[owner], &end->super);
    } else {
        end->super.done(&end->super, end->super.run(&end->super));
    }
}

ucs_time_t uct_varuna_md_ended_at(uct_varuna_md_t *md, unsigned nic)
{
    unsigned owner = md->nics[nic].owner;
    uct_varuna_md_end_t *end;

    if ((md->is_dead == NULL) || ((md->nics[nic].md == NULL) && (md->ends[owner] == NULL))) {
        return 1; /* There is nothing that could still act: it ended long ago */
    }

    end = uct_varuna_md_end_get(md, owner);
    if (end == NULL) {
        return 0;
    }

    if ((__atomic_load_n(&end->failed_at, __ATOMIC_ACQUIRE) == 0) &&
        uct_varuna_md_end_take(end)) {
        uct_varuna_md_end_ask(md, owner, end);
    }

    return __atomic_load_n(&end->failed_at, __ATOMIC_ACQUIRE);
}

void uct_varuna_md_look_for_return(uct_varuna_md_t *md, unsigned nic, ucs_time_t now)
{
    unsigned owner = md->nics[nic].owner;
    uct_varuna_md_end_t *end;

    if ((uct_varuna_md_ended_at(md, nic) == 0) || (md->ends[owner] == NULL)) {
        return;
    }

    end = md->ends[owner];
    if (__atomic_load_n(&end->has_returned, __ATOMIC_RELAXED) ||
        (uct_varuna_md_life(md, owner) != UCT_VARUNA_LIFE_OPEN)) {
        uct_varuna_return_begin(md, owner);
        return;
    }

    if (!uct_varuna_md_end_take(end)) {
        return;
    }

    if (uct_varuna_backoff_is_due(&end->backoff, now)) {
        (void)uct_varuna_backoff_failed(&end->backoff, UCS_ERR_NO_DEVICE, now);
        uct_varuna_md_end_ask(md, owner, end);
    } else {
        uct_varuna_md_end_done(&end->super, UCS_OK);
    }
}

/* @return Whether it is known by now, without asking, that the NIC has ended. Any thread. */
static int uct_varuna_md_has_ended(const uct_varuna_md_t *md, unsigned nic)
{
    const uct_varuna_md_end_t *end;

    end = __atomic_load_n(&md->ends[md->nics[nic].owner], __ATOMIC_ACQUIRE);
    return (end != NULL) && (__atomic_load_n(&end->failed_at, __ATOMIC_ACQUIRE) != 0);
}

void uct_varuna_md_end_now(uct_varuna_md_t *md, unsigned owner)
{
    uct_varuna_md_end_t *end = uct_varuna_md_end_get(md, owner);
    ucs_time_t none          = 0;

    if (end != NULL) {
        (void)__atomic_compare_exchange_n(&end->failed_at, &none, ucs_get_time(), 0,
                                          __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&md->nics[owner].is_dead, 1, __ATOMIC_RELAXED);
}

void uct_varuna_md_end_renew(uct_varuna_md_t *md, unsigned owner)
{
    uct_varuna_md_end_t *end = __atomic_load_n(&md->ends[owner], __ATOMIC_ACQUIRE);

    if (end != NULL) {
        end->inner = md->nics[owner].md;
        memset(&end->backoff, 0, sizeof(end->backoff));
        __atomic_store_n(&end->has_returned, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&end->failed_at, 0, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&md->nics[owner].is_dead, 0, __ATOMIC_RELAXED);
}

void uct_varuna_md_end_release(uct_varuna_md_t *md, unsigned nic, int is_left)
{
    if (!is_left) {
        ucs_free(md->ends[nic]);
    }
    md->ends[nic] = NULL;
}

/* --- Shortage --- */

/* What the NICs of a memory domain are short of. */

/* For people, in the singular */
static const char *uct_varuna_short_names[] = {
    [UCT_VARUNA_SHORT_QP] = "queue pair",
    [UCT_VARUNA_SHORT_MR] = "memory region",
    [UCT_VARUNA_SHORT_AH] = "address handle"
};

UCT_VARUNA_STATIC_ASSERT(ucs_static_array_size(uct_varuna_short_names) ==
                         UCT_VARUNA_SHORT_LAST);


int uct_varuna_md_may_ask(uct_varuna_md_t *md, unsigned nic, uct_varuna_short_t what,
                          ucs_time_t now)
{
    int may_ask;

    if (uct_varuna_md_is_nic_dead(md, nic)) {
        return 0;
    }

    pthread_mutex_lock(&md->lock);
    may_ask = uct_varuna_shortage_may_ask(uct_varuna_md_shortage(md, nic, what), now);
    pthread_mutex_unlock(&md->lock);
    return may_ask;
}

void uct_varuna_md_note_answer(uct_varuna_md_t *md, unsigned nic, uct_varuna_short_t what,
                               ucs_status_t status, ucs_time_t now)
{
    pthread_mutex_lock(&md->lock);
    uct_varuna_shortage_note(uct_varuna_md_shortage(md, nic, what),
                             uct_varuna_short_names[what], md->nics[nic].dev_name, status,
                             now);
    pthread_mutex_unlock(&md->lock);
}

void uct_varuna_md_note_handle(uct_varuna_md_t *md, unsigned nic,
                               uct_varuna_backoff_t *backoff, ucs_status_t status,
                               ucs_time_t now)
{
    if (status != UCS_OK) {
        (void)uct_varuna_backoff_failed(backoff, status, now);
    } else if (uct_varuna_backoff_succeeded(backoff) == 0) {
        return;
    }

    uct_varuna_md_note_answer(md, nic, UCT_VARUNA_SHORT_AH, status, now);
}

/* --- Queues of commands --- */

/* @return Whether its thread was left alone */
static int uct_varuna_md_queue_destroy(uct_varuna_cmds_t **cmds)
{
    int is_left = (*cmds != NULL) && (uct_varuna_cmds_destroy(*cmds) != UCS_OK);

    *cmds = NULL;
    return is_left;
}

/* Create those of one NIC. */
static ucs_status_t uct_varuna_md_cmds_create(uct_varuna_md_t *md, unsigned nic)
{
    const char *name = md->nics[nic].dev_name;
    ucs_status_t status;

    status = uct_varuna_cmds_create(name, &md->cmds[nic]);
    return (status == UCS_OK) ? uct_varuna_cmds_create(name, &md->nics[nic].handles) :
           status;
}

ucs_status_t uct_varuna_md_cmds_init(uct_varuna_md_t *md)
{
    ucs_status_t status = UCS_OK;
    unsigned nic;

    for (nic = 0; (nic < md->num_nics) && (status == UCS_OK); ++nic) {
        status = uct_varuna_md_cmds_create(md, nic);
    }

    return status;
}

void uct_varuna_md_cmds_cleanup(uct_varuna_md_t *md)
{
    unsigned nic, port;
    uct_md_h left;
    int is_left;

    for (nic = 0; nic < md->num_nics; ++nic) {
        is_left = uct_varuna_md_queue_destroy(&md->cmds[nic]);
        uct_varuna_md_end_release(md, nic, is_left);
        is_left |= uct_varuna_md_queue_destroy(&md->nics[nic].handles);
        if (!is_left) {
            continue;
        }

        left = md->nics[nic].md;
        for (port = 0; port < md->num_nics; ++port) {
            if (md->nics[port].md == left) {
                md->nics[port].md = NULL;
            }
        }
    }
}

uct_varuna_cmds_t *uct_varuna_md_cmds(const uct_varuna_md_t *md, unsigned nic)
{
    return md->cmds[md->nics[nic].owner];
}

uct_varuna_cmds_t *uct_varuna_md_handles(const uct_varuna_md_t *md, unsigned nic)
{
    return md->nics[nic].handles;
}
