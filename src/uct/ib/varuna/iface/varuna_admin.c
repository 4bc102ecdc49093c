/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Commands from outside about links. See varuna_admin.h and rc_varuna.h.
 */
#include "varuna_admin.h"
#include "varuna_admin_proto.h"
#include "varuna_tl_iface.h"
#include <uct/ib/varuna/core/varuna_plan.h>
#include <uct/ib/varuna/rc_varuna.h>
#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include <uct/ib/varuna/ctl/varuna_bus.h>
#include <uct/ib/varuna/ctl/varuna_ports.h>
#include <uct/ib/varuna/ctl/varuna_witness.h>
#include <uct/ib/varuna/lanes/varuna_lanes.h>
#include <uct/ib/varuna/md/varuna_health.h>

#include <ucs/debug/log.h>
#include <ucs/sys/math.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define UCT_VARUNA_ADMIN_MAX_NAMES 64
#define UCT_VARUNA_ADMIN_NAME_MAX  32
#define UCT_VARUNA_ADMIN_MAX_NICS  UCT_VARUNA_MAX_LINKS

/* A published state: state | causes << 8 | flaps << 16 */
#define UCT_VARUNA_ADMIN_MAX_FLAPS UINT16_MAX

/* A link that is marked from outside */
typedef struct uct_varuna_admin_mark {
    char                       name[UCT_VARUNA_ADMIN_NAME_MAX];
    rc_varuna_link_state_t     state;      /* DOWN or FAILED */
} uct_varuna_admin_mark_t;

static struct {
    pthread_mutex_t            lock;       /* Of everything here */
    ucs_list_link_t            users;      /* uct_varuna_admin_t */
    unsigned                   version;    /* Read without the lock */
    int                        is_at_exit; /* atexit() was called; in children as well */
    unsigned                   forced;     /* Failovers since the last revoke */
    unsigned                   revokes;
    unsigned                   num_marks;
    uct_varuna_admin_mark_t    marks[UCT_VARUNA_ADMIN_MAX_NAMES];
    unsigned                   num_removed;
    char                       removed[UCT_VARUNA_ADMIN_MAX_NICS][UCT_VARUNA_ADMIN_NAME_MAX];
} uct_varuna_admin = {
    .lock    = PTHREAD_MUTEX_INITIALIZER,
    .users   = UCS_LIST_INITIALIZER(&uct_varuna_admin.users,
                                    &uct_varuna_admin.users),
    .version = 1
};

/* --- The record, lock held --- */

/* @return num_marks if there is none. */
static unsigned uct_varuna_admin_find(const char *name)
{
    unsigned i;

    for (i = 0; (i < uct_varuna_admin.num_marks) &&
                strcmp(uct_varuna_admin.marks[i].name, name); ++i);
    return i;
}

static int uct_varuna_admin_is_link(const char *name)
{
    uct_varuna_admin_t *user;
    unsigned i;

    ucs_list_for_each(user, &uct_varuna_admin.users, list) {
        for (i = 0; i < user->num_links; ++i) {
            if (!strcmp(user->names[i], name)) {
                return 1;
            }
        }
    }

    /* A process without an interface may open one later */
    return ucs_list_is_empty(&uct_varuna_admin.users);
}

static void uct_varuna_admin_changed(void)
{
    uct_varuna_admin_t *user;

    __atomic_fetch_add(&uct_varuna_admin.version, 1, __ATOMIC_RELEASE);
    ucs_list_for_each(user, &uct_varuna_admin.users, list) {
        user->wake(user->arg);
    }
}

static int uct_varuna_admin_set(const char *name, rc_varuna_link_state_t state)
{
    unsigned i = uct_varuna_admin_find(name);

    if (!uct_varuna_admin_is_link(name)) {
        return -ENODEV;
    }

    if (state != RC_VARUNA_LINK_UP) {
        if (i == UCT_VARUNA_ADMIN_MAX_NAMES) {
            return -ENOSPC;
        } else if (i == uct_varuna_admin.num_marks) {
            strcpy(uct_varuna_admin.marks[i].name, name);
            ++uct_varuna_admin.num_marks;
        }
        uct_varuna_admin.marks[i].state = state;
    } else if (i < uct_varuna_admin.num_marks) {
        --uct_varuna_admin.num_marks;
        uct_varuna_admin.marks[i] =
                uct_varuna_admin.marks[uct_varuna_admin.num_marks];
    }

    uct_varuna_admin_changed();
    return 0;
}

/* --- NICs, lock held --- */

/* @return Whether a port, such as "mlx5_0:1", is of a device */
static int uct_varuna_admin_is_port_of(const char *port, const char *device)
{
    size_t length = strlen(device);

    return !strncmp(port, device, length) && (port[length] == ':');
}

/* @return num_removed if it is not. */
static unsigned uct_varuna_admin_find_removed(const char *device)
{
    unsigned i;

    for (i = 0; (i < uct_varuna_admin.num_removed) &&
                strcmp(uct_varuna_admin.removed[i], device); ++i);
    return i;
}

/* @return Whether the device of a port is to be removed. */
static int uct_varuna_admin_is_removed(const char *port)
{
    unsigned i;

    for (i = 0; i < uct_varuna_admin.num_removed; ++i) {
        if (uct_varuna_admin_is_port_of(port, uct_varuna_admin.removed[i])) {
            return 1;
        }
    }

    return 0;
}

/* @return Whether a link that is up remains to an interface without this device. */
static int uct_varuna_admin_has_other(const uct_varuna_admin_t *user, const char *device)
{
    unsigned i, state;

    for (i = 0; i < user->num_links; ++i) {
        state = __atomic_load_n(&user->links[i], __ATOMIC_RELAXED) & UCS_MASK(8);
        if ((state == UCT_VARUNA_DAMP_UP) && !uct_varuna_admin_is_removed(user->names[i]) &&
            !uct_varuna_admin_is_port_of(user->names[i], device)) {
            return 1;
        }
    }

    return 0;
}

/* @return 0, or why the device is not removed from any interface. */
static int uct_varuna_admin_check_remove(const char *device)
{
    int ret = -ENODEV;
    uct_varuna_admin_t *user;
    unsigned i;

    ucs_list_for_each(user, &uct_varuna_admin.users, list) {
        for (i = 0; i < user->num_links; ++i) {
            if (!uct_varuna_admin_is_port_of(user->names[i], device)) {
                continue;
            }

            if ((user->can_remove != NULL) && !user->can_remove(user->arg, i)) {
                return -EOPNOTSUPP;
            } else if (!uct_varuna_admin_has_other(user, device)) {
                return -EBUSY;
            }
            ret = 0;
        }
    }

    return ret;
}

static int uct_varuna_admin_remove(const char *device)
{
    int ret = uct_varuna_admin_check_remove(device);

    if (uct_varuna_admin_find_removed(device) < uct_varuna_admin.num_removed) {
        return -EALREADY;
    } else if (ret != 0) {
        return ret;
    } else if (uct_varuna_admin.num_removed == UCT_VARUNA_ADMIN_MAX_NICS) {
        return -ENOSPC;
    }

    strcpy(uct_varuna_admin.removed[uct_varuna_admin.num_removed++], device);
    uct_varuna_admin_changed();
    return 0;
}

static int uct_varuna_admin_add(const char *device)
{
    unsigned i = uct_varuna_admin_find_removed(device);

    if (i == uct_varuna_admin.num_removed) {
        return (uct_varuna_admin_check_remove(device) == -ENODEV) ? -ENODEV : -EEXIST;
    }

    --uct_varuna_admin.num_removed;
    if (i < uct_varuna_admin.num_removed) {
        strcpy(uct_varuna_admin.removed[i],
               uct_varuna_admin.removed[uct_varuna_admin.num_removed]);
    }
    uct_varuna_admin_changed();
    return 0;
}

static int uct_varuna_admin_nic(const char *name, int is_removed)
{
    char device[UCT_VARUNA_ADMIN_NAME_MAX];
    char *colon;
    int ret;

    if ((name[0] == '\0') || (strlen(name) >= sizeof(device))) {
        return -EINVAL;
    }

    strcpy(device, name);
    colon = strrchr(device, ':');
    if (colon != NULL) {
        *colon = '\0'; /* All ports of the device go */
    }

    pthread_mutex_lock(&uct_varuna_admin.lock);
    ret = is_removed ? uct_varuna_admin_remove(device) : uct_varuna_admin_add(device);
    pthread_mutex_unlock(&uct_varuna_admin.lock);
    return ret;
}

/* --- rc_varuna.h --- */

int rc_varuna_link_set(const char *name, rc_varuna_link_state_t state)
{
    const char *colon = (name == NULL) ? NULL : strrchr(name, ':');
    int ret;

    if ((colon == NULL) || (colon == name) || (colon[1] == '\0') ||
        (strlen(name) >= UCT_VARUNA_ADMIN_NAME_MAX) ||
        ((state != RC_VARUNA_LINK_DOWN) && (state != RC_VARUNA_LINK_UP) &&
         (state != RC_VARUNA_LINK_FAILED))) {
        return -EINVAL;
    }

    pthread_mutex_lock(&uct_varuna_admin.lock);
    ret = uct_varuna_admin_set(name, state);
    pthread_mutex_unlock(&uct_varuna_admin.lock);
    return ret;
}

int rc_varuna_failover(rc_varuna_failover_t action)
{
    int ret = 0;

    pthread_mutex_lock(&uct_varuna_admin.lock);
    switch (action) {
    case RC_VARUNA_FAILOVER_FORCE:
        ++uct_varuna_admin.forced;
        uct_varuna_admin_changed();
        break;
    case RC_VARUNA_FAILOVER_REVOKE:
        uct_varuna_admin.forced    = 0;
        uct_varuna_admin.num_marks = 0;
        ++uct_varuna_admin.revokes;
        uct_varuna_admin_changed();
        break;
    default:
        ret = -EINVAL;
        break;
    }
    pthread_mutex_unlock(&uct_varuna_admin.lock);
    return ret;
}

typedef struct uct_varuna_admin_text {
    char                       *buffer;
    size_t                     size;
    size_t                     length;
} uct_varuna_admin_text_t;

static void UCS_F_PRINTF(2, 3)
uct_varuna_admin_append(uct_varuna_admin_text_t *text, const char *format, ...)
{
    size_t used = ucs_min(text->length, text->size);
    va_list args;

    va_start(args, format);
    text->length += vsnprintf(text->buffer + used, text->size - used, format,
                              args);
    va_end(args);
}

static void uct_varuna_admin_append_causes(uct_varuna_admin_text_t *text,
                                           unsigned causes)
{
    const char *separator = "";
    unsigned i;

    ucs_for_each_bit(i, causes & UCS_MASK(UCT_VARUNA_LINK_NUM_CAUSES)) {
        uct_varuna_admin_append(text, "%s%s", separator,
                                uct_varuna_link_cause_names[i]);
        separator = ",";
    }

    if (causes == 0) {
        uct_varuna_admin_append(text, "-");
    }
}

/* What the end of lanes has cost that failed on a link */
static void uct_varuna_admin_append_fences(uct_varuna_admin_text_t *text,
                                           const uint64_t *counts)
{
    uint64_t fences[UCT_VARUNA_FENCED_LAST];
    unsigned i;

    for (i = 0; i < UCT_VARUNA_FENCED_LAST; ++i) {
        fences[i] = __atomic_load_n(&counts[i], __ATOMIC_RELAXED);
    }

    uct_varuna_admin_append(text,
                            " fences_none=%lu fences_reset=%lu fences_lifetime=%lu lifetime_dc=%lu"
                            " lifetime_dead=%lu lifetime_hung=%lu lifetime_other=%lu",
                            fences[UCT_VARUNA_FENCED_NOT], fences[UCT_VARUNA_FENCED_RESET],
                            fences[UCT_VARUNA_FENCED_DC] + fences[UCT_VARUNA_FENCED_DEAD] +
                            fences[UCT_VARUNA_FENCED_HUNG] +
                            fences[UCT_VARUNA_FENCED_OTHER],
                            fences[UCT_VARUNA_FENCED_DC], fences[UCT_VARUNA_FENCED_DEAD],
                            fences[UCT_VARUNA_FENCED_HUNG],
                            fences[UCT_VARUNA_FENCED_OTHER]);
}

/* What is in the way of closing the NIC */
static void uct_varuna_admin_append_waits(uct_varuna_admin_text_t *text, const uint32_t *waits)
{
    static const char *names[] = {
        [UCT_VARUNA_ADMIN_WAIT_ENDPOINTS]   = "endpoints",
        [UCT_VARUNA_ADMIN_WAIT_TARGETS]     = "targets",
        [UCT_VARUNA_ADMIN_WAIT_BUFFERS]     = "buffers",
        [UCT_VARUNA_ADMIN_WAIT_CONNECTIONS] = "connections"
    };
    const char *separator = "";
    uint32_t count;
    unsigned i;

    uct_varuna_admin_append(text, " waits_for=");
    for (i = 0; i < UCT_VARUNA_ADMIN_WAIT_LAST; ++i) {
        count = __atomic_load_n(&waits[i], __ATOMIC_RELAXED);
        if (count > 0) {
            uct_varuna_admin_append(text, "%s%s:%u", separator, names[i], count);
            separator = ",";
        }
    }
    uct_varuna_admin_append(text, "%s\n", (separator[0] == '\0') ? "-" : "");
}

/* @return 0 if the list cannot be had now */
static int uct_varuna_admin_append_peers(uct_varuna_admin_text_t *text,
                                         const uct_varuna_admin_t *user, unsigned index)
{
    ucs_string_buffer_t peers;
    char prefix[32];
    int has_list;

    if (user->list_peers == NULL) {
        return 1;
    }

    ucs_string_buffer_init(&peers);
    snprintf(prefix, sizeof(prefix), "iface=%u ", index);
    has_list = user->list_peers(user->arg, prefix, &peers);
    uct_varuna_admin_append(text, "%s", ucs_string_buffer_cstr(&peers));
    ucs_string_buffer_cleanup(&peers);
    return has_list;
}

/* @return 0 if a list of peers cannot be had now */
static int uct_varuna_admin_append_all(uct_varuna_admin_text_t *text)
{
    unsigned index = 0;
    int has_all    = 1;
    unsigned i, state, flaps;
    uct_varuna_admin_t *user;

    pthread_mutex_lock(&uct_varuna_admin.lock);
    ucs_list_for_each(user, &uct_varuna_admin.users, list) {
        for (i = 0; i < user->num_links; ++i) {
            state = __atomic_load_n(&user->links[i], __ATOMIC_RELAXED);
            flaps = state >> 16;
            uct_varuna_admin_append(
                    text, "iface=%u link=%s priority=%u state=%s down_by=",
                    index, user->names[i], i,
                    uct_varuna_damp_state_names[state & UCS_MASK(8)]);
            uct_varuna_admin_append_causes(text, (state >> 8) & UCS_MASK(8));
            uct_varuna_admin_append(text, " flaps=%u nic=%s", flaps,
                                    (user->nic_state == NULL) ? "-" :
                                    user->nic_state(user->arg, i));
            uct_varuna_admin_append_fences(text, user->fences[i]);
            uct_varuna_admin_append_waits(text, user->waits[i]);
        }
        has_all &= uct_varuna_admin_append_peers(text, user, index);
        ++index;
    }
    pthread_mutex_unlock(&uct_varuna_admin.lock);
    return has_all;
}

/* @return Whether all is in the text: not while another thread has the lock of a control
 * plane. */
static int uct_varuna_admin_try_status(char *buffer, size_t size, size_t *length_p)
{
    uct_varuna_admin_text_t text = {buffer, size, 0};
    int has_all;

    if (size > 0) {
        buffer[0] = '\0';
    }

    has_all   = uct_varuna_admin_append_all(&text);
    *length_p = text.length;
    return has_all;
}

size_t rc_varuna_status(char *buffer, size_t size)
{
    size_t length;

    /* The thread that has that lock may wait for ours, which is free between two attempts */
    while (!uct_varuna_admin_try_status(buffer, size, &length)) {
        sched_yield();
    }

    return length;
}

/* --- Interfaces --- */

/* The program calls exit() with interfaces open. The libraries below us clean up next,
 * and the async thread must not use them then. */
static void uct_varuna_admin_at_exit(void)
{
    uct_varuna_admin_t *user;

    ucs_list_for_each(user, &uct_varuna_admin.users, list) {
        user->quiesce(user->arg);
    }
}

void uct_varuna_admin_register(uct_varuna_admin_t *admin)
{
    admin->version = 0;
    admin->forced  = 0;
    admin->failed  = 0;
    admin->removed = 0;
    memset(admin->waits, 0, sizeof(admin->waits));
    memset(admin->links, 0, sizeof(admin->links));
    pthread_mutex_lock(&uct_varuna_admin.lock);
    if (!uct_varuna_admin.is_at_exit) {
        atexit(uct_varuna_admin_at_exit);
        uct_varuna_admin.is_at_exit = 1;
    }
    admin->revokes = uct_varuna_admin.revokes;
    ucs_list_add_tail(&uct_varuna_admin.users, &admin->list);
    pthread_mutex_unlock(&uct_varuna_admin.lock);
}

void uct_varuna_admin_unregister(uct_varuna_admin_t *admin)
{
    pthread_mutex_lock(&uct_varuna_admin.lock);
    ucs_list_del(&admin->list);
    pthread_mutex_unlock(&uct_varuna_admin.lock);
}

void uct_varuna_admin_show_waits(uct_varuna_admin_t *admin, unsigned link,
                                 const uint32_t *waits)
{
    unsigned i;

    for (i = 0; i < UCT_VARUNA_ADMIN_WAIT_LAST; ++i) {
        __atomic_store_n(&admin->waits[link][i], waits[i], __ATOMIC_RELAXED);
    }
}

/* Marks were given to the parent. Its interfaces take no part here, but may be closed: what
 * is left of the list is valid memory. */
void uct_varuna_admin_forked(void)
{
    uct_varuna_admin_t *user, *tmp;

    pthread_mutex_init(&uct_varuna_admin.lock, NULL);
    ucs_list_for_each_safe(user, tmp, &uct_varuna_admin.users, list) {
        ucs_list_del(&user->list);
        ucs_list_head_init(&user->list);
    }
    uct_varuna_admin.forced      = 0;
    uct_varuna_admin.num_marks   = 0;
    uct_varuna_admin.num_removed = 0;
}

int uct_varuna_admin_is_behind(const uct_varuna_admin_t *admin)
{
    return admin->version != __atomic_load_n(&uct_varuna_admin.version,
                                             __ATOMIC_ACQUIRE);
}

/* Leave the best link, if there is another. @return the link, or LINK_NONE. */
static uint8_t uct_varuna_admin_force(const uct_varuna_admin_t *admin,
                                      uct_varuna_link_table_t *table,
                                      ucs_time_t now)
{
    unsigned all  = UCS_MASK(table->num_links);
    uint8_t link  = uct_varuna_link_select(table, UCT_VARUNA_LINK_NONE, all);

    if ((link == UCT_VARUNA_LINK_NONE) ||
        (uct_varuna_link_select(table, UCT_VARUNA_LINK_NONE,
                                all & ~UCS_BIT(link)) == UCT_VARUNA_LINK_NONE)) {
        ucs_diag("rc_varuna: a failover was forced, but no other link is up");
        return UCT_VARUNA_LINK_NONE;
    }

    ucs_info("rc_varuna: failover from %s is forced from outside",
             admin->names[link]);
    uct_varuna_link_add_cause(table, link, UCT_VARUNA_LINK_CAUSE_FORCED, now);
    table->links[link].reason = "failover forced";
    return link;
}

/* What is on it recovers elsewhere. If it was retired, what has not left it yet does. */
static unsigned uct_varuna_admin_fail_link(const uct_varuna_admin_t *admin,
                                           uct_varuna_link_table_t *table,
                                           unsigned link, ucs_time_t now)
{
    if (!uct_varuna_link_add_cause(table, link, UCT_VARUNA_LINK_CAUSE_ADMIN, now)) {
        return 0;
    }

    ucs_info("rc_varuna: link %s is marked failed from outside", admin->names[link]);
    table->links[link].reason = "marked failed";
    return UCS_BIT(link);
}

/* Traffic leaves a link whose NIC is to be removed. It is up again when the NIC is back */
static unsigned uct_varuna_admin_sync_nic(uct_varuna_admin_t *admin,
                                          uct_varuna_link_table_t *table, unsigned link,
                                          ucs_time_t now)
{
    if (!uct_varuna_admin_is_removed(admin->names[link])) {
        admin->removed &= ~UCS_BIT(link);
        return 0;
    }

    admin->removed |= UCS_BIT(link);
    if ((table->links[link].causes & UCT_VARUNA_LINK_CAUSE_NIC) ||
        !uct_varuna_link_retire(table, link, UCT_VARUNA_LINK_CAUSE_NIC, now)) {
        return 0;
    }

    ucs_info("rc_varuna: the NIC of link %s is to be removed: traffic leaves it",
             admin->names[link]);
    table->links[link].reason = "its NIC is to be removed";
    return UCS_BIT(link);
}

static unsigned uct_varuna_admin_sync_link(uct_varuna_admin_t *admin,
                                           uct_varuna_link_table_t *table,
                                           unsigned link, ucs_time_t now)
{
    unsigned mark = uct_varuna_admin_find(admin->names[link]);

    admin->failed &= ~UCS_BIT(link);
    if (mark == uct_varuna_admin.num_marks) {
        if (uct_varuna_link_remove_cause(table, link,
                                         UCT_VARUNA_LINK_CAUSE_ADMIN, now)) {
            ucs_info("rc_varuna: link %s is marked up from outside",
                     admin->names[link]);
            return UCS_BIT(link);
        }
        return 0;
    }

    if (uct_varuna_admin.marks[mark].state == RC_VARUNA_LINK_FAILED) {
        admin->failed |= UCS_BIT(link);
        return uct_varuna_admin_fail_link(admin, table, link, now);
    } else if (!uct_varuna_link_retire(table, link, UCT_VARUNA_LINK_CAUSE_ADMIN, now)) {
        return 0;
    }

    ucs_info("rc_varuna: link %s is marked down from outside: traffic leaves it",
             admin->names[link]);
    if (uct_varuna_link_select(table, UCT_VARUNA_LINK_NONE,
                               UCS_MASK(table->num_links)) == UCT_VARUNA_LINK_NONE) {
        ucs_diag("rc_varuna: link %s is marked down, but no other link is up: traffic "
                 "stays on it until one is", admin->names[link]);
    }
    table->links[link].reason = "marked down";
    return UCS_BIT(link);
}

unsigned uct_varuna_admin_sync(uct_varuna_admin_t *admin,
                               uct_varuna_link_table_t *table, ucs_time_t now)
{
    unsigned changed = 0;
    uint8_t link;

    pthread_mutex_lock(&uct_varuna_admin.lock);
    admin->version = uct_varuna_admin.version;
    if (admin->revokes != uct_varuna_admin.revokes) {
        admin->revokes = uct_varuna_admin.revokes;
        admin->forced  = 0;
        for (link = 0; link < admin->num_links; ++link) {
            if (uct_varuna_link_revoke(table, link, now)) {
                ucs_info("rc_varuna: failover from %s is revoked",
                         admin->names[link]);
                changed |= UCS_BIT(link);
            }
        }
    }

    for (link = 0; link < admin->num_links; ++link) {
        changed |= uct_varuna_admin_sync_nic(admin, table, link, now);
        changed |= uct_varuna_admin_sync_link(admin, table, link, now);
    }

    while (admin->forced < uct_varuna_admin.forced) {
        ++admin->forced;
        link = uct_varuna_admin_force(admin, table, now);
        if (link != UCT_VARUNA_LINK_NONE) {
            changed |= UCS_BIT(link);
        }
    }
    pthread_mutex_unlock(&uct_varuna_admin.lock);

    uct_varuna_admin_publish(admin, table);
    return changed;
}

void uct_varuna_admin_publish(uct_varuna_admin_t *admin,
                              const uct_varuna_link_table_t *table)
{
    const uct_varuna_link_entry_t *entry;
    uint32_t state;
    unsigned link;

    for (link = 0; link < admin->num_links; ++link) {
        entry = &table->links[link];
        state = entry->damp.state | (entry->causes << 8) |
                (ucs_min(entry->damp.flaps, UCT_VARUNA_ADMIN_MAX_FLAPS) << 16);
        __atomic_store_n(&admin->links[link], state, __ATOMIC_RELAXED);
    }
}

/* --- Commands --- */

static int uct_varuna_admin_command_link(char *args)
{
    char *name  = strtok_r(args, " ", &args);
    char *state = (name == NULL) ? NULL : strtok_r(NULL, " ", &args);

    if ((state == NULL) || (strtok_r(NULL, " ", &args) != NULL)) {
        return -EINVAL;
    } else if (!strcmp(state, "down")) {
        return rc_varuna_link_set(name, RC_VARUNA_LINK_DOWN);
    } else if (!strcmp(state, "up")) {
        return rc_varuna_link_set(name, RC_VARUNA_LINK_UP);
    } else if (!strcmp(state, "fail")) {
        return rc_varuna_link_set(name, RC_VARUNA_LINK_FAILED);
    } else {
        return -EINVAL;
    }
}

static int uct_varuna_admin_command_nic(char *args)
{
    char *name   = strtok_r(args, " ", &args);
    char *action = (name == NULL) ? NULL : strtok_r(NULL, " ", &args);

    if ((action == NULL) || (strtok_r(NULL, " ", &args) != NULL)) {
        return -EINVAL;
    } else if (!strcmp(action, "remove")) {
        return uct_varuna_admin_nic(name, 1);
    } else if (!strcmp(action, "add")) {
        return uct_varuna_admin_nic(name, 0);
    } else {
        return -EINVAL;
    }
}

static const char *uct_varuna_admin_nic_error(int ret)
{
    switch (ret) {
    case -ENODEV:
        return "no such NIC; \"status\" lists the links of all";
    case -EBUSY:
        return "an interface has no other link that is up: add, or repair, another NIC first";
    case -EALREADY:
        return "it is being removed, or was: see \"status\"";
    case -EEXIST:
        return "it was not removed; one that was reset is used again when it answers";
    case -EOPNOTSUPP:
        return "atomics of mode extended need the registrations of all NICs";
    case -ENOSPC:
        return "too many NICs were removed";
    default:
        return "expected \"nic NAME remove|add\"";
    }
}

void uct_varuna_admin_command(const char *line, char *answer, size_t size)
{
    const size_t head = strlen(UCT_VARUNA_ADMIN_OK);
    const char *error = "expected \"link NAME down|fail|up\", \"nic NAME remove|add\", "
                        "\"failover force|revoke\" or \"status\"";
    char copy[UCT_VARUNA_ADMIN_REQUEST_MAX];
    int ret = -EINVAL;
    size_t length;

    snprintf(copy, sizeof(copy), "%s", line);
    if (!strcmp(copy, "status")) {
        /* A thread that closes a worker may wait for the one that answers here, so that does
         * not wait for it */
        snprintf(answer, size, UCT_VARUNA_ADMIN_OK);
        if (!uct_varuna_admin_try_status(answer + head, size - head, &length)) {
            snprintf(answer, size, UCT_VARUNA_ADMIN_BUSY);
        } else if (length >= (size - head)) {
            snprintf(answer, size, UCT_VARUNA_ADMIN_ERROR "the status has %zu bytes, which only "
                     "rc_varuna_status() gives\n", length);
        }
        return;
    } else if (!strcmp(copy, "failover force")) {
        ret = rc_varuna_failover(RC_VARUNA_FAILOVER_FORCE);
    } else if (!strcmp(copy, "failover revoke")) {
        ret = rc_varuna_failover(RC_VARUNA_FAILOVER_REVOKE);
    } else if (!strncmp(copy, "nic ", 4)) {
        ret   = uct_varuna_admin_command_nic(copy + 4);
        error = uct_varuna_admin_nic_error(ret);
    } else if (!strncmp(copy, "link ", 5)) {
        ret   = uct_varuna_admin_command_link(copy + 5);
        error = (ret == -ENODEV) ? "no such link; \"status\" lists them" :
                (ret == -ENOSPC) ? "too many links are marked" : error;
    }

    if (ret == 0) {
        snprintf(answer, size, UCT_VARUNA_ADMIN_OK);
    } else {
        snprintf(answer, size, UCT_VARUNA_ADMIN_ERROR "%s\n", error);
    }
}

/* --- An interface as a user of rc_varuna_ctl and rc_varuna.h --- */

static void uct_varuna_admin_iface_wake(void *arg)
{
    uct_varuna_iface_t *base = arg;

    uct_varuna_ctl_poke(base->ctl);
}

static const char *uct_varuna_admin_iface_nic_state(void *arg, unsigned link)
{
    uct_varuna_iface_t *base = arg;

    return uct_varuna_nic_state_names[
            uct_varuna_md_nic_state(base->md, base->links[link].nic)];
}

static int uct_varuna_admin_iface_can_remove(void *arg, unsigned link)
{
    uct_varuna_iface_t *base = arg;

    return uct_varuna_md_can_remove_nic(base->md, base->links[link].nic);
}

/* The threads of a UCP worker have this lock in progress, and while they close it */
static int uct_varuna_admin_iface_list_peers(void *arg, const char *prefix,
                                             ucs_string_buffer_t *text)
{
    uct_varuna_iface_t *base = arg;

    if (!uct_varuna_ctl_try_lock(base->ctl)) {
        return 0;
    }

    uct_varuna_ways_list(base->ctl, prefix, text);
    uct_varuna_ctl_unlock(base->ctl);
    return 1;
}

static void uct_varuna_admin_iface_quiesce(void *arg)
{
    uct_varuna_iface_t *base = arg;

    uct_varuna_ctl_unlisten(base->ctl);
}

void uct_varuna_admin_iface_register(uct_varuna_tl_iface_t *iface,
                                     const char *ctl_dir)
{
    uct_varuna_iface_t *base  = &iface->super.super;
    uct_varuna_admin_t *admin = &iface->admin;
    unsigned link;

    admin->num_links  = base->num_links;
    admin->wake       = uct_varuna_admin_iface_wake;
    admin->nic_state  = uct_varuna_admin_iface_nic_state;
    admin->can_remove = uct_varuna_admin_iface_can_remove;
    admin->list_peers = uct_varuna_ctl_has_thread(base->ctl) ?
                        uct_varuna_admin_iface_list_peers : NULL;
    admin->quiesce    = uct_varuna_admin_iface_quiesce;
    admin->arg        = base;
    for (link = 0; link < base->num_links; ++link) {
        admin->names[link]  = uct_varuna_link_name(base, link);
        admin->fences[link] = uct_varuna_requester(base)->link_stats[link].fences;
    }

    uct_varuna_admin_register(admin);
    uct_varuna_admin_sock_start(ctl_dir);
    uct_varuna_admin_iface_obey(iface, ucs_get_time());
}

void uct_varuna_admin_iface_unregister(uct_varuna_tl_iface_t *iface)
{
    uct_varuna_admin_sock_stop();
    uct_varuna_admin_unregister(&iface->admin);
}

static void uct_varuna_admin_iface_announce(uct_varuna_tl_iface_t *iface)
{
    uct_varuna_iface_t *base = &iface->super.super;
    unsigned retired         = 0;
    unsigned link;

    for (link = 0; link < base->num_links; ++link) {
        if (base->link_table.links[link].causes &
            (UCT_VARUNA_LINK_CAUSE_ADMIN | UCT_VARUNA_LINK_CAUSE_NIC)) {
            retired |= UCS_BIT(link);
        }
    }
    uct_varuna_ports_retire(base->ctl, retired, iface->admin.failed);
}

void uct_varuna_admin_iface_nic_is_back(uct_varuna_tl_iface_t *iface, unsigned link)
{
    uct_varuna_iface_t *base = &iface->super.super;

    if (!(iface->admin.removed & UCS_BIT(link)) &&
        (base->link_table.links[link].causes & UCT_VARUNA_LINK_CAUSE_NIC)) {
        uct_varuna_link_up(base, link, UCT_VARUNA_LINK_CAUSE_NIC);
        uct_varuna_admin_publish(&iface->admin, &base->link_table);
        uct_varuna_link_raise(base);
        uct_varuna_admin_iface_announce(iface);
    }
}

void uct_varuna_admin_iface_obey(uct_varuna_tl_iface_t *iface, ucs_time_t now)
{
    uct_varuna_iface_t *base = &iface->super.super;
    unsigned link;

    if (ucs_likely(!uct_varuna_admin_is_behind(&iface->admin))) {
        return;
    }

    if (uct_varuna_admin_sync(&iface->admin, &base->link_table, now) != 0) {
        uct_varuna_link_raise(base);
    }

    uct_varuna_admin_iface_announce(iface);
    for (link = 0; link < base->num_links; ++link) {
        uct_varuna_md_remove_nic(base->md, base->links[link].nic,
                                 !!(iface->admin.removed & UCS_BIT(link)));
        iface->lives |= UCS_BIT(link); /* There may be something to do */
    }
}
