/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * See emu_keep.h.
 */

#include "emu_keep.h"
#include "emu_reply.h"
#include "emu_timed.h"
#include "emu_wire_show.h"
#include "../core/emu_proc.h"
#include "../fault/emu_fault.h"

#include <errno.h>
#include <sys/stat.h>
#include <time.h>

/* How often it looks whether its fabric is still there */
#define EMU_KEEP_LOOK_NS 1000000000ul

#define EMU_KEEP_TRIES 20

static const emu_wire_ends_t *emu_keep_ends;

/* Instead of the responder's: the answer takes its time */
static int emu_keep_execute(emu_pkt_t *pkt, emu_rsp_t *rsp_p)
{
    int is_answered = emu_keep_ends->request(pkt, rsp_p);

    if (emu_fault_active()) {
        emu_wire_show_exec(pkt, rsp_p);
    }

    if (is_answered) {
        emu_reply_send(pkt, rsp_p);
    }
    rsp_p->executed = 0; /* The rules have seen it: of a late packet the caller shows it */
    return 0;
}

static void emu_keep_response(const emu_pkt_t *pkt, emu_rsp_t *rsp)
{
    emu_keep_ends->response(pkt, rsp);
}

static void emu_keep_respond(emu_qp_t *qp, const emu_pkt_t *pkt, emu_rsp_t *rsp)
{
    emu_keep_ends->respond(qp, pkt, rsp);
}

/* For packets that rules delay still more */
static const emu_wire_ends_t emu_keep_late_ends = {
    .request  = emu_keep_execute,
    .response = emu_keep_response,
    .respond  = emu_keep_respond
};

/* Rules see a packet where it arrives: what was sent before it has arrived then, so
 * that a rule which cuts the link loses this packet and all later ones */
static void emu_keep_request(emu_timed_t *timed)
{
    emu_rsp_t rsp;

    if (emu_fault_active()) {
        if (!emu_wire_judge(&emu_keep_late_ends, &timed->pkt)) {
            return;
        }
        if (!emu_wire_reaches(&timed->pkt)) {
            emu_wire_lost(&timed->pkt, EMU_CNT_DROPS_LINK);
            return;
        }
    }

    (void)emu_keep_execute(&timed->pkt, &rsp);
    emu_keep_ends->response(&timed->pkt, NULL);
}

static void emu_keep_reply(emu_timed_t *timed)
{
    const emu_pkt_t *pkt = &timed->pkt;
    uint32_t num         = (timed->rsp.type == EMU_RSP_READ) ? pkt->num_psn : 1;
    uint32_t pkt_no      = 1 + ((num == 1) ? 0 :
                                emu_psn_diff(timed->rsp.psn, pkt->psn));

    /* Rules count acknowledgements of messages, as they are without time */
    if (!emu_fault_active() || timed->rsp.is_partial ||
        (emu_wire_judge_rsp(&emu_keep_late_ends, pkt, &timed->rsp, 0, pkt_no,
                            num) == EMU_WIRE_PASSES)) {
        emu_keep_ends->response(pkt, &timed->rsp);
    }
}

static void emu_keep_arrived(emu_flight_t *flight)
{
    emu_timed_t *timed = emu_timed(flight);

    if ((flight->src == flight->dst) && !emu_wire_passes(&timed->pkt)) {
        return; /* Within a NIC whose port is down */
    }

    if (flight->kind == EMU_TIMED_REQUEST) {
        emu_keep_request(timed);
    } else {
        emu_keep_reply(timed);
    }
}

static void emu_keep_lost(emu_flight_t *flight, emu_counter_t why)
{
    emu_timed_t *timed = emu_timed(flight);

    if (flight->kind == EMU_TIMED_REQUEST) {
        emu_wire_lost(&timed->pkt, why);
    } else {
        emu_wire_lost_reply(&timed->pkt, &timed->rsp, why);
    }
}

static void emu_keep_handle(emu_pipe_event_t event, emu_flight_t *flight)
{
    switch (event) {
    case EMU_PIPE_ARRIVED:
        emu_keep_arrived(flight);
        break;
    case EMU_PIPE_LOST:
        emu_keep_lost(flight, EMU_CNT_DROPS_LINK);
        break;
    default:
        emu_keep_lost(flight, EMU_CNT_DROPS_QUEUE);
        break;
    }
    emu_pipe_release(flight);
}

static int emu_keep_is_over(void)
{
    struct stat st;

    return __atomic_load_n(&emu_fabric->pipe->keeper.stop, __ATOMIC_ACQUIRE) ||
           (fstat(emu_fabric_fd, &st) != 0) || (st.st_nlink == 0);
}

static void emu_keep_loop(void (*resume)(uint32_t index))
{
    emu_pipe_keeper_t *keeper = &emu_fabric->pipe->keeper;
    uint64_t look_ns          = 0;
    emu_flight_t *flight;
    emu_pipe_event_t event;
    uint64_t value;
    uint32_t kick;

    for (;;) {
        kick  = __atomic_load_n(&keeper->kick, __ATOMIC_SEQ_CST);
        event = emu_pipe_step(&flight, &value);
        if (event == EMU_PIPE_RESUME) {
            if (value < EMU_MAX_QPS) {
                resume(value);
            } else {
                emu_reply_resume(value - EMU_MAX_QPS);
            }
        } else if (event != EMU_PIPE_NOTHING) {
            emu_keep_handle(event, flight);
        }

        if (emu_now_ns() >= look_ns) {
            if (emu_keep_is_over()) {
                return;
            }
            look_ns = emu_now_ns() + EMU_KEEP_LOOK_NS;
        }
        if (event == EMU_PIPE_NOTHING) {
            emu_pipe_sleep(kick, emu_min(value, look_ns));
            if (__atomic_load_n(&keeper->stop, __ATOMIC_ACQUIRE)) {
                return;
            }
        }
    }
}

int emu_keep_run(const emu_wire_ends_t *ends, void (*resume)(uint32_t index))
{
    emu_pipe_keeper_t *keeper = &emu_fabric->pipe->keeper;
    struct timespec pause     = { .tv_nsec = 1000000 };
    unsigned i;

    /* A process that asks whether there is a keeper holds it for a moment */
    for (i = 0; !emu_trylock(&keeper->life); ++i) {
        if (i == EMU_KEEP_TRIES) {
            return -EEXIST;
        }
        nanosleep(&pause, NULL);
    }

    emu_keep_ends = ends;
    __atomic_store_n(&keeper->stop, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&keeper->proc, emu_self->index + 1, __ATOMIC_RELEASE);
    emu_keep_loop(resume);
    __atomic_store_n(&keeper->proc, 0, __ATOMIC_RELEASE);
    emu_unlock(&keeper->life);
    return 0;
}

int emu_keep_proc(void)
{
    emu_pipe_keeper_t *keeper = &emu_fabric->pipe->keeper;

    if (emu_trylock(&keeper->life)) {
        emu_unlock(&keeper->life);
        return -1;
    }
    return (int)__atomic_load_n(&keeper->proc, __ATOMIC_ACQUIRE) - 1;
}

void emu_keep_stop(void)
{
    __atomic_store_n(&emu_fabric->pipe->keeper.stop, 1, __ATOMIC_RELEASE);
    emu_pipe_kick();
}
