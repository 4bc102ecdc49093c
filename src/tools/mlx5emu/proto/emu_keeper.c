/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What the keeper of a fabric that has time does with packets and queue pairs. It is
 * the NIC of all hosts: a program that stops does not stop it.
 */

#include "emu_engine.h"
#include "emu_proto.h"
#include "../core/emu_fabric.h"
#include "../wire/emu_keep.h"

/* The port has room for more of a queue pair */
static void emu_req_resume(uint32_t index)
{
    emu_qp_t *qp = &emu_fabric->qps[index];

    if (!qp->locks_ready) {
        return;
    }

    emu_lock(&qp->req_lock);
    if (qp->used == 1) {
        qp->req_waiting &= ~EMU_REQ_WAITS_PORT;
        if (qp->req_state == IBV_QPS_RTS) {
            emu_req_run(qp);
        }
    }
    emu_unlock(&qp->req_lock);
    emu_run_deferred();
}

int emu_keeper_run(void)
{
    return emu_keep_run(&emu_req_ends, emu_req_resume);
}
