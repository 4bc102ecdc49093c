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

enum {
    UCT_VARUNA_MSG_FLAG_EPOCH    = UCS_BIT(0), /* It is about one incarnation */
    UCT_VARUNA_MSG_FLAG_FROM     = UCS_BIT(1), /* Its sender's address follows */
    UCT_VARUNA_MSG_FLAG_ANSWER   = UCS_BIT(2), /* It answers a request of its receiver,
                                                  which is repeated if it is lost */
    UCT_VARUNA_MSG_FLAG_FREQUENT = UCS_BIT(3)  /* Not logged at level debug */
};

struct uct_varuna_reader;

/* What is known of a message type */
typedef struct uct_varuna_msg_info {
    const char                 *name;
    /* Takes the fixed part of the body. @return how many bytes must follow; -1 if the
     * fixed part is wrong */
    ssize_t                    (*check)(struct uct_varuna_reader *body);
    uint8_t                    flags;
} uct_varuna_msg_info_t;

extern const uct_varuna_msg_info_t uct_varuna_msg_infos[UCT_VARUNA_CTL_LAST];

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
