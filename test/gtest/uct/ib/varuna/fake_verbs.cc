/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Devices of libibverbs for tests.
 */
#include "fake_verbs.h"

#include <common/test.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

static fake_verbs *fake = NULL;

fake_verbs::fake_verbs() : num_lists(0), num_unacked(0)
{
    fake = this;
}

fake_verbs::~fake_verbs()
{
    fake = NULL;
    EXPECT_EQ(0u, num_open()) << "devices are left open";
    EXPECT_EQ(0u, num_lists) << "lists of devices are left";
    EXPECT_EQ(0u, num_unacked) << "closing a device would wait for them";
}

fake_verbs *fake_verbs::get()
{
    return fake;
}

fake_verbs::device &fake_verbs::add(const std::string &name)
{
    m_devices.emplace_back(new device());
    device &dev     = *m_devices.back();
    dev.name        = name;
    dev.can_open    = true;
    dev.has_fd      = true;
    dev.query_error = 0;
    for (enum ibv_port_state &state : dev.states) {
        state = IBV_PORT_ACTIVE;
    }
    snprintf(dev.super.name, sizeof(dev.super.name), "%s", name.c_str());
    return dev;
}

fake_verbs::context *fake_verbs::of(struct ibv_context *ctx)
{
    return (context*)((char*)ctx - offsetof(struct verbs_context, context));
}

void fake_verbs::event(const device &dev, enum ibv_event_type type, int port_num)
{
    struct ibv_async_event event = {};

    event.event_type       = type;
    event.element.port_num = port_num;
    for (std::unique_ptr<context> &ctx : m_contexts) {
        if (ctx->dev == &dev) {
            ctx->events.push_back(event);
        }
    }
}

void fake_verbs::fail_events(const device &dev, int error)
{
    for (std::unique_ptr<context> &ctx : m_contexts) {
        if (ctx->dev == &dev) {
            ctx->error = error;
        }
    }
}

int fake_verbs::query_port(struct ibv_context *ctx, uint8_t port_num,
                           struct ibv_port_attr *attr, size_t attr_size)
{
    const device *dev = of(ctx)->dev;

    memset(attr, 0, attr_size);
    if (dev->query_error != 0) {
        return errno = dev->query_error;
    }
    attr->state = dev->states[port_num];
    return 0;
}

struct ibv_device **fake_verbs::list(int *num_p) const
{
    struct ibv_device **devices = new struct ibv_device*[m_devices.size() + 1]();

    for (size_t i = 0; i < m_devices.size(); ++i) {
        devices[i] = &m_devices[i]->super;
    }
    *num_p = m_devices.size();
    return devices;
}

struct ibv_context *fake_verbs::open(struct ibv_device *dev)
{
    for (std::unique_ptr<device> &known : m_devices) {
        if ((&known->super == dev) && known->can_open) {
            struct verbs_context *vctx;

            m_contexts.emplace_back(new context());
            m_contexts.back()->dev   = known.get();
            m_contexts.back()->error = EAGAIN;
            vctx                     = &m_contexts.back()->super;
            vctx->sz                 = sizeof(*vctx);
            vctx->query_port         = query_port;
            vctx->context.device     = dev;
            vctx->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
            vctx->context.async_fd   = known->has_fd ? eventfd(0, EFD_CLOEXEC) : -1;
            return &vctx->context;
        }
    }

    errno = ENODEV;
    return NULL;
}

int fake_verbs::close(struct ibv_context *ctx)
{
    for (size_t i = 0; i < m_contexts.size(); ++i) {
        if (m_contexts[i].get() == of(ctx)) {
            ::close(ctx->async_fd);
            m_contexts.erase(m_contexts.begin() + i);
            return 0;
        }
    }

    ADD_FAILURE() << "a device is closed twice";
    return EINVAL;
}

int fake_verbs::get_event(struct ibv_context *ctx, struct ibv_async_event *event)
{
    std::vector<struct ibv_async_event> &events = of(ctx)->events;

    EXPECT_TRUE(fcntl(ctx->async_fd, F_GETFL) & O_NONBLOCK) << "reading may block";
    if (events.empty()) {
        errno = of(ctx)->error;
        return -1;
    }

    *event = events.front();
    events.erase(events.begin());
    ++num_unacked;
    return 0;
}


/* --- In place of libibverbs --- */

template<typename F> static F *real(F*, const char *name)
{
    return (F*)dlsym(RTLD_NEXT, name);
}

#undef ibv_get_device_list

extern "C" {

struct ibv_device **ibv_get_device_list(int *num_p)
{
    if (fake == NULL) {
        return real(ibv_get_device_list, __func__)(num_p);
    }

    ++fake->num_lists;
    return fake->list(num_p);
}

void ibv_free_device_list(struct ibv_device **list)
{
    if (fake == NULL) {
        return real(ibv_free_device_list, __func__)(list);
    }

    --fake->num_lists;
    delete[] list;
}

const char *ibv_get_device_name(struct ibv_device *device)
{
    return (fake != NULL) ? device->name :
           real(ibv_get_device_name, __func__)(device);
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    return (fake != NULL) ? fake->open(device) :
           real(ibv_open_device, __func__)(device);
}

int ibv_close_device(struct ibv_context *ctx)
{
    return (fake != NULL) ? fake->close(ctx) : real(ibv_close_device, __func__)(ctx);
}

int ibv_get_async_event(struct ibv_context *ctx, struct ibv_async_event *event)
{
    return (fake != NULL) ? fake->get_event(ctx, event) :
           real(ibv_get_async_event, __func__)(ctx, event);
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
    if (fake == NULL) {
        return real(ibv_ack_async_event, __func__)(event);
    }

    --fake->num_unacked;
}

}
