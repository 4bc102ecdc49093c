/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The form of control messages: the name of each type, the check of its body, and other
 * facts that do not depend on what the message does. The bus (varuna_bus.h) adds the
 * handlers. Pure.
 */
#ifndef UCT_VARUNA_MSG_H_
#define UCT_VARUNA_MSG_H_

#include "varuna_parse.h"

#include <ucs/sys/math.h>
#include <string.h>

enum {
    UCT_VARUNA_MSG_FLAG_EPOCH    = UCS_BIT(0), /* It is about one incarnation */
    UCT_VARUNA_MSG_FLAG_FROM     = UCS_BIT(1), /* Its sender's address follows */
    UCT_VARUNA_MSG_FLAG_ANSWER   = UCS_BIT(2), /* It answers a request of its receiver,
                                                  which is repeated if it is lost */
    UCT_VARUNA_MSG_FLAG_FREQUENT = UCS_BIT(3)  /* Not logged at level debug */
};

/* Bounds of a member of a body's fixed part */
typedef struct uct_varuna_msg_field {
    uint16_t                   offset;
    uint8_t                    size;      /* 0: the row has no more */
    uint8_t                    unit;      /* So many bytes follow the fixed part for each of
                                             its value */
    uint64_t                   min;
    uint64_t                   max;       /* Of a negative number: as an unsigned one */
} uct_varuna_msg_field_t;

#define UCT_VARUNA_MSG_MAX_FIELDS    7

/* All that is known of a message type. What peers send is checked by it, and the fuzzers'
 * messages are made by it (test/fuzz/fuzz_msg.h). */
typedef struct uct_varuna_msg_info {
    uint8_t                    type;      /* uct_varuna_ctl_type_t */
    const char                 *name;     /* NULL: there is no such type */
    uint16_t                   size;      /* Of the body's fixed part */
    uint8_t                    flags;     /* UCT_VARUNA_MSG_FLAG_xx */
    uint8_t                    answer;    /* The type that answers it, 0: none */
    uct_varuna_msg_field_t     fields[UCT_VARUNA_MSG_MAX_FIELDS];
    /* What the bounds do not say, or NULL. May take bytes after the fixed part, which then
     * count no more. @return whether it is right */
    int                        (*check)(const void *fixed, uct_varuna_reader_t *rest);
} uct_varuna_msg_info_t;

extern const uct_varuna_msg_info_t uct_varuna_msg_infos[];

/**
 * Check a control message: its header, and that its body is as long as its type
 * and the lengths in it say. Inner addresses and keys are not looked into.
 *
 * @param [in]  data      Message.
 * @param [in]  length    Its length.
 * @param [out] reason_p  A sentence for the user in case of failure.
 *
 * @return UCS_ERR_UNSUPPORTED for another wire version, of which nothing but
 *         the header may be read; UCS_ERR_INVALID_PARAM if it is malformed.
 */
ucs_status_t uct_varuna_parse_ctl(const void *data, size_t length,
                                  const char **reason_p);

/**
 * The address to which the requester of a control message, which has passed the check,
 * wants the answer.
 *
 * @param [in]  data    Message.
 * @param [out] parsed  A short address with one link.
 *
 * @return UCS_ERR_NO_ELEM if the message has no address.
 */
ucs_status_t uct_varuna_parse_ctl_from(const void *data,
                                       uct_varuna_parsed_addr_t *parsed);

/**
 * The same of a message of the wire version before this one, which has not been
 * checked.
 *
 * @param [out] hdr_p   Its header; what it did not have then is 0.
 * @param [out] parsed  A short address with one link.
 *
 * @return UCS_ERR_INVALID_PARAM if it is not such a message, or has no address.
 */
ucs_status_t uct_varuna_parse_ctl_old(const void *data, size_t length,
                                      uct_varuna_ctl_hdr_t *hdr_p,
                                      uct_varuna_parsed_addr_t *parsed);

/** @return What is known of @a type, NULL if there is no such type. */
static inline const uct_varuna_msg_info_t *uct_varuna_msg_info(unsigned type)
{
    return ((type < UCT_VARUNA_CTL_LAST) &&
            (uct_varuna_msg_infos[type].name != NULL)) ?
           &uct_varuna_msg_infos[type] : NULL;
}

/** @return Whether a body is as the row of @a type, which exists, says. */
int uct_varuna_msg_check_body(unsigned type, const void *body, size_t length);

/** @return Value of a member of the fixed part of a body. */
static inline uint64_t
uct_varuna_msg_value(const uct_varuna_msg_field_t *field, const void *fixed)
{
    const void *ptr = UCS_PTR_BYTE_OFFSET(fixed, field->offset);
    union {
        uint8_t                u8;
        uint16_t               u16;
        uint32_t               u32;
        uint64_t               u64;
    } value;

    memcpy(&value, ptr, field->size);
    return (field->size == 1) ? value.u8 : (field->size == 2) ? value.u16 :
           (field->size == 4) ? value.u32 : value.u64;
}

/** @return Name of a control message type, for logs. */
const char *uct_varuna_ctl_type_name(unsigned type);

/** @return Whether @a type is known and has @a flag. */
static inline int uct_varuna_msg_has(unsigned type, unsigned flag)
{
    const uct_varuna_msg_info_t *info = uct_varuna_msg_info(type);

    return (info != NULL) && !!(info->flags & flag);
}

/** @return Whether messages of @a type carry the address of their requester. */
static inline int uct_varuna_ctl_has_from(unsigned type)
{
    return uct_varuna_msg_has(type, UCT_VARUNA_MSG_FLAG_FROM);
}

#endif
