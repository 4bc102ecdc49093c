/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Linearizability of a register whose writes all differ (Gibbons and Korach, "Testing
 * shared memories", 1997). A write and the reads of its value are a cluster. If some
 * operation of it ended before another one began, the register must have had the value
 * all the time between: its zone is "forward", from the first end to the last start.
 * Otherwise it is "backward": the register must have had the value at some time from
 * the last start to the first end. The history is linearizable if no read ended before
 * its write began, no two forward zones overlap, and no forward zone contains a
 * backward one.
 *
 * A write that was executed twice has two clusters, and each of its reads belongs to
 * one of them. If the reads can be divided, they can be divided such that those of the
 * first cluster ended before those of the second: a read that took effect earlier but
 * ended later can also take effect next to any read of the second cluster.
 */
#include "ft_history.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    uint64_t value;
    uint64_t from;
    uint64_t to;
    int      forward;
} ft_zone_t;

/* In a value: the second write of it */
#define FT_HISTORY_AGAIN (1ull << 55)

static char ft_history_text[256];


static int ft_compare_values(const void *a, const void *b)
{
    const ft_record_t *r1 = a, *r2 = b;

    if (r1->value != r2->value) {
        return (r1->value < r2->value) ? -1 : 1;
    }

    return r2->write - r1->write; /* The write first */
}

static int ft_compare_zones(const void *a, const void *b)
{
    const ft_zone_t *z1 = a, *z2 = b;

    return (z1->from > z2->from) - (z1->from < z2->from);
}

static const char *ft_history_wrong(const char *what, uint64_t value,
                                    uint64_t other)
{
    snprintf(ft_history_text, sizeof(ft_history_text),
             "%s: value 0x%" PRIx64 " (and 0x%" PRIx64 ")", what, value, other);
    return ft_history_text;
}

/* The zone of records of one value. @return NULL, or what is wrong */
static const char *ft_history_zone(const ft_record_t *records, size_t num,
                                   ft_zone_t *zone)
{
    uint64_t first_end  = UINT64_MAX;
    uint64_t last_start = 0;
    size_t i;

    zone->value = records[0].value;
    if (zone->value == 0) {
        first_end = 0; /* The initial value */
    } else if (!records[0].write) {
        return ft_history_wrong("a value was read that was never written",
                                zone->value, 0);
    }

    for (i = 0; i < num; ++i) {
        if ((i > 0) && records[i].write) {
            return ft_history_wrong("two writes of one value", zone->value, 0);
        }

        if ((zone->value != 0) && (records[i].end < records[0].start)) {
            return ft_history_wrong("read before it was written", zone->value,
                                    0);
        }

        if (records[i].end < first_end) {
            first_end = records[i].end;
        }

        if (records[i].start > last_start) {
            last_start = records[i].start;
        }
    }

    zone->forward = (first_end < last_start);
    zone->from    = zone->forward ? first_end : last_start;
    zone->to      = zone->forward ? last_start : first_end;
    return NULL;
}

/* Zones are sorted by their start. Forward zones that do not overlap are then also
 * sorted by their end, so only the last one can contain the next zone. */
static const char *ft_history_check_zones(const ft_zone_t *zones, size_t num)
{
    const ft_zone_t *forward = NULL;
    size_t i;

    for (i = 0; i < num; ++i) {
        if ((forward != NULL) && zones[i].forward &&
            (zones[i].from < forward->to)) {
            return ft_history_wrong("two values at one time", zones[i].value,
                                    forward->value);
        }

        if ((forward != NULL) && !zones[i].forward &&
            (zones[i].to < forward->to)) {
            return ft_history_wrong("written while another value was seen"
                                    " before and after", zones[i].value,
                                    forward->value);
        }

        if (zones[i].forward) {
            forward = &zones[i];
        }
    }

    return NULL;
}

static const char *ft_history_check_once(ft_record_t *records, size_t num)
{
    const char *wrong = NULL;
    size_t num_zones  = 0;
    ft_zone_t *zones;
    size_t i, end;

    zones = calloc(num + 1, sizeof(*zones));
    if (zones == NULL) {
        return "out of memory";
    }

    qsort(records, num, sizeof(*records), ft_compare_values);
    for (i = 0; (i < num) && (wrong == NULL); i = end) {
        for (end = i + 1; (end < num) &&
                          (records[end].value == records[i].value); ++end) {
        }
        wrong = ft_history_zone(&records[i], end - i, &zones[num_zones++]);
    }

    if (wrong == NULL) {
        qsort(zones, num_zones, sizeof(*zones), ft_compare_zones);
        wrong = ft_history_check_zones(zones, num_zones);
    }

    free(zones);
    return wrong;
}

static int ft_compare_ends(const void *a, const void *b)
{
    const ft_record_t *r1 = a, *r2 = b;

    return (r1->end > r2->end) - (r1->end < r2->end);
}

static const char *ft_history_check_copy(const ft_record_t *records, size_t num)
{
    ft_record_t *copy = malloc((num + 1) * sizeof(*copy));
    const char *wrong = "out of memory";

    if (copy != NULL) {
        memcpy(copy, records, num * sizeof(*copy));
        wrong = ft_history_check_once(copy, num);
        free(copy);
    }

    return wrong;
}

/* Records are sorted by their end. The array has room for one more record for each
 * write from @a next on that was executed twice. */
static const char *ft_history_share_out(ft_record_t *records, size_t num,
                                        size_t next)
{
    const char *wrong;
    uint64_t value;
    size_t total, i;

    while ((next < num) && !records[next].again) {
        ++next;
    }

    if (next == num) {
        return ft_history_check_copy(records, num);
    }

    value                = records[next].value;
    records[next].again  = 0;
    total                = num + 1;
    records[num]         = records[next];
    records[num].value  |= FT_HISTORY_AGAIN;
    wrong                = ft_history_share_out(records, total, next + 1);
    for (i = num; (i > 0) && (wrong != NULL); --i) {
        if ((records[i - 1].value == value) && !records[i - 1].write) {
            records[i - 1].value |= FT_HISTORY_AGAIN;
            wrong = ft_history_share_out(records, total, next + 1);
        }
    }

    for (i = 0; i < num; ++i) {
        if (records[i].value == (value | FT_HISTORY_AGAIN)) {
            records[i].value = value;
        }
    }

    records[next].again = 1;
    return wrong;
}

const char *ft_history_check(ft_record_t *records, size_t num)
{
    ft_record_t *twice;
    const char *wrong;

    qsort(records, num, sizeof(*records), ft_compare_ends);
    twice = malloc(((2 * num) + 1) * sizeof(*twice));
    if (twice == NULL) {
        return "out of memory";
    }

    memcpy(twice, records, num * sizeof(*twice));
    wrong = ft_history_share_out(twice, num, 0);
    free(twice);
    return wrong;
}
