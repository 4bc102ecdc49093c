/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED. See LICENSE for terms (BSD-3-Clause). */

/*
 * Completion channels and asynchronous events. An event is read from the
 * descriptor which the program polls; whichever process caused it wrote it
 * there. Called by programs.
 */

#include "emu_verbs.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>


/* Read one event. Blocks unless the program made the descriptor non-blocking;
 * a signal ends that, as programs expect which stop that way.
 *
 * @return 0, or -1 with errno set. */
static int emu_vevent_read(int fd, emu_event_t *event_p)
{
    ssize_t nread = read(fd, event_p, sizeof(*event_p));

    if (nread == (ssize_t)sizeof(*event_p)) {
        return 0;
    } else if (nread >= 0) {
        errno = EIO;
    }

    return -1;
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
    emu_vchan_t *vchan;
    int ret;

    if ((context == NULL) || !emu_vctx_is_mine(context)) {
        return emu_verbs_fail(EINVAL);
    }

    vchan = calloc(1, sizeof(*vchan));
    if (vchan == NULL) {
        return emu_verbs_fail(ENOMEM);
    }

    ret = emu_chan_open(&vchan->chan, &vchan->ibv.fd);
    if (ret != 0) {
        free(vchan);
        return emu_verbs_fail(ret);
    }

    vchan->ibv.context = context;
    return &vchan->ibv;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
    emu_vchan_t *vchan;

    if (channel == NULL) {
        return emu_verbs_error(EINVAL);
    }

    vchan = emu_container_of(channel, emu_vchan_t, ibv);
    if (__atomic_load_n(&channel->refcnt, __ATOMIC_RELAXED) != 0) {
        return emu_verbs_error(EBUSY);
    }

    if (emu_vctx_is_mine(channel->context)) {
        emu_chan_close(vchan->chan);
    } else {
        close(channel->fd);
    }

    free(vchan);
    return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq,
                     void **cq_context)
{
    emu_event_t event;
    emu_vcq_t *vcq;

    if ((channel == NULL) || (cq == NULL) || (cq_context == NULL)) {
        errno = EINVAL;
        return -1;
    }

    do {
        if (emu_vevent_read(channel->fd, &event) != 0) {
            return -1;
        }

        /* An event may be older than the destruction of its queue */
        vcq = emu_vreg_find_count(event.cookie,
                                  offsetof(emu_vcq_t, comp_events));
    } while (vcq == NULL);

    *cq         = &vcq->ibv;
    *cq_context = vcq->ibv.cq_context;
    return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
    if (cq == NULL) {
        return;
    }

    pthread_mutex_lock(&cq->mutex);
    cq->comp_events_completed += nevents;
    pthread_cond_signal(&cq->cond);
    pthread_mutex_unlock(&cq->mutex);
}

/* Find what an event is about, and count it as given out.
 *
 * @return 0, or ENOENT if the object is gone. */
static int emu_vevent_resolve(const emu_event_t *event,
                              struct ibv_async_event *async_event)
{
    emu_vqp_t *vqp;
    emu_vcq_t *vcq;
    emu_vsrq_t *vsrq;

    async_event->event_type = event->type;
    switch (async_event->event_type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        vqp = emu_vreg_find_count(event->cookie,
                                  offsetof(emu_vqp_t, async_events));
        if (vqp == NULL) {
            return ENOENT;
        }
        async_event->element.qp = &vqp->ibv;
        break;
    case IBV_EVENT_CQ_ERR:
        vcq = emu_vreg_find_count(event->cookie,
                                  offsetof(emu_vcq_t, async_events));
        if (vcq == NULL) {
            return ENOENT;
        }
        async_event->element.cq = &vcq->ibv;
        break;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        vsrq = emu_vreg_find_count(event->cookie,
                                   offsetof(emu_vsrq_t, async_events));
        if (vsrq == NULL) {
            return ENOENT;
        }
        async_event->element.srq = &vsrq->ibv;
        break;
    default:
        async_event->element.port_num = event->num;
        break;
    }

    return 0;
}

int ibv_get_async_event(struct ibv_context *context,
                        struct ibv_async_event *event)
{
    emu_event_t read_event;

    if ((context == NULL) || (event == NULL)) {
        errno = EINVAL;
        return -1;
    }

    memset(event, 0, sizeof(*event));
    do {
        if (emu_vevent_read(context->async_fd, &read_event) != 0) {
            return -1;
        }
    } while (emu_vevent_resolve(&read_event, event) != 0);

    return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
    struct ibv_qp *qp;
    struct ibv_cq *cq;
    struct ibv_srq *srq;

    switch (event->event_type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        qp = event->element.qp;
        pthread_mutex_lock(&qp->mutex);
        ++qp->events_completed;
        pthread_cond_signal(&qp->cond);
        pthread_mutex_unlock(&qp->mutex);
        break;
    case IBV_EVENT_CQ_ERR:
        cq = event->element.cq;
        pthread_mutex_lock(&cq->mutex);
        ++cq->async_events_completed;
        pthread_cond_signal(&cq->cond);
        pthread_mutex_unlock(&cq->mutex);
        break;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        srq = event->element.srq;
        pthread_mutex_lock(&srq->mutex);
        ++srq->events_completed;
        pthread_cond_signal(&srq->cond);
        pthread_mutex_unlock(&srq->mutex);
        break;
    default:
        break; /* Nothing waits for events of ports */
    }
}
