/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The message bus. See varuna_bus.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_bus.h"
#include "varuna_ctl.h"

#include <ucs/debug/assert.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <string.h>
#include <errno.h>
#include <unistd.h>

/* Zeros after a received body: UCX reads inner addresses in it, and takes their lengths
 * from their contents */
#define UCT_VARUNA_BUS_PADDING       64

typedef struct uct_varuna_bus_item {
    ucs_list_link_t            list;
    uint8_t                    link;
    uct_varuna_ctl_hdr_t       hdr;
    char                       body[];
} uct_varuna_bus_item_t;


void uct_varuna_bus_init(uct_varuna_bus_t *bus)
{
    unsigned type;

    memset(bus, 0, sizeof(*bus));
    ucs_list_head_init(&bus->inbox);
    for (type = 0; type < UCT_VARUNA_CTL_LAST; ++type) {
        bus->rows[type].info = uct_varuna_msg_info(type);
    }
}

void uct_varuna_bus_cleanup(uct_varuna_bus_t *bus)
{
    uct_varuna_bus_item_t *item;

    while (!ucs_list_is_empty(&bus->inbox)) {
        item = ucs_list_extract_head(&bus->inbox, uct_varuna_bus_item_t, list);
        ucs_free(item);
    }
    bus->inbox_len = 0;
}

ucs_status_t uct_varuna_bus_add(uct_varuna_bus_t *bus,
                                const uct_varuna_bus_reg_t *reg, void *arg)
{
    int is_event = (reg->type >= UCT_VARUNA_CTL_LAST);
    uct_varuna_bus_row_t *row;

    if ((reg->type >= UCT_VARUNA_BUS_LAST) ||
        (reg->thread >= UCT_VARUNA_BUS_THREAD_LAST) ||
        (is_event && (reg->thread != UCT_VARUNA_BUS_ASYNC))) {
        return UCS_ERR_INVALID_PARAM;
    }

    row = &bus->rows[reg->type];
    if (!is_event && (row->info == NULL)) {
        return UCS_ERR_INVALID_PARAM;
    }

    if (row->handlers[reg->thread].func != NULL) {
        return UCS_ERR_ALREADY_EXISTS;
    }

    row->handlers[reg->thread].func = reg->handler;
    row->handlers[reg->thread].arg  = arg;
    return UCS_OK;
}

void uct_varuna_bus_register(uct_varuna_bus_t *bus,
                             const uct_varuna_bus_reg_t *regs, unsigned num_regs,
                             void *arg)
{
    ucs_status_t status;
    unsigned i;

    for (i = 0; i < num_regs; ++i) {
        status = uct_varuna_bus_add(bus, &regs[i], arg);
        ucs_assertv_always(status == UCS_OK, "row of type %u: %s", regs[i].type,
                           ucs_status_string(status));
    }
}

ucs_status_t uct_varuna_bus_check(const uct_varuna_bus_t *bus, const void *data,
                                  size_t length, const char **reason_p)
{
    const uct_varuna_ctl_hdr_t *hdr = data;
    ucs_status_t status             = uct_varuna_parse_ctl(data, length, reason_p);

    if ((status == UCS_OK) &&
        (bus->rows[hdr->type].handlers[UCT_VARUNA_BUS_ASYNC].func == NULL) &&
        (bus->rows[hdr->type].handlers[UCT_VARUNA_BUS_MAIN].func == NULL)) {
        *reason_p = "nobody handles its type";
        return UCS_ERR_INVALID_PARAM;
    }

    return status;
}

ucs_status_t uct_varuna_bus_deliver(uct_varuna_bus_t *bus, unsigned link,
                                    const uct_varuna_ctl_hdr_t *hdr,
                                    const void *body)
{
    const uct_varuna_bus_row_t *row = &bus->rows[hdr->type];

    if (row->handlers[UCT_VARUNA_BUS_ASYNC].func == NULL) {
        return uct_varuna_bus_defer(bus, link, hdr, body);
    }

    row->handlers[UCT_VARUNA_BUS_ASYNC].func(
            row->handlers[UCT_VARUNA_BUS_ASYNC].arg, link, hdr, body);
    return UCS_OK;
}

ucs_status_t uct_varuna_bus_defer(uct_varuna_bus_t *bus, unsigned link,
                                  const uct_varuna_ctl_hdr_t *hdr,
                                  const void *body)
{
    size_t size = hdr->length + hdr->from_device_len + hdr->from_ctl_len;
    uct_varuna_bus_item_t *item;

    ucs_assert(bus->rows[hdr->type].handlers[UCT_VARUNA_BUS_MAIN].func != NULL);
    if (bus->inbox_len >= UCT_VARUNA_BUS_MAX_INBOX) {
        return UCS_ERR_NO_RESOURCE;
    }

    item = ucs_calloc(1, sizeof(*item) + size + UCT_VARUNA_BUS_PADDING,
                      "varuna_bus_item");
    if (item == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    item->link = link;
    item->hdr  = *hdr;
    memcpy(item->body, body, size);
    ucs_list_add_tail(&bus->inbox, &item->list);
    ++bus->inbox_len;
    return UCS_INPROGRESS;
}

void uct_varuna_bus_raise(uct_varuna_bus_t *bus, unsigned event)
{
    const uct_varuna_bus_row_t *row = &bus->rows[event];

    ucs_assert((event >= UCT_VARUNA_CTL_LAST) && (event < UCT_VARUNA_BUS_LAST));
    if (row->handlers[UCT_VARUNA_BUS_ASYNC].func != NULL) {
        row->handlers[UCT_VARUNA_BUS_ASYNC].func(
                row->handlers[UCT_VARUNA_BUS_ASYNC].arg, 0, NULL, NULL);
    }
}

void uct_varuna_bus_take(uct_varuna_bus_t *bus, ucs_list_link_t *items)
{
    ucs_list_splice_tail(items, &bus->inbox);
    ucs_list_head_init(&bus->inbox);
    bus->inbox_len = 0;
}

unsigned uct_varuna_bus_run(const uct_varuna_bus_t *bus, ucs_list_link_t *items)
{
    unsigned count = 0;
    const uct_varuna_bus_row_t *row;
    uct_varuna_bus_item_t *item;

    while (!ucs_list_is_empty(items)) {
        item = ucs_list_extract_head(items, uct_varuna_bus_item_t, list);
        row  = &bus->rows[item->hdr.type];
        row->handlers[UCT_VARUNA_BUS_MAIN].func(
                row->handlers[UCT_VARUNA_BUS_MAIN].arg, item->link, &item->hdr,
                item->body);
        ucs_free(item);
        ++count;
    }

    return count;
}

/* --- Waking the main thread --- */

/* Wakes the main thread, and the handler of the async context. */

void uct_varuna_ctl_signal(int fd)
{
    uint64_t one = 1;
    ssize_t ret;

    do {
        ret = write(fd, &one, sizeof(one));
    } while ((ret < 0) && (errno == EINTR));

    /* EAGAIN: it is signalled 2^64 - 1 times already */
    if ((ret < 0) && (errno != EAGAIN)) {
        ucs_error("failed to signal eventfd %d: %m", fd);
    }
}

void uct_varuna_ctl_drain_signal(int fd)
{
    uint64_t value;
    ssize_t ret;

    do {
        ret = read(fd, &value, sizeof(value));
    } while ((ret < 0) && (errno == EINTR));
}

/* Called after the flag is set that says what there is to do: either the arming thread
 * sees the flag, or we see that it is armed and wake it. If it is not armed, its
 * descriptor stays as it is. */
static void uct_varuna_ctl_wake(uct_varuna_ctl_t *ctl)
{
    if (__atomic_exchange_n(&ctl->events.armed, 0, __ATOMIC_SEQ_CST)) {
        uct_varuna_ctl_signal(ctl->events.fd);
        __atomic_store_n(&ctl->events.signalled, 1, __ATOMIC_SEQ_CST);
    }
}

void uct_varuna_ctl_notify(uct_varuna_ctl_t *ctl)
{
    if (!ctl->events.pending) {
        __atomic_store_n(&ctl->events.pending, 1, __ATOMIC_SEQ_CST);
        uct_varuna_iface_set_slow(ctl->iface);
        uct_varuna_ctl_wake(ctl);
    }
}

int uct_varuna_ctl_has_events(const uct_varuna_ctl_t *ctl)
{
    /* Without an async thread, only this progresses the control plane */
    return __atomic_load_n(&ctl->events.pending, __ATOMIC_SEQ_CST) ||
           __atomic_load_n(&ctl->events.poked, __ATOMIC_SEQ_CST) ||
           (ctl->async->mode == UCS_ASYNC_MODE_POLL);
}

void uct_varuna_ctl_poke(uct_varuna_ctl_t *ctl)
{
    __atomic_store_n(&ctl->events.poked, 1, __ATOMIC_SEQ_CST);
    uct_varuna_iface_set_slow(ctl->iface);
    uct_varuna_ctl_wake(ctl);
}

ucs_status_t uct_varuna_ctl_event_arm(uct_varuna_ctl_t *ctl)
{
    if (__atomic_exchange_n(&ctl->events.signalled, 0, __ATOMIC_SEQ_CST)) {
        uct_varuna_ctl_drain_signal(ctl->events.fd);
    }

    __atomic_store_n(&ctl->events.armed, 1, __ATOMIC_SEQ_CST);
    if (uct_varuna_ctl_has_events(ctl)) {
        __atomic_store_n(&ctl->events.armed, 0, __ATOMIC_SEQ_CST);
        return UCS_ERR_BUSY;
    }

    if (__atomic_load_n(&ctl->rest.is_on, __ATOMIC_SEQ_CST)) {
        uct_varuna_ctl_signal(ctl->events.kick_fd); /* Nobody polls from now on */
    }

    return UCS_OK;
}

int uct_varuna_ctl_event_fd(const uct_varuna_ctl_t *ctl)
{
    return ctl->events.fd;
}

/* --- Warnings --- */

/* Seconds between two */
#define UCT_VARUNA_CTL_WARN_PERIOD   1.0


void uct_varuna_ctl_complain(uct_varuna_ctl_t *ctl, uint64_t uuid,
                             const char *what, const char *reason)
{
    ucs_time_t now = uct_varuna_ctl_now(ctl);

    if ((ctl->complaints.warned_at != 0) &&
        (now < (ctl->complaints.warned_at +
                ucs_time_from_sec(UCT_VARUNA_CTL_WARN_PERIOD)))) {
        ++ctl->complaints.unwarned;
        ucs_debug("dropped %s of peer 0x%lx: %s", what, uuid, reason);
        return;
    }

    ucs_warn("dropped %s of peer 0x%lx: %s (%u more since the last such "
             "warning)", what, uuid, reason, ctl->complaints.unwarned);
    ctl->complaints.warned_at = now;
    ctl->complaints.unwarned  = 0;
}
