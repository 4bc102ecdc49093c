/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Counting and printing, see demo_report.h.
 */
#include "demo_report.h"
#include "demo_ucp.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>


#define DEMO_REPORT_INTERVAL (DEMO_NSEC / 2)
#define DEMO_REPORT_PAUSE    (DEMO_NSEC / 20) /* Shorter ones are not printed */


static const char *demo_op_names[DEMO_OP_LAST] = {
    [DEMO_OP_PUT]      = "puts",
    [DEMO_OP_GET]      = "gets",
    [DEMO_OP_READBACK] = "readbacks",
    [DEMO_OP_AM]       = "messages"
};


void demo_stats_start(demo_stats_t *stats)
{
    stats->start      = demo_now();
    stats->start_wall = demo_wall_now();
    stats->tick       = stats->start;
    stats->busy_since = stats->start;
}

void demo_stats_posted(demo_stats_t *stats, demo_op_kind_t kind, size_t length)
{
    if (stats->posted == stats->completed) {
        stats->busy_since = demo_now();
    }

    ++stats->posted;
    ++stats->ops[kind].posted;
    stats->ops[kind].bytes += length;
}

void demo_stats_completed(demo_stats_t *stats, demo_op_kind_t kind,
                          size_t length)
{
    uint64_t now   = demo_now();
    uint64_t pause = now - stats->busy_since;

    if (pause > stats->pause) {
        stats->pause    = pause;
        stats->pause_at = stats->busy_since - stats->start;
    }

    stats->tick_pause  = demo_max(stats->tick_pause, pause);
    stats->busy_since  = now;
    stats->tick_bytes += length;
    ++stats->completed;
    ++stats->ops[kind].completed;
}

void demo_stats_error(demo_stats_t *stats, const char *format, ...)
{
    va_list ap;

    if (stats->error[0] != '\0') {
        return;
    }

    va_start(ap, format);
    vsnprintf(stats->error, sizeof(stats->error), format, ap);
    va_end(ap);
}

void demo_report_tick(demo_stats_t *stats, uint64_t now)
{
    uint64_t in_flight = stats->posted - stats->completed;
    double interval    = (now - stats->tick) / 1e9;
    uint64_t waiting;

    if (now - stats->tick < DEMO_REPORT_INTERVAL) {
        return;
    }

    printf("%6.1f s  puts %8" PRIu64 "  gets %8" PRIu64 "  messages %8" PRIu64
           "  %8.0f op/s %7.1f MB/s  in flight %3" PRIu64,
           (now - stats->start) / 1e9, stats->ops[DEMO_OP_PUT].completed,
           stats->ops[DEMO_OP_GET].completed +
                   stats->ops[DEMO_OP_READBACK].completed,
           stats->ops[DEMO_OP_AM].completed,
           (stats->completed - stats->tick_completed) / interval,
           stats->tick_bytes / interval / 1e6, in_flight);

    waiting = (in_flight > 0) ? (now - stats->busy_since) : 0;
    if (waiting > DEMO_REPORT_PAUSE) {
        printf("  waiting for %.2f s", waiting / 1e9);
    } else if (stats->tick_pause > DEMO_REPORT_PAUSE) {
        printf("  paused for %.2f s", stats->tick_pause / 1e9);
    }

    printf("\n");
    fflush(stdout);
    stats->tick           = now;
    stats->tick_completed = stats->completed;
    stats->tick_bytes     = 0;
    stats->tick_pause     = 0;
}

/* One line of key=value, with the error text last */
static void demo_report_line(FILE *file, const demo_stats_t *stats,
                             const demo_verdict_t *verdict, int ok)
{
    static const demo_verdict_t none = {0};
    int i;

    fprintf(file, "summary: ok=%d seconds=%.3f", ok,
            (stats->start == 0) ? 0 : ((demo_now() - stats->start) / 1e9));
    for (i = 0; i < DEMO_OP_LAST; ++i) {
        fprintf(file, " %s=%" PRIu64 " %s_bytes=%" PRIu64, demo_op_names[i],
                stats->ops[i].completed, demo_op_names[i],
                stats->ops[i].bytes);
    }

    fprintf(file,
            " posted=%" PRIu64 " completed=%" PRIu64 " failed=%" PRIu64
            " doubled=%" PRIu64 " bad_gets=%" PRIu64 " pause_us=%" PRIu64
            " pause_at_us=%" PRIu64 " pause_start=%.6f",
            stats->posted, stats->completed, stats->failed, stats->doubled,
            stats->bad_contents, stats->pause / 1000, stats->pause_at / 1000,
            (stats->start_wall + stats->pause_at) / 1e9);

    fprintf(file, " checked=%d", verdict != NULL);
    verdict = (verdict == NULL) ? &none : verdict;
    fprintf(file,
            " received=%" PRIu64 " duplicates=%" PRIu64 " missing=%" PRIu64
            " bad_messages=%" PRIu64 " slots=%" PRIu64 " bad_slots=%" PRIu64
            " error=\"%s\"\n",
            verdict->messages, verdict->duplicates, verdict->missing,
            verdict->bad_contents, verdict->slots, verdict->bad_slots,
            (stats->error[0] != '\0') ? stats->error : verdict->error);
}

static void demo_report_readable(const demo_stats_t *stats,
                                 const demo_verdict_t *verdict)
{
    uint64_t gets = stats->ops[DEMO_OP_GET].completed +
                    stats->ops[DEMO_OP_READBACK].completed;
    int i;

    printf("\n");
    for (i = 0; i < DEMO_OP_LAST; ++i) {
        printf("  %-16s %10" PRIu64 "  (%.1f MB)\n", demo_op_names[i],
               stats->ops[i].completed, stats->ops[i].bytes / 1e6);
    }

    printf("  %-16s %10" PRIu64 " of %" PRIu64 ", %" PRIu64
           " with an error, %" PRIu64 " twice\n",
           "completions", stats->completed, stats->posted, stats->failed,
           stats->doubled);
    printf("  %-16s %10.1f ms, %.1f s after the start\n", "longest pause",
           stats->pause / 1e6, stats->pause_at / 1e9);
    printf("  %-16s %10" PRIu64 " compared, %" PRIu64 " wrong\n",
           "client: gets", gets, stats->bad_contents);
    if (verdict == NULL) {
        printf("  %-16s %10s\n", "server", "no verdict");
        return;
    }

    printf("  %-16s %10" PRIu64 " in order, %" PRIu64 " missing, %" PRIu64
           " twice, %" PRIu64 " wrong\n",
           "server: messages", verdict->messages, verdict->missing,
           verdict->duplicates, verdict->bad_contents);
    printf("  %-16s %10" PRIu64 " slots checked, %" PRIu64 " wrong\n",
           "server: memory", verdict->slots, verdict->bad_slots);
}

static int
demo_report_ok(const demo_stats_t *stats, const demo_verdict_t *verdict)
{
    return (stats->error[0] == '\0') && (stats->failed == 0) &&
           (stats->doubled == 0) && (stats->bad_contents == 0) &&
           (stats->posted == stats->completed) && (verdict != NULL) &&
           (verdict->error[0] == '\0') && (verdict->duplicates == 0) &&
           (verdict->missing == 0) && (verdict->bad_contents == 0) &&
           (verdict->bad_slots == 0) &&
           (verdict->messages == stats->ops[DEMO_OP_AM].completed);
}

int demo_report_summary(const demo_stats_t *stats,
                        const demo_verdict_t *verdict, const char *path)
{
    int ok = demo_report_ok(stats, verdict);
    FILE *file;

    if (stats->start != 0) {
        demo_report_readable(stats, verdict);
    }

    if (stats->error[0] != '\0') {
        printf("  FAILED: %s\n", stats->error);
    } else if ((verdict != NULL) && (verdict->error[0] != '\0')) {
        printf("  FAILED: %s\n", verdict->error);
    } else if (!ok) {
        printf("  FAILED: the numbers above do not agree\n");
    } else {
        printf("  OK: every operation completed once, all contents are "
               "right\n");
    }

    printf("\n");
    demo_report_line(stdout, stats, verdict, ok);
    fflush(stdout);
    if (path == NULL) {
        return ok;
    }

    file = fopen(path, "w");
    if (file == NULL) {
        demo_error("%s: %s", path, strerror(errno));
        return 0;
    }

    demo_report_line(file, stats, verdict, ok);
    if (fclose(file) != 0) {
        demo_error("%s: %s", path, strerror(errno));
        return 0;
    }

    return ok;
}
