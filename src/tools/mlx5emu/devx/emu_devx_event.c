/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED. See LICENSE for terms (BSD-3-Clause). */

/*
 * Events of DEVX objects. The engine writes events of an object to one channel; which of them the program subscribed to is looked up when they are
 * read. Called by programs.
 */

#include "emu_devx.h"

#include <stdlib.h>
#include <unistd.h>

#define EMU_DEVX_EVENT_NONE UINT32_MAX /* Programs cannot subscribe to it */


typedef struct emu_devx_chan {
    struct mlx5dv_devx_event_channel dv;
    struct ibv_context               *context;
    emu_chan_t                       *chan;
    emu_devx_obj_t                   *objs;   /* Subscribed, by next_obj */
} emu_devx_chan_t;


/* Protects subscriptions */
static pthread_mutex_t emu_devx_event_lock = PTHREAD_MUTEX_INITIALIZER;


static emu_devx_chan_t *
emu_devx_chan(struct mlx5dv_devx_event_channel *channel)
{
    return emu_container_of(channel, emu_devx_chan_t, dv);
}

/* Events of the engine as the device numbers them */
static unsigned emu_devx_event_number(uint32_t type)
{
    switch (type) {
    case EMU_EVENT_CQ:
        return EMU_DEVX_EVENT_COMP;
    case IBV_EVENT_CQ_ERR:
        return EMU_DEVX_EVENT_CQ_ERROR;
    case IBV_EVENT_QP_FATAL:
        return EMU_DEVX_EVENT_WQ_CATAS;
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        return EMU_DEVX_EVENT_LAST_WQE;
    case IBV_EVENT_QP_REQ_ERR:
        return EMU_DEVX_EVENT_WQ_INVAL;
    case IBV_EVENT_QP_ACCESS_ERR:
        return EMU_DEVX_EVENT_WQ_ACCESS;
    default:
        return EMU_DEVX_EVENT_NONE;
    }
}

struct mlx5dv_devx_event_channel *
mlx5dv_devx_create_event_channel(struct ibv_context *context,
                                 enum mlx5dv_devx_create_event_channel_flags
                                 flags)
{
    emu_devx_chan_t *chan;
    int ret;

    if ((context == NULL) || !emu_vctx_is_mine(context) ||
        !emu_vctx(context)->devx) {
        return emu_verbs_fail(EINVAL);
    }

    if (flags != MLX5_IB_UAPI_DEVX_CR_EV_CH_FLAGS_OMIT_DATA) {
        return emu_refuse_object(__func__, "data of events is");
    }

    chan = calloc(1, sizeof(*chan));
    if (chan == NULL) {
        return emu_verbs_fail(ENOMEM);
    }

    ret = emu_chan_open(&chan->chan, &chan->dv.fd);
    if (ret != 0) {
        free(chan);
        return emu_verbs_fail(ret);
    }

    chan->context = context;
    return &chan->dv;
}

static void emu_devx_set_async(emu_devx_obj_t *obj, emu_chan_t *chan)
{
    if (obj->type == EMU_DEVX_CQ) {
        emu_cq_set_chans(obj->cq, chan, chan);
        return;
    }

    emu_lock(&obj->qp->resp_lock);
    obj->qp->async = chan;
    emu_unlock(&obj->qp->resp_lock);
}

void mlx5dv_devx_destroy_event_channel(struct mlx5dv_devx_event_channel *channel)
{
    emu_devx_chan_t *chan;
    emu_devx_obj_t *obj;
    int is_mine;

    if (channel == NULL) {
        return;
    }

    chan    = emu_devx_chan(channel);
    is_mine = emu_vctx_is_mine(chan->context);
    pthread_mutex_lock(&emu_devx_event_lock);
    while (chan->objs != NULL) {
        obj          = chan->objs;
        chan->objs   = obj->next_obj;
        obj->channel = NULL;
        if (is_mine) {
            emu_devx_set_async(obj, NULL);
        }
    }
    pthread_mutex_unlock(&emu_devx_event_lock);

    if (is_mine) {
        emu_chan_close(chan->chan);
    } else {
        close(channel->fd);
    }
    free(chan);
}

void emu_devx_unsubscribe(emu_devx_obj_t *obj)
{
    emu_devx_obj_t **link;

    pthread_mutex_lock(&emu_devx_event_lock);
    if (obj->channel != NULL) {
        for (link = &emu_devx_chan(obj->channel)->objs; *link != obj;
             link = &(*link)->next_obj);
        *link        = obj->next_obj;
        obj->channel = NULL;
    }
    pthread_mutex_unlock(&emu_devx_event_lock);
}

static int emu_devx_add_sub(emu_devx_obj_t *obj, unsigned event,
                            uint64_t cookie)
{
    unsigned i;

    for (i = 0; i < EMU_DEVX_MAX_EVENTS; ++i) {
        if (!obj->subs[i].is_used) {
            obj->subs[i].is_used = 1;
            obj->subs[i].event   = event;
            obj->subs[i].cookie  = cookie;
            return 0;
        }
    }

    return ENOMEM;
}

int mlx5dv_devx_subscribe_devx_event(struct mlx5dv_devx_event_channel *channel,
                                     struct mlx5dv_devx_obj *obj,
                                     uint16_t events_sz, uint16_t events_num[],
                                     uint64_t cookie)
{
    unsigned count = events_sz / sizeof(events_num[0]);
    emu_devx_chan_t *chan;
    unsigned i;
    int ret = 0;

    if ((channel == NULL) || (events_num == NULL) || (count == 0)) {
        return emu_verbs_error(EINVAL);
    }

    /* Events of the port, of receive pools; several channels for an object */
    chan = emu_devx_chan(channel);
    if ((obj == NULL) ||
        ((obj->type != EMU_DEVX_QP) && (obj->type != EMU_DEVX_CQ) &&
         (obj->type != EMU_DEVX_DCT)) ||
        (obj->context != chan->context) || !emu_vctx_is_mine(chan->context)) {
        return emu_refuse(__func__, "events of other objects than QPs, CQs and"
                          " DCTs are");
    }

    pthread_mutex_lock(&emu_devx_event_lock);
    if (obj->channel == NULL) {
        obj->channel  = channel;
        obj->next_obj = chan->objs;
        chan->objs    = obj;
        emu_devx_set_async(obj, chan->chan);
    } else if (obj->channel != channel) {
        ret = emu_refuse(__func__, "several channels for an object are");
    }

    for (i = 0; (i < count) && (ret == 0); ++i) {
        ret = emu_devx_add_sub(obj, events_num[i], cookie);
    }
    pthread_mutex_unlock(&emu_devx_event_lock);
    return (ret == 0) ? 0 : emu_verbs_error(ret);
}

/* Whether the program wants an event, and with which cookie */
static int emu_devx_match(const emu_event_t *event, uint64_t *cookie_p)
{
    unsigned number = emu_devx_event_number(event->type);
    emu_devx_obj_t *obj;
    int ret         = 0;
    unsigned i;

    pthread_mutex_lock(&emu_devx_event_lock);
    obj = emu_vreg_find_count(event->cookie,
                              offsetof(emu_devx_obj_t, events));
    for (i = 0; (obj != NULL) && (i < EMU_DEVX_MAX_EVENTS) && !ret; ++i) {
        if (obj->subs[i].is_used && (obj->subs[i].event == number)) {
            *cookie_p = obj->subs[i].cookie;
            ret       = 1;
        }
    }
    pthread_mutex_unlock(&emu_devx_event_lock);
    return ret;
}

ssize_t mlx5dv_devx_get_event(struct mlx5dv_devx_event_channel *channel,
                              struct mlx5dv_devx_async_event_hdr *event_data,
                              size_t event_resp_len)
{
    uint64_t cookie = 0;
    emu_event_t event;
    ssize_t nread;

    if ((channel == NULL) || (event_data == NULL) ||
        (event_resp_len < sizeof(*event_data))) {
        errno = EINVAL;
        return -1;
    }

    do {
        nread = read(channel->fd, &event, sizeof(event));
        if (nread != (ssize_t)sizeof(event)) {
            errno = (nread < 0) ? errno : EIO;
            return -1;
        }
    } while (!emu_devx_match(&event, &cookie));

    event_data->cookie = cookie;
    return sizeof(*event_data);
}
