/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * This process's home NIC, and an interface's part in it. See varuna_home_nic.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_home_nic.h"
#include <uct/ib/varuna/ctl/varuna_ctl.h>

#include <ucs/debug/log.h>
#include <string.h>
#include <ucs/debug/assert.h>
#include <ucs/sys/math.h>
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

/* --- The name of the home NIC --- */

/* Two NICs are not atomic with each other, so the invariant is: at any time compare and
 * swaps are executed by one NIC only. A queue pair on NIC X carries them only while its requester believes that X
 * is the home, which it learns when it connects, or later. */

/* The lock protects all of it. Epochs continue after the last member has left. */
static struct {
    pthread_mutex_t            lock;
    ucs_list_link_t            members;
    uct_varuna_home_name_t     name;
    ucs_time_t                 first_bad; /* When name.first did not work */
} uct_varuna_home_shared = {
    .lock    = PTHREAD_MUTEX_INITIALIZER,
    .members = UCS_LIST_INITIALIZER(&uct_varuna_home_shared.members,
                                    &uct_varuna_home_shared.members),
    .name    = {.nic = UCT_VARUNA_HOME_NONE}
};


static void uct_varuna_home_name_kick(const uct_varuna_home_member_t *member)
{
    uint64_t one = 1;
    ssize_t ret;

    do {
        ret = write(member->kick_fd, &one, sizeof(one));
    } while ((ret < 0) && (errno == EINTR));
}

static void uct_varuna_home_name_kick_all(void)
{
    uct_varuna_home_member_t *member;

    ucs_list_for_each(member, &uct_varuna_home_shared.members, list) {
        uct_varuna_home_name_kick(member);
    }
}

/* Settle if all have left the old NIC. Lock held. */
static int uct_varuna_home_name_check_rest(void)
{
    uct_varuna_home_name_t *name = &uct_varuna_home_shared.name;
    uct_varuna_home_member_t *member;

    if ((name->nic != UCT_VARUNA_HOME_NONE) ||
        ucs_list_is_empty(&uct_varuna_home_shared.members)) {
        return 0;
    }

    ucs_list_for_each(member, &uct_varuna_home_shared.members, list) {
        if (!member->at_rest) {
            return 0;
        }
    }

    name->nic = name->to;
    ++name->epoch;
    uct_varuna_home_name_kick_all();
    return 1;
}

void uct_varuna_home_name_join(uct_varuna_home_member_t *member, uint8_t nic,
                               uint8_t nic_map, int kick_fd)
{
    member->kick_fd = kick_fd;
    member->nic_map = nic_map;
    member->at_rest = 1; /* It has nothing yet */
    member->in_use  = 0;

    pthread_mutex_lock(&uct_varuna_home_shared.lock);
    if (ucs_list_is_empty(&uct_varuna_home_shared.members)) {
        uct_varuna_home_shared.name.first = nic;
        uct_varuna_home_shared.name.nic   = nic;
        uct_varuna_home_shared.first_bad  = 0;
        ++uct_varuna_home_shared.name.epoch;
    }
    ucs_list_add_tail(&uct_varuna_home_shared.members, &member->list);
    pthread_mutex_unlock(&uct_varuna_home_shared.lock);
}

void uct_varuna_home_name_leave(uct_varuna_home_member_t *member)
{
    pthread_mutex_lock(&uct_varuna_home_shared.lock);
    ucs_list_del(&member->list);
    uct_varuna_home_name_check_rest();
    pthread_mutex_unlock(&uct_varuna_home_shared.lock);
}

void uct_varuna_home_name_get(uct_varuna_home_name_t *name)
{
    pthread_mutex_lock(&uct_varuna_home_shared.lock);
    *name = uct_varuna_home_shared.name;
    pthread_mutex_unlock(&uct_varuna_home_shared.lock);
}

void uct_varuna_home_name_tell(uint8_t *nic_p, uint32_t *epoch_p)
{
    uct_varuna_home_name_t name;

    uct_varuna_home_name_get(&name);
    *nic_p   = name.nic;
    *epoch_p = name.epoch;
}

/* NICs that all members can use. */
static uint8_t uct_varuna_home_name_common_map(void)
{
    uint8_t map = UINT8_MAX;
    uct_varuna_home_member_t *member;

    ucs_list_for_each(member, &uct_varuna_home_shared.members, list) {
        map &= member->nic_map;
    }

    return map;
}

static int uct_varuna_home_name_is_in_use(void)
{
    uct_varuna_home_member_t *member;

    ucs_list_for_each(member, &uct_varuna_home_shared.members, list) {
        if (member->in_use > 0) {
            return 1;
        }
    }

    return 0;
}

/* @return The NIC that should be the home. */
static uint8_t uct_varuna_home_name_choose(uint8_t good_map, ucs_time_t now,
                                           ucs_time_t delay)
{
    uint8_t nic   = uct_varuna_home_shared.name.nic;
    uint8_t first = uct_varuna_home_shared.name.first;

    good_map &= uct_varuna_home_name_common_map();
    if (!(good_map & UCS_BIT(nic))) {
        if (good_map == 0) {
            return nic; /* There is no other one */
        }
        return (good_map & UCS_BIT(first)) ? first : ucs_ffs64(good_map);
    }

    if ((nic != first) && (good_map & UCS_BIT(first)) && (delay != 0) &&
        ((now - uct_varuna_home_shared.first_bad) > delay) &&
        !uct_varuna_home_name_is_in_use()) {
        return first;
    }

    return nic;
}

int uct_varuna_home_name_report(uct_varuna_home_member_t *member, uint8_t good_map,
                                unsigned in_use, ucs_time_t now, ucs_time_t delay)
{
    uct_varuna_home_name_t *name = &uct_varuna_home_shared.name;
    int moves                    = 0;
    uct_varuna_home_member_t *other;
    uint8_t nic;

    pthread_mutex_lock(&uct_varuna_home_shared.lock);
    member->in_use = in_use;
    if (!(good_map & UCS_BIT(uct_varuna_home_shared.name.first))) {
        uct_varuna_home_shared.first_bad = now;
    }

    if (name->nic != UCT_VARUNA_HOME_NONE) {
        nic   = uct_varuna_home_name_choose(good_map, now, delay);
        moves = (nic != name->nic);
        if (moves) {
            name->from = name->nic;
            name->to   = nic;
            name->nic  = UCT_VARUNA_HOME_NONE;
            ++name->epoch;
            ucs_list_for_each(other, &uct_varuna_home_shared.members, list) {
                __atomic_store_n(&other->at_rest, 0, __ATOMIC_RELAXED);
            }
            uct_varuna_home_name_kick_all();
        }
    }
    pthread_mutex_unlock(&uct_varuna_home_shared.lock);
    return moves;
}

int uct_varuna_home_name_rest(uct_varuna_home_member_t *member)
{
    int settled = 0;

    pthread_mutex_lock(&uct_varuna_home_shared.lock);
    if (uct_varuna_home_shared.name.nic == UCT_VARUNA_HOME_NONE) {
        __atomic_store_n(&member->at_rest, 1, __ATOMIC_RELAXED);
        settled         = uct_varuna_home_name_check_rest();
    }
    pthread_mutex_unlock(&uct_varuna_home_shared.lock);
    return settled;
}

/* Epochs continue: a peer may know one of the parent's. A member may leave later. */
void uct_varuna_home_name_forked(void)
{
    uct_varuna_home_member_t *member, *tmp;

    pthread_mutex_init(&uct_varuna_home_shared.lock, NULL);
    ucs_list_for_each_safe(member, tmp, &uct_varuna_home_shared.members, list) {
        ucs_list_del(&member->list);
        ucs_list_head_init(&member->list);
    }
    uct_varuna_home_shared.name.nic = UCT_VARUNA_HOME_NONE;
}

/* --- The part of an interface --- */

void uct_varuna_home_nic_init(uct_varuna_home_nic_t *nic, uct_varuna_ctl_t *ctl)
{
    memset(nic, 0, sizeof(*nic));
    nic->ctl            = ctl;
    nic->member.at_rest = 1;
}

void uct_varuna_home_nic_join(uct_varuna_home_nic_t *nic, uint8_t nics)
{
    const uct_varuna_iface_t *iface = nic->ctl->iface;
    uint8_t first                   = iface->links[0].nic;
    uint8_t map                     = 0;
    unsigned link;

    if (nic->joined) {
        return;
    }

    for (link = iface->num_links; link-- > 0;) {
        if (nics & UCS_BIT(iface->links[link].nic)) {
            first = iface->links[link].nic;
            map  |= UCS_BIT(first);
        }
    }

    uct_varuna_home_name_join(&nic->member, first, map, nic->ctl->events.kick_fd);
    nic->joined = 1;
}

uint8_t uct_varuna_home_nic_find_link(const uct_varuna_home_nic_t *nic, uint8_t index)
{
    const uct_varuna_iface_t *iface = nic->ctl->iface;
    unsigned link;

    for (link = 0; link < iface->num_links; ++link) {
        if (iface->links[link].nic == index) {
            return link;
        }
    }

    return UCT_VARUNA_LINK_NONE;
}

/* --- Loopbacks --- */

static ucs_status_t uct_varuna_home_nic_open_loopback(uct_varuna_home_nic_t *nic,
                                                      unsigned link)
{
    uct_varuna_ctl_t *ctl = nic->ctl;

    return uct_varuna_ctl_ep_create(ctl, link, ctl->iface->links[link].device_addr,
                                    ctl->links[link].addr,
                                    &nic->loopbacks[link].ep);
}

/* A failed one is not destroyed in its own callbacks, nor before it is drained: UCX
 * would not give its DCI back, and without DCIs there are no control messages. */
void uct_varuna_home_nic_reap(uct_varuna_home_nic_t *nic, unsigned link)
{
    uct_varuna_loopback_t *loopback = &nic->loopbacks[link];

    if ((loopback->ep != NULL) && loopback->ep->failed) {
        ucs_debug("a loopback failed");
        loopback->dead = loopback->ep;
        loopback->ep   = NULL;
    }

    if ((loopback->dead != NULL) && !nic->ctl->progressing &&
        uct_varuna_ctl_ep_is_drained(nic->ctl, loopback->dead)) {
        uct_varuna_ctl_ep_destroy(nic->ctl, loopback->dead);
        loopback->dead = NULL;
    }
}

int uct_varuna_home_nic_use_loopback(uct_varuna_home_nic_t *nic, unsigned link)
{
    uct_varuna_loopback_t *loopback = &nic->loopbacks[link];

    uct_varuna_home_nic_reap(nic, link);
    return (loopback->dead == NULL) &&
           ((loopback->ep != NULL) ||
            (uct_varuna_home_nic_open_loopback(nic, link) == UCS_OK));
}

void uct_varuna_home_nic_drop_loopback(uct_varuna_home_nic_t *nic, unsigned link)
{
    uct_varuna_loopback_t *loopback = &nic->loopbacks[link];

    if (loopback->ep != NULL) {
        uct_varuna_ctl_ep_destroy(nic->ctl, loopback->ep);
        loopback->ep = NULL;
    }
    if (loopback->dead != NULL) {
        uct_varuna_ctl_ep_destroy(nic->ctl, loopback->dead);
        loopback->dead = NULL;
    }
}

void uct_varuna_home_nic_cleanup(uct_varuna_home_nic_t *nic)
{
    unsigned link;

    for (link = 0; link < UCT_VARUNA_MAX_LINKS; ++link) {
        uct_varuna_home_nic_drop_loopback(nic, link);
    }

    /* Nothing of ours is on any NIC now */
    if (nic->joined) {
        uct_varuna_home_name_leave(&nic->member);
    }
}
