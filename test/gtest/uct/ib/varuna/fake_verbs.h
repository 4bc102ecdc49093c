/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Devices of libibverbs whose ports and events a test controls. The file replaces those
 * functions of libibverbs that need a device; without an object of this class they are
 * the real ones.
 */
#ifndef FAKE_VERBS_H_
#define FAKE_VERBS_H_

#include <infiniband/verbs.h>

#include <memory>
#include <string>
#include <vector>

class fake_verbs {
public:
    /* One device, which can be opened several times */
    struct device {
        struct ibv_device   super;
        std::string         name;
        bool                can_open;
        bool                has_fd;      /* A context has an fd for events */
        int                 query_error; /* errno of a query, 0: it works */
        enum ibv_port_state states[4];   /* By number of the port */
    };

    fake_verbs();
    ~fake_verbs();

    device &add(const std::string &name);

    /* Send this event to all contexts of a device */
    void event(const device &dev, enum ibv_event_type type, int port_num = 0);

    /* Remove the device: reading an event fails with this error */
    void fail_events(const device &dev, int error);

    /* @return The present object, or NULL */
    static fake_verbs *get();

    /* Functions of libibverbs */
    struct ibv_device **list(int *num_p) const;
    struct ibv_context *open(struct ibv_device *device);
    int close(struct ibv_context *ctx);
    int get_event(struct ibv_context *ctx, struct ibv_async_event *event);

    unsigned num_lists;       /* Lists that were not freed */
    unsigned num_unacked;     /* Events that were read and not acknowledged */

    unsigned num_open() const
    {
        return m_contexts.size();
    }

private:
    struct context {
        struct verbs_context                super;
        device                              *dev;
        std::vector<struct ibv_async_event> events;
        int                                 error;
    };

    static context *of(struct ibv_context *ctx);
    static int query_port(struct ibv_context *ctx, uint8_t port_num,
                          struct ibv_port_attr *attr, size_t attr_size);

    std::vector<std::unique_ptr<device>>  m_devices;
    std::vector<std::unique_ptr<context>> m_contexts;
};

#endif
