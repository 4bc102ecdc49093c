/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The message bus: one table with a row for each type of control message (name, check
 * of the body, thread, handler), and the inbox of what waits for the main thread.
 * It knows the form of messages (varuna_msg.h) and nothing of what they do: the
 * rooms above and the heartbeat register the rows. A handler is
 * called in one of two threads; a type may have one in each.
 *
 *   received --> check --> handler of the async context --(defer)--+
 *                   \                                               v
 *                    +-- (there is none) ----------------------> inbox
 *                                                                   |
 *   uct_varuna_ctl_dispatch() <-- handler of the main thread <------+
 *
 * Lock held in all of it, but for uct_varuna_bus_run().
 */
#ifndef UCT_VARUNA_BUS_H_
#define UCT_VARUNA_BUS_H_

#include <uct/ib/varuna/core/varuna_msg.h>

#include <ucs/datastruct/list.h>
#include <uct/ib/varuna/core/varuna_def.h>

/* Received messages that wait for the main thread. A flood is dropped beyond that:
 * requests are sent again. */
#define UCT_VARUNA_BUS_MAX_INBOX     65536

/* Events of this process, to which rooms above react by a row of the async context. They
 * are not types of messages, so no peer can send them. */
enum {
    UCT_VARUNA_BUS_PROGRESSED  = UCT_VARUNA_CTL_LAST, /* Inner interfaces were polled */
    UCT_VARUNA_BUS_PORT_CHANGED,                      /* ctl->ports.down is another */
    UCT_VARUNA_BUS_LINK_CLOSES,                       /* An interface of a link that is down is
                                                         to be closed: who has endpoints there
                                                         destroys them */
    UCT_VARUNA_BUS_LAST
};

typedef enum {
    UCT_VARUNA_BUS_ASYNC,   /* The async context, as soon as the message arrives; the
                               lock is held, and the application may be computing */
    UCT_VARUNA_BUS_MAIN,    /* The main thread, without the lock, when the application
                               calls progress */
    UCT_VARUNA_BUS_THREAD_LAST
} uct_varuna_bus_thread_t;

/**
 * Handles a message, or an event.
 *
 * @param [in] arg   What the row was registered with.
 * @param [in] link  Local link over which the message came.
 * @param [in] hdr   Its header; NULL for events.
 * @param [in] body  Its body, which has passed the check.
 */
typedef void (*uct_varuna_bus_handler_t)(void *arg, unsigned link,
                                         const uct_varuna_ctl_hdr_t *hdr,
                                         const void *body);

/* What a room registers. */
typedef struct uct_varuna_bus_reg {
    unsigned                   type;      /* uct_varuna_ctl_type_t, or an event */
    uct_varuna_bus_thread_t    thread;
    uct_varuna_bus_handler_t   handler;
} uct_varuna_bus_reg_t;

/* A row of the table. */
typedef struct uct_varuna_bus_row {
    const uct_varuna_msg_info_t *info;    /* Name and check; NULL for events */
    struct {
        uct_varuna_bus_handler_t func;    /* NULL: there is none */
        void                     *arg;
    } handlers[UCT_VARUNA_BUS_THREAD_LAST];
} uct_varuna_bus_row_t;

typedef struct uct_varuna_bus {
    uct_varuna_bus_row_t       rows[UCT_VARUNA_BUS_LAST];
    ucs_list_link_t            inbox;     /* Messages, oldest first */
    unsigned                   inbox_len;
} uct_varuna_bus_t;

void uct_varuna_bus_init(uct_varuna_bus_t *bus);

/** Drop what is in the inbox. */
void uct_varuna_bus_cleanup(uct_varuna_bus_t *bus);

/**
 * Add handlers to the table. A type has one handler for each thread.
 *
 * @param [in] arg  Passed to all of these handlers.
 */
void uct_varuna_bus_register(uct_varuna_bus_t *bus,
                             const uct_varuna_bus_reg_t *regs, unsigned num_regs,
                             void *arg);

/** As above for one handler.
 *  @return UCS_ERR_ALREADY_EXISTS if there is one, UCS_ERR_INVALID_PARAM if there is no
 *          such type, or if an event is to be handled in the main thread. */
ucs_status_t uct_varuna_bus_add(uct_varuna_bus_t *bus,
                                const uct_varuna_bus_reg_t *reg, void *arg);

/**
 * Check a message, see uct_varuna_parse_ctl().
 *
 * @return UCS_ERR_INVALID_PARAM also if its type has no handler.
 */
ucs_status_t uct_varuna_bus_check(const uct_varuna_bus_t *bus, const void *data,
                                  size_t length, const char **reason_p);

/**
 * Call the handler of the async context, or put the message into the inbox if there is
 * none. The message has passed the check, and its body follows its header.
 *
 * @return As uct_varuna_bus_defer(); UCS_OK if it was handled.
 */
ucs_status_t uct_varuna_bus_deliver(uct_varuna_bus_t *bus, unsigned link,
                                    const uct_varuna_ctl_hdr_t *hdr,
                                    const void *body);

/**
 * Put a message into the inbox of the main thread, for which its type has a handler.
 *
 * @return UCS_INPROGRESS if the main thread has something to do now,
 *         UCS_ERR_NO_RESOURCE if the inbox is full, UCS_ERR_NO_MEMORY.
 */
ucs_status_t uct_varuna_bus_defer(uct_varuna_bus_t *bus, unsigned link,
                                  const uct_varuna_ctl_hdr_t *hdr,
                                  const void *body);

/** Call the handler of an event, if there is one. */
void uct_varuna_bus_raise(uct_varuna_bus_t *bus, unsigned event);

/** Take all messages out of the inbox, into an empty list of the caller's. */
void uct_varuna_bus_take(uct_varuna_bus_t *bus, ucs_list_link_t *items);

/** Main thread, lock not held: call the handlers of what was taken, in the order in
 *  which it came. @return Number of messages. */
unsigned uct_varuna_bus_run(const uct_varuna_bus_t *bus, ucs_list_link_t *items);

/* --- Waking the main thread --- */

/* Wakes the main thread when something waits for it. Any thread, no lock, unless a
 * function says otherwise. */

/** @return nonzero when uct_varuna_ctl_dispatch() has something to do. */
int uct_varuna_ctl_has_events(const uct_varuna_ctl_t *ctl);

/** Main thread, before it waits for uct_varuna_ctl_event_fd(): it is woken once, and
 *  only if it is armed. @return UCS_ERR_BUSY if there is something to do already. */
ucs_status_t uct_varuna_ctl_event_arm(uct_varuna_ctl_t *ctl);

/** Any thread, no lock: let the main thread make a round. */
void uct_varuna_ctl_poke(uct_varuna_ctl_t *ctl);

/** File descriptor which is readable while events wait (for wake-up mode). */
int uct_varuna_ctl_event_fd(const uct_varuna_ctl_t *ctl);

/** Something waits for uct_varuna_ctl_dispatch(). Lock held. */
void uct_varuna_ctl_notify(uct_varuna_ctl_t *ctl);

/** Signal an eventfd, and take the signals back. */
void uct_varuna_ctl_signal(int fd);
void uct_varuna_ctl_drain_signal(int fd);

/* --- Warnings --- */

/** Tell the user that a peer's message or address is refused; at most once in a
 * while, since a broken peer repeats itself. */
void uct_varuna_ctl_complain(uct_varuna_ctl_t *ctl, uint64_t uuid,
                             const char *what, const char *reason);

#endif
