/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Reading the emulator's trace.
 */
#include "ft_trace.h"
#include "ft_child.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>


static uint64_t ft_json_number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    if (json_is_integer(value)) {
        return json_integer_value(value);
    }

    return json_is_string(value) ?
           strtoull(json_string_value(value), NULL, 0) : json_is_true(value);
}

/* "QP.REQUEST" */
static void ft_trace_id(const json_t *root, ft_entry_t *entry)
{
    const char *id = json_string_value(json_object_get(root, "id"));

    entry->qp_id   = entry->request = 0;
    if (id != NULL) {
        sscanf(id, "%" SCNu64 ".%" SCNu64, &entry->qp_id, &entry->request);
    }
}

int ft_trace_next(char **text_p, ft_entry_t *entry)
{
    char *line = strsep(text_p, "\n");
    const char *op, *type, *ack;
    json_t *root;

    if ((line == NULL) || (line[0] == '\0')) {
        return 0;
    }

    root = json_loads(line, 0, NULL);
    op   = json_string_value(json_object_get(root, "op"));
    type = json_string_value(json_object_get(root, "type"));
    if ((op == NULL) || (type == NULL)) {
        ft_fatal("the trace is not complete: %s", line);
    }

    entry->seq       = ft_json_number(root, "seq");
    entry->host      = ft_json_number(root, "host");
    entry->link      = ft_json_number(root, "link");
    entry->src_host  = ft_json_number(root, "src_host");
    entry->src_qpn   = ft_json_number(root, "src_qpn");
    ft_trace_id(root, entry);
    entry->psn       = ft_json_number(root, "psn");
    entry->addr      = ft_json_number(root, "addr");
    entry->length    = ft_json_number(root, "length");
    entry->data      = ft_json_number(root, "data");
    entry->compare   = ft_json_number(root, "compare");
    entry->swap      = ft_json_number(root, "swap");
    entry->is_cas    = !strcmp(op, "cas");
    entry->is_write  = !strncmp(op, "write", 5);
    entry->is_quirk  = !strcmp(op, "quirk");
    entry->is_early  = ft_json_number(root, "out_of_order");
    entry->is_rc     = !strcasecmp(type, "rc");
    entry->duplicate = ft_json_number(root, "duplicate");
    entry->partial   = ft_json_number(root, "partial");
    entry->last      = ft_json_number(root, "last");
    ack              = json_string_value(json_object_get(root, "ack"));
    entry->acked     = (ack != NULL) && !strcmp(ack, "sent");
    json_decref(root);
    return 1;
}
