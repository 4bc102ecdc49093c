/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Listens to port events. See varuna_detector.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_detector.h"

#include <ucs/async/async.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/string.h>
#include <ucs/sys/sys.h>
#include <infiniband/verbs.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

typedef struct uct_varuna_detector_port {
    uct_varuna_detector_t      *detector;
    struct ibv_context         *context;   /* NULL: not used */
    uint8_t                    port_num;   /* On its device, from 1 */
    uint8_t                    gone;       /* Atomic */
    char                       name[UCT_DEVICE_NAME_MAX];
} uct_varuna_detector_port_t;

struct uct_varuna_detector {
    ucs_async_context_t        *async;
    uct_varuna_detector_cb_t   cb;
    void                       *arg;
    uct_varuna_detector_port_t ports[UCT_VARUNA_MAX_LINKS];
};


static void uct_varuna_detector_report(uct_varuna_detector_port_t *port,
                                       uct_varuna_port_event_t event)
{
    static const char *names[] = {
        [UCT_VARUNA_PORT_DOWN]    = "is down",
        [UCT_VARUNA_PORT_UP]      = "is up",
        [UCT_VARUNA_PORT_ADDRESS] = "may have another address"
    };
    uct_varuna_detector_t *detector = port->detector;

    ucs_debug("port %s %s", port->name, names[event]);
    detector->cb(detector->arg, port - detector->ports, event);
}

static void uct_varuna_detector_set_gone(uct_varuna_detector_port_t *port)
{
    __atomic_store_n(&port->gone, 1, __ATOMIC_RELAXED);
    uct_varuna_detector_report(port, UCT_VARUNA_PORT_DOWN);
}

int uct_varuna_detector_is_gone(const uct_varuna_detector_t *detector,
                                unsigned port_index)
{
    return __atomic_load_n(&detector->ports[port_index].gone, __ATOMIC_RELAXED);
}

void uct_varuna_detector_check(uct_varuna_detector_t *detector,
                               unsigned port_index, int was_up)
{
    uct_varuna_detector_port_t *port = &detector->ports[port_index];
    struct ibv_port_attr attr;

    if ((port->context == NULL) || port->gone) {
        return;
    }

    if (ibv_query_port(port->context, port->port_num, &attr) != 0) {
        ucs_diag("%s does not answer any more: %m", port->name);
        uct_varuna_detector_set_gone(port);
    } else if ((attr.state != IBV_PORT_ACTIVE) && was_up) {
        uct_varuna_detector_report(port, UCT_VARUNA_PORT_DOWN);
    }
}

static void
uct_varuna_detector_handle_event(uct_varuna_detector_port_t *port,
                                 const struct ibv_async_event *event)
{
    switch (event->event_type) {
    case IBV_EVENT_PORT_ERR:
        if (event->element.port_num == port->port_num) {
            uct_varuna_detector_report(port, UCT_VARUNA_PORT_DOWN);
        }
        break;
    case IBV_EVENT_PORT_ACTIVE:
        if (event->element.port_num == port->port_num) {
            uct_varuna_detector_report(port, UCT_VARUNA_PORT_UP);
        }
        break;
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_GID_CHANGE:
        if (event->element.port_num == port->port_num) {
            uct_varuna_detector_report(port, UCT_VARUNA_PORT_ADDRESS);
        }
        break;
    case IBV_EVENT_DEVICE_FATAL:
        uct_varuna_detector_set_gone(port);
        break;
    default:
        break;
    }
}

static void uct_varuna_detector_event_handler(int fd,
                                              ucs_event_set_types_t events,
                                              void *arg)
{
    uct_varuna_detector_port_t *port = arg;
    struct ibv_async_event event;

    (void)fd;
    (void)events;
    if (port->context == NULL) {
        return; /* The port was removed while UCX was about to call this */
    }

    while (ibv_get_async_event(port->context, &event) == 0) {
        uct_varuna_detector_handle_event(port, &event);
        ibv_ack_async_event(&event);
    }

    if ((errno != EAGAIN) && (errno != EINTR)) {
        /* The device and its events are gone: its fd would stay readable forever. */
        ucs_diag("no more port events of %s: %m", port->name);
        ucs_async_remove_handler(port->context->async_fd, 0);
        uct_varuna_detector_set_gone(port);
    }
}

/* Split "mlx5_0:1" */
static ucs_status_t uct_varuna_detector_split(const char *dev_name, char *name,
                                              size_t max, uint8_t *port_num_p)
{
    const char *colon = strrchr(dev_name, ':');
    unsigned long port_num;
    char *end;

    if ((colon == NULL) || ((size_t)(colon - dev_name) >= max)) {
        return UCS_ERR_INVALID_PARAM;
    }

    port_num = strtoul(colon + 1, &end, 10);
    if ((end == (colon + 1)) || (*end != '\0') || (port_num == 0) ||
        (port_num > UINT8_MAX)) {
        return UCS_ERR_INVALID_PARAM;
    }

    memcpy(name, dev_name, colon - dev_name);
    name[colon - dev_name] = '\0';
    *port_num_p            = port_num;
    return UCS_OK;
}

static struct ibv_context *uct_varuna_detector_open_device(const char *name)
{
    struct ibv_context *context = NULL;
    struct ibv_device **list;
    int i, num_devices;

    list = ibv_get_device_list(&num_devices);
    if (list == NULL) {
        return NULL;
    }

    for (i = 0; i < num_devices; ++i) {
        if (!strcmp(ibv_get_device_name(list[i]), name)) {
            context = ibv_open_device(list[i]);
            break;
        }
    }

    ibv_free_device_list(list);
    return context;
}

ucs_status_t uct_varuna_detector_create(ucs_async_context_t *async,
                                        uct_varuna_detector_cb_t cb, void *arg,
                                        uct_varuna_detector_t **detector_p)
{
    uct_varuna_detector_t *detector;
    unsigned i;

    detector = ucs_calloc(1, sizeof(*detector), "varuna_detector");
    if (detector == NULL) {
        ucs_error("failed to allocate the detector of port events");
        return UCS_ERR_NO_MEMORY;
    }

    detector->async = async;
    detector->cb    = cb;
    detector->arg   = arg;
    for (i = 0; i < UCT_VARUNA_MAX_LINKS; ++i) {
        detector->ports[i].detector = detector;
    }

    *detector_p = detector;
    return UCS_OK;
}

ucs_status_t uct_varuna_detector_add(uct_varuna_detector_t *detector,
                                     unsigned port_index, const char *dev_name)
{
    uct_varuna_detector_port_t *port = &detector->ports[port_index];
    char name[UCT_DEVICE_NAME_MAX];
    struct ibv_port_attr attr;
    ucs_status_t status;

    status = uct_varuna_detector_split(dev_name, name, sizeof(name),
                                       &port->port_num);
    if (status != UCS_OK) {
        ucs_error("'%s' is not the name of a port, such as mlx5_0:1", dev_name);
        return status;
    }

    ucs_snprintf_zero(port->name, sizeof(port->name), "%s", dev_name);
    port->context = uct_varuna_detector_open_device(name);
    if (port->context == NULL) {
        ucs_error("failed to open %s for its port events: %m", name);
        return UCS_ERR_IO_ERROR;
    }

    status = ucs_sys_fcntl_modfl(port->context->async_fd, O_NONBLOCK, 0);
    if (status != UCS_OK) {
        goto err_close;
    }

    status = ucs_async_set_event_handler(detector->async->mode,
                                         port->context->async_fd,
                                         UCS_EVENT_SET_EVREAD,
                                         uct_varuna_detector_event_handler,
                                         port, detector->async);
    if (status != UCS_OK) {
        goto err_close;
    }

    /* There is no event for what happened before we listened */
    if ((ibv_query_port(port->context, port->port_num, &attr) == 0) &&
        (attr.state != IBV_PORT_ACTIVE)) {
        UCS_ASYNC_BLOCK(detector->async);
        uct_varuna_detector_report(port, UCT_VARUNA_PORT_DOWN);
        UCS_ASYNC_UNBLOCK(detector->async);
    }

    return UCS_OK;

err_close:
    ibv_close_device(port->context);
    port->context = NULL;
    return status;
}

static void uct_varuna_detector_close(uct_varuna_detector_port_t *port, int is_sync)
{
    /* UCS_ERR_NO_ELEM if the handler has removed itself */
    ucs_async_remove_handler(port->context->async_fd, is_sync);
    ibv_close_device(port->context);
    port->context = NULL;
}

void uct_varuna_detector_remove(uct_varuna_detector_t *detector, unsigned port_index)
{
    uct_varuna_detector_port_t *port = &detector->ports[port_index];

    if (port->context != NULL) {
        uct_varuna_detector_close(port, 0);
    }
    __atomic_store_n(&port->gone, 0, __ATOMIC_RELAXED);
}

void uct_varuna_detector_destroy(uct_varuna_detector_t *detector)
{
    unsigned i;

    for (i = 0; i < UCT_VARUNA_MAX_LINKS; ++i) {
        if (detector->ports[i].context != NULL) {
            uct_varuna_detector_close(&detector->ports[i], 1);
        }
    }

    ucs_free(detector);
}
