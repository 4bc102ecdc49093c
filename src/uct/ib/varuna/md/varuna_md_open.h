/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Opens the inner memory domain of every link's NIC. Each user region is registered on
 * all of them, and one key per NIC is packed (paper, section "Memory Management").
 * Nothing here depends on which link is up.
 */
#ifndef UCT_VARUNA_MD_OPEN_H_
#define UCT_VARUNA_MD_OPEN_H_

#include "varuna_md.h"

#include <uct/base/uct_component.h>
#include <uct/base/uct_iface.h>

typedef struct uct_varuna_md_config {
    uct_md_config_t            super;
    UCS_CONFIG_STRING_ARRAY_FIELD(names) links; /* UCX_RC_VARUNA_LINKS */
    unsigned                   lanes;           /* uct_varuna_lanes_names */
    unsigned                   atomic_mode;
    int                        dmabuf;
    char                       *ucx_check; /* For UCX's list of options: varuna_ucx_check.c
                                            * has read it before */
    unsigned long              vqp_links;
} uct_varuna_md_config_t;

extern ucs_config_field_t uct_varuna_md_config_table[];

/**
 * Open a memory domain over those of the links.
 *
 * A NIC that dies is left out of all later registrations, as its links are dead as
 * well. Then keys are packed without it.
 *
 * @param [in]  component  Our component.
 * @param [in]  ib         Inner component.
 * @param [in]  config     Which NICs are links.
 * @param [out] md_p       Memory domain, to be closed by uct_md_close().
 *
 * @return UCS_ERR_NO_DEVICE if no NIC can be a link; it is logged only if one
 *         was asked for by name.
 */
ucs_status_t uct_varuna_md_create(uct_component_t *component,
                                  uct_component_h ib,
                                  const uct_varuna_md_config_t *config,
                                  uct_md_h *md_p);

/** As uct_tl_t::query_devices. */
ucs_status_t uct_varuna_query_devices(uct_md_h md,
                                      uct_tl_device_resource_t **devices_p,
                                      unsigned *num_devices_p);

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

/** @return Whether it is known by now, without asking, that the NIC has ended. Any thread. */
int uct_varuna_md_has_ended(const uct_varuna_md_t *md, unsigned nic);

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

#endif
