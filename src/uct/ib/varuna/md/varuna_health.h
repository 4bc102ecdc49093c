/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The health of NICs: who finds out that one is dead or short of something notes it here,
 * and all others ask here. On a NIC that is dead nothing is posted, registered or created,
 * and the others continue without it. The interfaces of a process share that.
 *
 * In place of a region that a dead NIC could not register, the NIC's *spare* is used, a
 * region that was registered in time. Requests are posted on lanes of that NIC until
 * the link table knows of its death; they fail, but must be postable.
 *
 * The same holds for a NIC that has no region left, while others have: requests that need the
 * region fail there, and are posted on other links (requester/varuna_lane.h). A NIC that has
 * not even a spare is barred: no interface opens lanes on it.
 */
#ifndef UCT_VARUNA_HEALTH_H_
#define UCT_VARUNA_HEALTH_H_

#include <uct/ib/varuna/ucx/varuna_compat.h>
#include "varuna_md.h"

/* Loop over NICs which have a memory domain of their own: of the ports of one
 * device, only over the first which is a link */
#define uct_varuna_md_for_each_inner(_md, _nic) \
    for ((_nic) = 0; (_nic) < (_md)->num_nics; ++(_nic)) \
        if (uct_varuna_md_inner_owner((_md), (_nic)) == (_nic))

/* @return The first NIC whose memory domain is that of @a nic, or a number that
 * is none if @a nic has no memory domain, or not now. */
static inline unsigned uct_varuna_md_inner_owner(const uct_varuna_md_t *md,
                                                 unsigned nic)
{
    return (__atomic_load_n(&md->nics[nic].md, __ATOMIC_RELAXED) == NULL) ?
           UCT_VARUNA_MAX_LINKS : md->nics[nic].owner;
}

/** @return Whether the region is not registered on this NIC, which was dead or short */
static inline int uct_varuna_md_is_spare(const uct_varuna_md_t *md,
                                         const uct_varuna_mem_t *mem,
                                         unsigned nic)
{
    return (mem != NULL) && ((mem->inner[nic] == NULL) ||
                             (mem->inner[nic] == md->nics[nic].spare));
}

/** Before a NIC is used as a link: make its spare. @return An error if it registers nothing. */
ucs_status_t uct_varuna_md_prepare_nic(uct_varuna_md_t *md, unsigned nic);

/** @return Whether it was found out that a NIC is dead. It is not asked. Any thread. */
int uct_varuna_md_is_nic_dead(uct_varuna_md_t *md, unsigned nic);

/** Its life is over: it counts as dead, and as one that does nothing more. Lock of the memory
 *  domain. */
void uct_varuna_md_end_now(uct_varuna_md_t *md, unsigned owner);

/** It was opened again. Lock of the memory domain; the NIC's thread. */
void uct_varuna_md_end_renew(uct_varuna_md_t *md, unsigned owner);

/** Somebody has found out that a NIC is dead: nobody uses it any more. The user is told of
 *  the first @a reason. Any thread. */
void uct_varuna_md_nic_died(uct_varuna_md_t *md, unsigned nic, const char *reason);

/** Now and then: find out whether a NIC that is dead works again, and open it anew then
 *  (varuna_return.c). It is asked on its own thread, less and less often. Any thread. */
void uct_varuna_md_look_for_return(uct_varuna_md_t *md, unsigned nic, ucs_time_t now);

/** A registration failed: ask whether the NIC is dead. @return Nonzero if it is. */
int uct_varuna_md_check_nic(uct_varuna_md_t *md, unsigned nic);

/** @return What is known of a NIC. Any thread. */
uct_varuna_nic_state_t uct_varuna_md_nic_state(uct_varuna_md_t *md, unsigned nic);

/** For people, by uct_varuna_nic_state_t */
extern const char *uct_varuna_nic_state_names[];

/**
 * Register on one NIC. If that is dead, its spare is returned.
 *
 * @param [in] is_urgent  Ask it, even if it had no region left a moment ago.
 *
 * @return UCS_ERR_NO_RESOURCE if it was not asked for that reason.
 */
ucs_status_t uct_varuna_md_reg_inner(uct_varuna_md_t *md, unsigned nic,
                                     void *address, size_t length,
                                     uct_varuna_reg_arg_t arg, int is_urgent,
                                     uct_mem_h *memh_p);

/**
 * Other NICs have registered what this one has not: it is short of regions.
 *
 * @param [in]  status  Of uct_varuna_md_reg_inner().
 * @param [in]  device  Whose memory it is. What a NIC refuses of a device's says nothing about
 *                      other memory: the user is told once.
 * @param [out] memh_p  What is used there instead; NULL: nothing is posted there.
 *
 * @return UCS_OK, or @a status if the region is not to be used without that NIC.
 */
ucs_status_t uct_varuna_md_do_without(uct_varuna_md_t *md, unsigned nic,
                                      ucs_status_t status, uint8_t device,
                                      uct_mem_h *memh_p);

/** @return What spares register, one page for all; NULL if there is no memory. The lock of the
 *  memory domain is held. */
void *uct_varuna_md_spare_page(uct_varuna_md_t *md);

/** Release what the functions above have made. */
void uct_varuna_md_release_spares(uct_varuna_md_t *md);

/* --- The end of a NIC --- */

/* Since when a NIC that is gone, or may be, does nothing more. The driver raises DEVICE_FATAL
 * *before* it resets the device, which may send and write until then. Commands of the context
 * that carries data fail once the driver has taken the device away, also if the event got lost
 * or nobody listens to it. */

/**
 * Ask the NIC, on its own thread, unless it was found to have ended before.
 *
 * @return When a command failed, as far as is known by now; 0: none has. To be called until
 *         it returns something else. A NIC that has no memory domain here ended long ago. Never
 *         waits. Any thread.
 */
ucs_time_t uct_varuna_md_ended_at(uct_varuna_md_t *md, unsigned nic);

/** @return Whether all that it had sent and accepted has had a @a lifetime since then. */
static inline int uct_varuna_md_is_at_rest(uct_varuna_md_t *md, unsigned nic, ucs_time_t now,
                                           ucs_time_t lifetime)
{
    ucs_time_t ended_at = uct_varuna_md_ended_at(md, nic);

    return (ended_at != 0) && (now >= (ended_at + lifetime));
}

/** Release what was made for that. @param [in] is_left  The NIC's thread still
 *  uses it. */
void uct_varuna_md_end_release(uct_varuna_md_t *md, unsigned nic, int is_left);

/* --- Shortage --- */

/* What the NICs of a memory domain are short of. All interfaces of the memory domain share
 * that: together they ask a NIC no more often than one would. Any thread. */

/** @return Whether a NIC is to be asked for one more at @a now. Not if it is dead. */
int uct_varuna_md_may_ask(uct_varuna_md_t *md, unsigned nic, uct_varuna_short_t what,
                          ucs_time_t now);

/** It has answered with @a status: see uct_varuna_shortage_note(). */
void uct_varuna_md_note_answer(uct_varuna_md_t *md, unsigned nic, uct_varuna_short_t what,
                               ucs_status_t status, ucs_time_t now);

/**
 * The same for an address handle, which depends on the peer: others may get theirs.
 *
 * @param [in] backoff  The peer's own, by which it asks.
 */
void uct_varuna_md_note_handle(uct_varuna_md_t *md, unsigned nic,
                               uct_varuna_backoff_t *backoff, ucs_status_t status,
                               ucs_time_t now);

/* --- The lives of a NIC --- */

/* The lives of a NIC: its device is closed and opened again while the process runs, after a
 * reset, or because an administrator removes and adds it. Its number stays; its generation
 * says which life it is, so that no key or address of one life is used in another.
 *
 *                 remove                all links left
 *        OPEN -----------> LEAVING -------------------------+
 *         ^ |                 | add                         |
 *         | |<----------------+                             v
 *         | |  dead, and the device answers again      +--------+  regions are deregistered, one in
 *         | +----------------------------------------->| ENDING |  each command; links are closed;
 *         |                                            +--------+  what has begun ends
 *         | all regions are registered                      | nothing uses it
 *    BEGINNING <------------------------------ CLOSED <-----+
 *               opened again: generation + 1
 *
 * What happens from ENDING on is done by the NIC's own thread, after all commands that were given
 * to it before. In BEGINNING new regions are registered there too, and a region that is not
 * registered yet uses the spare, as on a NIC that is short of regions. Interfaces open their
 * links again when it is OPEN. */

/** @return The uct_varuna_life_t of a NIC. Any thread. */
static inline unsigned uct_varuna_md_life(const uct_varuna_md_t *md, unsigned nic)
{
    return __atomic_load_n(&md->nics[md->nics[nic].owner].life.state, __ATOMIC_ACQUIRE);
}

/** A NIC that is dead answers: end its life, and open it again. What fails is tried again,
 *  less and less often. @param [in] owner  The first port of the device. Any thread. */
void uct_varuna_return_begin(uct_varuna_md_t *md, unsigned owner);

/** @return Whether a NIC can be closed and opened again by this process. Any thread. */
int uct_varuna_md_can_remove_nic(const uct_varuna_md_t *md, unsigned nic);

/** An administrator removes or adds a NIC: nothing happens if that is so already. Any thread. */
void uct_varuna_md_remove_nic(uct_varuna_md_t *md, unsigned nic, int is_removed);

/** The memory domain is closed: nothing is opened or registered any more. Never waits. */
void uct_varuna_returns_stop(uct_varuna_md_t *md);

/* --- Users --- */

/**
 * Begin to use a NIC, with others of its device.
 *
 * @return Nonzero if uct_varuna_md_unuse() is to be called; zero if its life is over. Any
 *         thread.
 */
int uct_varuna_md_use(uct_varuna_md_t *md, unsigned nic);

void uct_varuna_md_unuse(uct_varuna_md_t *md, unsigned nic);

/** The same for all devices whose life is not over. @return The first port of each. */
uint8_t uct_varuna_md_use_all(uct_varuna_md_t *md);

void uct_varuna_md_unuse_all(uct_varuna_md_t *md, uint8_t used);

/** An interface opens a link. @return Whether it may. It calls the other two once each. */
int uct_varuna_md_link_open(uct_varuna_md_t *md, unsigned nic);

/**
 * Say whether traffic uses a link of a NIC that is to be removed. Peers may come back to it, until
 * traffic has left all links of the NIC.
 *
 * @param [inout] left_p  Number of the removal in which it was said of this link that none does;
 *                        0 at first.
 */
void uct_varuna_md_link_set_left(uct_varuna_md_t *md, unsigned nic, int is_left,
                                 uint32_t *left_p);

/** All of a link is closed. @param [in] left  See uct_varuna_md_link_set_left(). */
void uct_varuna_md_link_closed(uct_varuna_md_t *md, unsigned nic, uint32_t left);

/* --- What exists --- */

/** A region is registered, on the devices @a used. */
void uct_varuna_return_add_mem(uct_varuna_md_t *md, uct_varuna_mem_t *mem, uint8_t used);

/** It is about to be deregistered: it is registered nowhere else from now on. @return The
 *  devices to be given to uct_varuna_md_unuse_all() after that. */
uint8_t uct_varuna_return_remove_mem(uct_varuna_md_t *md, uct_varuna_mem_t *mem);

/* --- Queues of commands --- */

/* The queues of commands to the NICs of a memory domain. */

ucs_status_t uct_varuna_md_cmds_init(uct_varuna_md_t *md);

/** Destroy them. They have no threads. */

/** End the threads. The memory domain of a NIC that hangs is not closed afterwards, see
 *  uct_varuna_cmds_destroy(). */
void uct_varuna_md_cmds_cleanup(uct_varuna_md_t *md);

/** @return The queue of a NIC, NULL if there is none. */
uct_varuna_cmds_t *uct_varuna_md_cmds(const uct_varuna_md_t *md, unsigned nic);

/** @return That for its address handles, which nothing else uses; NULL if there is none. */
uct_varuna_cmds_t *uct_varuna_md_handles(const uct_varuna_md_t *md, unsigned nic);

#endif
