/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Memory of our own that peers access. See varuna_own.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_own.h"
#include "varuna_health.h"
#include <uct/ib/varuna/ucx/varuna_mlx5_dev.h>
#include <uct/ib/varuna/ucx/varuna_random.h>

#include <ucs/debug/log.h>
#include <ucs/sys/math.h>
#include <ucs/sys/sys.h>
#include <string.h>
#include <ucs/debug/memtrack_int.h>


/* Of addresses that are chosen: mlx5 takes any, and an end beyond 2^64 is no good */
#define UCT_VARUNA_OWN_ADDRESS_BITS  61

/* Whether a NIC is left out from the beginning */
static int uct_varuna_own_passes(uct_varuna_md_t *md, unsigned nic, ucs_time_t deadline)
{
    uct_varuna_cmds_t *queue = uct_varuna_md_cmds(md, nic);

    return !uct_varuna_md_may_ask(md, nic, UCT_VARUNA_SHORT_MR, ucs_get_time()) ||
           ((deadline != UCS_TIME_INFINITY) && (queue != NULL) &&
            uct_varuna_cmds_is_hung(queue));
}

/* Loop over those of the NICs that exist */
#define uct_varuna_own_for_each(_md, _nics, _nic) \
    uct_varuna_md_for_each_inner(_md, _nic) \
        if ((_nics) & UCS_BIT(_nic))

static uct_varuna_own_cmd_t *uct_varuna_own_cmd_reg(uct_varuna_md_t *md, unsigned nic,
                                                    void *address, size_t length,
                                                    uint64_t iova, unsigned rights,
                                                    ucs_time_t deadline);
static uct_varuna_own_cmd_t *uct_varuna_own_cmd_dereg(uct_varuna_md_t *md, unsigned nic,
                                                      void *mr);
static void uct_varuna_own_cmd_leave(uct_varuna_own_cmd_t *cmd);
static ucs_status_t uct_varuna_own_cmd_wait(uct_varuna_own_cmd_t *cmd, ucs_time_t deadline,
                                            void **mr_p, uint64_t *key_p);

/* Begin on all NICs that may answer. Ports of one device share a registration. */
static void uct_varuna_own_begin(uct_varuna_md_t *md, uint8_t nics, void *address, size_t length,
                                 uint64_t iova, unsigned rights, ucs_time_t deadline,
                                 uct_varuna_own_cmd_t **cmds)
{
    unsigned nic;

    uct_varuna_own_for_each(md, nics, nic) {
        cmds[nic] = uct_varuna_own_passes(md, nic, deadline) ? NULL :
                    uct_varuna_own_cmd_reg(md, nic, address, length, iova, rights,
                                           deadline);
    }
}

/* Wait for one. The registration uses the NIC from the command on until the one that ends it is
 * given, since its thread gives them in this order: also if nobody waits any more, as the thread
 * itself ends it then. */
static ucs_status_t uct_varuna_own_take(uct_varuna_md_t *md, unsigned nic,
                                        uct_varuna_own_cmd_t *cmd, ucs_time_t deadline,
                                        void **mr_p, uint64_t *key_p)
{
    ucs_status_t status = uct_varuna_own_cmd_wait(cmd, deadline, mr_p, key_p);

    if (status != UCS_OK) {
        uct_varuna_md_unuse(md, nic);
    }

    return status;
}

/* Wait for all of them. @return why NICs are missing, and those which have it. */
static ucs_status_t uct_varuna_own_end(uct_varuna_md_t *md, uint8_t nics, ucs_time_t deadline,
                                       uct_varuna_own_cmd_t **cmds, uct_varuna_own_t *own,
                                       uint64_t *keys, uint8_t *nic_map_p)
{
    ucs_status_t result = UCS_ERR_TIMED_OUT;
    ucs_status_t status;
    unsigned nic;

    *nic_map_p = 0;
    uct_varuna_own_for_each(md, nics, nic) {
        status = (cmds[nic] == NULL) ? UCS_ERR_TIMED_OUT :
                 uct_varuna_own_take(md, nic, cmds[nic], deadline, &own->mrs[nic], &keys[nic]);
        if (status == UCS_OK) {
            *nic_map_p |= UCS_BIT(nic);
            uct_varuna_md_note_answer(md, nic, UCT_VARUNA_SHORT_MR, status, ucs_get_time());
            continue;
        }

        if ((status != UCS_ERR_TIMED_OUT) && !uct_varuna_md_check_nic(md, nic)) {
            uct_varuna_md_note_answer(md, nic, UCT_VARUNA_SHORT_MR, status, ucs_get_time());
            result = status;
        }
        own->missing |= uct_varuna_md_is_nic_dead(md, nic) ? 0 : UCS_BIT(nic);
    }

    return result;
}

/* @return UCS_OK, and the NICs which have it, or why none has it. */
static ucs_status_t uct_varuna_own_reg_all(uct_varuna_md_t *md, uint8_t nics, void *address,
                                           size_t length, unsigned rights,
                                           ucs_time_t patience, uct_varuna_own_t *own,
                                           uint64_t *keys, uint8_t *nic_map_p)
{
    uct_varuna_own_cmd_t *cmds[UCT_VARUNA_MAX_LINKS] = {NULL}; /* A NIC may come meanwhile */
    ucs_time_t deadline;
    ucs_status_t status;
    unsigned nic, owner;

    deadline = (patience == UCS_TIME_INFINITY) ? patience : (ucs_get_time() + patience);
    uct_varuna_own_begin(md, nics, address, length, own->address, rights, deadline, cmds);
    status = uct_varuna_own_end(md, nics, deadline, cmds, own, keys, nic_map_p);

    for (nic = 0; nic < md->num_nics; ++nic) {
        owner = uct_varuna_md_inner_owner(md, nic);
        if ((owner < nic) && (*nic_map_p & UCS_BIT(owner))) {
            /* Another port of that device */
            keys[nic]   = keys[owner];
            *nic_map_p |= UCS_BIT(nic);
        }
    }

    return (*nic_map_p != 0) ? UCS_OK : status;
}

/* A page that nobody has named before: of 2^48 or so. Places within a page stay, as the
 * kernel demands. */
static ucs_status_t uct_varuna_own_choose_address(const void *address, uint64_t *iova_p)
{
    uint64_t page_mask = ucs_get_page_size() - 1;
    uint64_t random;
    ucs_status_t status;

    status = uct_varuna_random_number(&random);
    if (status == UCS_OK) {
        *iova_p = (random & UCS_MASK(UCT_VARUNA_OWN_ADDRESS_BITS) & ~page_mask) |
                  ((uintptr_t)address & page_mask) | UCS_BIT(UCT_VARUNA_OWN_ADDRESS_BITS);
    }

    return status;
}

static void uct_varuna_own_pack(const uct_varuna_md_t *md, uint8_t nic_map,
                                const uint64_t *keys, uct_varuna_own_t *own)
{
    void *key = uct_varuna_rkey_pack_header(nic_map, md->atomic_mode,
                                            UCT_VARUNA_DEVICE_HOST, 0, own->key);
    unsigned nic;

    ucs_for_each_bit(nic, nic_map) {
        key = uct_varuna_rkey_pack_key(keys[nic], md->nics[nic].generation, key);
    }

    own->key_len = UCS_PTR_BYTE_DIFF(own->key, key);
}

ucs_status_t uct_varuna_own_reg(uct_varuna_md_t *md, uint8_t nics, void *address,
                                size_t length, unsigned rights, int is_shared,
                                ucs_time_t patience, uct_varuna_own_t *own)
{
    uint64_t keys[UCT_VARUNA_MAX_LINKS];
    ucs_status_t status;
    uint8_t nic_map;

    memset(own, 0, sizeof(*own));
    own->address = (uintptr_t)address;
    status       = is_shared ? UCS_OK : uct_varuna_own_choose_address(address, &own->address);
    if (status != UCS_OK) {
        memset(own, 0, sizeof(*own));
        return status;
    }

    status = uct_varuna_own_reg_all(md, nics, address, length, rights, patience, own, keys,
                                    &nic_map);
    if (status != UCS_OK) {
        ucs_debug("no NIC has registered %zu bytes for rc_varuna: %s", length,
                  ucs_status_string(status));
        (void)uct_varuna_own_dereg(md, own);
        return status;
    }

    uct_varuna_own_pack(md, nic_map, keys, own);
    return UCS_OK;
}

/* --- One more NIC --- */

/* @return The NICs in the packed key, and their inner keys. */
static uint8_t uct_varuna_own_unpack(const uct_varuna_own_t *own, uint64_t *keys)
{
    const uct_varuna_packed_rkey_t *packed = (const uct_varuna_packed_rkey_t*)own->key;
    const uct_varuna_packed_key_t *key     = (const uct_varuna_packed_key_t*)(packed + 1);
    unsigned nic;

    ucs_for_each_bit(nic, packed->nic_map) {
        keys[nic] = key->key;
        ++key;
    }

    return packed->nic_map;
}

static ucs_status_t uct_varuna_own_reg_one(uct_varuna_md_t *md, void *address, size_t length,
                                           unsigned rights, unsigned nic, ucs_time_t patience,
                                           uct_varuna_own_t *own, uint64_t *key_p)
{
    ucs_time_t deadline = ucs_get_time() + patience;
    uct_varuna_own_cmd_t *cmd;
    ucs_status_t status;

    if (uct_varuna_own_passes(md, nic, deadline)) {
        return UCS_ERR_NO_RESOURCE;
    }

    cmd = uct_varuna_own_cmd_reg(md, nic, address, length, own->address, rights, deadline);
    if (cmd == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    status = uct_varuna_own_take(md, nic, cmd, deadline, &own->mrs[nic], key_p);
    if ((status != UCS_ERR_TIMED_OUT) && !uct_varuna_md_check_nic(md, nic)) {
        uct_varuna_md_note_answer(md, nic, UCT_VARUNA_SHORT_MR, status, ucs_get_time());
    }

    return status;
}

ucs_status_t uct_varuna_own_add(uct_varuna_md_t *md, void *address, size_t length,
                                unsigned rights, unsigned nic, ucs_time_t patience,
                                uct_varuna_own_t *own, uint64_t *key_p)
{
    uint64_t keys[UCT_VARUNA_MAX_LINKS];
    uint8_t nic_map = uct_varuna_own_unpack(own, keys);
    ucs_status_t status;
    unsigned owner;

    if ((nic >= md->num_nics) || !md->nics[nic].is_link || uct_varuna_md_is_nic_dead(md, nic)) {
        return UCS_ERR_NO_DEVICE;
    }

    owner = md->nics[nic].owner;
    if (!(nic_map & UCS_BIT(owner))) {
        status = uct_varuna_own_reg_one(md, address, length, rights, owner, patience, own,
                                        &keys[owner]);
        if (status != UCS_OK) {
            return status;
        }
    }

    keys[nic] = keys[owner];
    *key_p    = keys[nic];
    uct_varuna_own_pack(md, nic_map | UCS_BIT(owner) | UCS_BIT(nic), keys, own);
    return UCS_OK;
}

void uct_varuna_own_remove(uct_varuna_md_t *md, uct_varuna_own_t *own, unsigned owner)
{
    uint64_t keys[UCT_VARUNA_MAX_LINKS];
    uct_varuna_own_cmd_t *cmd;
    uint8_t nic_map;
    unsigned nic;

    if (own->mrs[owner] == NULL) {
        return;
    }

    cmd = uct_varuna_own_cmd_dereg(md, owner, own->mrs[owner]);
    if (cmd == NULL) {
        return; /* Asked again */
    }

    own->mrs[owner] = NULL;
    uct_varuna_own_cmd_leave(cmd);
    nic_map = uct_varuna_own_unpack(own, keys);
    for (nic = owner; nic < md->num_nics; ++nic) {
        nic_map &= (md->nics[nic].owner == owner) ? ~UCS_BIT(nic) : ~0u;
    }
    uct_varuna_own_pack(md, nic_map, keys, own);
}

int uct_varuna_own_is_stuck(const uct_varuna_md_t *md, const uct_varuna_own_t *own)
{
    uct_varuna_cmds_t *queue;
    unsigned nic;

    uct_varuna_md_for_each_inner(md, nic) {
        queue = uct_varuna_md_cmds(md, nic);
        if ((own->mrs[nic] != NULL) && (queue != NULL) &&
            uct_varuna_cmds_is_hung(queue)) {
            return 1;
        }
    }

    return 0;
}

ucs_status_t uct_varuna_own_dereg(uct_varuna_md_t *md, uct_varuna_own_t *own)
{
    ucs_time_t deadline = ucs_get_time() + (uct_varuna_own_is_stuck(md, own) ? 0 :
                                            ucs_time_from_sec(UCT_VARUNA_OWN_PATIENCE));
    ucs_status_t status = UCS_OK;
    uct_varuna_own_cmd_t *cmds[UCT_VARUNA_MAX_LINKS];
    unsigned nic;

    for (nic = 0; nic < UCT_VARUNA_MAX_LINKS; ++nic) {
        cmds[nic] = (own->mrs[nic] == NULL) ? NULL :
                    uct_varuna_own_cmd_dereg(md, nic, own->mrs[nic]);
    }

    for (nic = 0; nic < UCT_VARUNA_MAX_LINKS; ++nic) {
        if (own->mrs[nic] == NULL) {
            continue;
        }

        if ((cmds[nic] == NULL) ||
            (uct_varuna_own_cmd_wait(cmds[nic], deadline, NULL, NULL) != UCS_OK)) {
            status = UCS_ERR_BUSY;
        }
    }

    memset(own, 0, sizeof(*own));
    return status;
}

/* --- Registration on a NIC's thread --- */

/* A registration of memory of our own on one NIC. */

struct uct_varuna_own_cmd {
    uct_varuna_cmd_t           super;
    uct_md_h                   inner;
    void                       *address;
    size_t                     length;
    uint64_t                   iova;
    unsigned                   rights;
    void                       *mr;
    uint64_t                   key;
    unsigned                   refs;     /* The waiting thread's, and the NIC's. Atomic */
    pthread_mutex_t            lock;     /* Protects what follows */
    pthread_cond_t             over;
    ucs_status_t               status;   /* UCS_INPROGRESS: not over */
    int                        is_left;  /* Nobody waits any more */
};

static void uct_varuna_own_cmd_put(uct_varuna_own_cmd_t *cmd)
{
    if (__atomic_sub_fetch(&cmd->refs, 1, __ATOMIC_ACQ_REL) == 0) {
        pthread_cond_destroy(&cmd->over);
        pthread_mutex_destroy(&cmd->lock);
        ucs_free(cmd);
    }
}

static ucs_status_t uct_varuna_own_cmd_run_reg(uct_varuna_cmd_t *super)
{
    uct_varuna_own_cmd_t *cmd = ucs_derived_of(super, uct_varuna_own_cmd_t);

    return uct_varuna_mlx5_mr_reg(cmd->inner, cmd->address, cmd->length, cmd->iova,
                                  cmd->rights, &cmd->mr, &cmd->key);
}

static ucs_status_t uct_varuna_own_cmd_run_dereg(uct_varuna_cmd_t *super)
{
    uct_varuna_own_cmd_t *cmd = ucs_derived_of(super, uct_varuna_own_cmd_t);

    uct_varuna_mlx5_mr_dereg(cmd->mr);
    cmd->mr = NULL;
    return UCS_OK;
}

/* Without a sink the thread calls this, with UCS_ERR_CANCELED, whatever the result was */
static void uct_varuna_own_cmd_done(uct_varuna_cmd_t *super, ucs_status_t status)
{
    uct_varuna_own_cmd_t *cmd = ucs_derived_of(super, uct_varuna_own_cmd_t);
    int is_left;

    pthread_mutex_lock(&cmd->lock);
    cmd->status = (super->status == UCS_INPROGRESS) ? status : super->status;
    is_left     = cmd->is_left;
    pthread_cond_signal(&cmd->over);
    pthread_mutex_unlock(&cmd->lock);

    if (is_left && (cmd->mr != NULL) && (super->run == uct_varuna_own_cmd_run_reg)) {
        uct_varuna_mlx5_mr_dereg(cmd->mr);
    }
    uct_varuna_own_cmd_put(cmd);
}

static uct_varuna_own_cmd_t *
uct_varuna_own_cmd_new(uct_varuna_md_t *md, unsigned nic, uct_varuna_cmd_run_t run)
{
    uct_varuna_own_cmd_t *cmd;
    pthread_condattr_t attr;

    cmd = ucs_calloc(1, sizeof(*cmd), "varuna_own_cmd");
    if (cmd == NULL) {
        ucs_error("failed to allocate a command to %s", md->nics[nic].dev_name);
        return NULL;
    }

    pthread_mutex_init(&cmd->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&cmd->over, &attr);
    pthread_condattr_destroy(&attr);
    cmd->super.run    = run;
    cmd->super.done   = uct_varuna_own_cmd_done;
    cmd->super.status = UCS_INPROGRESS;
    cmd->status       = UCS_INPROGRESS;
    cmd->inner        = md->nics[nic].md;
    cmd->refs         = 2;
    return cmd;
}

static void uct_varuna_own_cmd_start(uct_varuna_md_t *md, unsigned nic,
                                     uct_varuna_own_cmd_t *cmd)
{
    uct_varuna_cmds_t *cmds = uct_varuna_md_cmds(md, nic);

    if (cmds == NULL) {
        cmd->super.done(&cmd->super, cmd->super.run(&cmd->super));
    } else {
        uct_varuna_cmds_submit(cmds, &cmd->super);
    }
}

/* @return The command, which is under way; NULL if there is no memory, or the life of the NIC
 *          is over. */
static uct_varuna_own_cmd_t *uct_varuna_own_cmd_reg(uct_varuna_md_t *md, unsigned nic,
                                                    void *address, size_t length,
                                                    uint64_t iova, unsigned rights,
                                                    ucs_time_t deadline)
{
    uct_varuna_own_cmd_t *cmd = NULL;

    if (uct_varuna_md_use(md, nic)) {
        cmd = uct_varuna_own_cmd_new(md, nic, uct_varuna_own_cmd_run_reg);
        if (cmd == NULL) {
            uct_varuna_md_unuse(md, nic);
        }
    }

    if (cmd != NULL) {
        cmd->address        = address;
        cmd->length         = length;
        cmd->iova           = iova;
        cmd->rights         = rights;
        /* One that nobody waits for any more is not given */
        cmd->super.deadline = (deadline == UCS_TIME_INFINITY) ? 0 : deadline;
        uct_varuna_own_cmd_start(md, nic, cmd);
    }

    return cmd;
}

/* The same: end a registration. */
static uct_varuna_own_cmd_t *uct_varuna_own_cmd_dereg(uct_varuna_md_t *md, unsigned nic,
                                                      void *mr)
{
    uct_varuna_own_cmd_t *cmd = uct_varuna_own_cmd_new(md, nic,
                                                       uct_varuna_own_cmd_run_dereg);

    if (cmd != NULL) {
        cmd->mr = mr;
        uct_varuna_own_cmd_start(md, nic, cmd);
        uct_varuna_md_unuse(md, nic);
    }

    return cmd;
}

/* Release a command without waiting for it. */
static void uct_varuna_own_cmd_leave(uct_varuna_own_cmd_t *cmd)
{
    pthread_mutex_lock(&cmd->lock);
    cmd->is_left = 1;
    pthread_mutex_unlock(&cmd->lock);
    uct_varuna_own_cmd_put(cmd);
}

/* The lock is held */
static void uct_varuna_own_cmd_sleep(uct_varuna_own_cmd_t *cmd, ucs_time_t deadline)
{
    ucs_time_t now = ucs_get_time();
    struct timespec ts;
    double sec;

    if (deadline == UCS_TIME_INFINITY) {
        while (cmd->status == UCS_INPROGRESS) {
            pthread_cond_wait(&cmd->over, &cmd->lock);
        }
        return;
    }

    clock_gettime(CLOCK_MONOTONIC, &ts);
    sec         = (deadline > now) ? ucs_time_to_sec(deadline - now) : 0;
    ts.tv_sec  += (time_t)sec;
    ts.tv_nsec += (long)((sec - (time_t)sec) * UCS_NSEC_PER_SEC);
    if (ts.tv_nsec >= (long)UCS_NSEC_PER_SEC) {
        ts.tv_nsec -= (long)UCS_NSEC_PER_SEC;
        ++ts.tv_sec;
    }

    while ((cmd->status == UCS_INPROGRESS) &&
           (pthread_cond_timedwait(&cmd->over, &cmd->lock, &ts) == 0)) {
    }
}

/* Wait for a command, and release it.
 *
 * @param [out] mr_p   Of a registration. NULL if it is to be ended.
 * @param [out] key_p  The same.
 *
 * @return UCS_ERR_TIMED_OUT if the NIC has not answered until the deadline. A command that
 *         ends a registration will do so later. */
static ucs_status_t uct_varuna_own_cmd_wait(uct_varuna_own_cmd_t *cmd, ucs_time_t deadline,
                                            void **mr_p, uint64_t *key_p)
{
    ucs_status_t status;

    pthread_mutex_lock(&cmd->lock);
    uct_varuna_own_cmd_sleep(cmd, deadline);
    status = cmd->status;
    if (status == UCS_INPROGRESS) {
        cmd->is_left = 1;
        status       = UCS_ERR_TIMED_OUT;
    } else if ((status == UCS_OK) && (mr_p != NULL)) {
        *mr_p  = cmd->mr;
        *key_p = cmd->key;
    }
    pthread_mutex_unlock(&cmd->lock);
    uct_varuna_own_cmd_put(cmd);
    return status;
}
