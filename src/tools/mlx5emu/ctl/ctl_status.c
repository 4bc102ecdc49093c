/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Verb "status": what there is in a fabric, and its counters.
 *
 * The tables are copied under their lock first, then printed.
 */

#include "ctl.h"
#include "../core/emu_attach.h"
#include "../core/emu_map.h"
#include "../core/emu_mr.h"
#include "../core/emu_port.h"
#include "../core/emu_proc.h"
#include "../core/emu_qp.h"
#include "../fault/emu_fault.h"
#include "../trace/emu_trace.h"
#include "../wire/emu_keep.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum {
    CTL_STATUS_JSON = 256,
    CTL_STATUS_QPS
};

static const struct option ctl_status_options[] = {
    {"json", no_argument, NULL, CTL_STATUS_JSON},
    {"qps",  no_argument, NULL, CTL_STATUS_QPS},
    {NULL,   0,           NULL, 0}
};

typedef struct ctl_status_proc {
    uint32_t index;
    int32_t  pid;
    uint32_t host;
    int      alive;
    unsigned num_qps;
    char     comm[EMU_COMM_MAX];
} ctl_status_proc_t;

typedef struct ctl_status_qp {
    uint32_t qpn;
    uint32_t type;
    uint32_t state;
    uint32_t port;
    int32_t  pid;
} ctl_status_qp_t;

/** Copies of what changes */
typedef struct ctl_status {
    ctl_status_proc_t procs[EMU_MAX_PROCS];
    ctl_status_qp_t   qps[EMU_MAX_QPS];
    emu_fault_rule_t  faults[EMU_FAULT_MAX_RULES];
    unsigned          num_procs;
    unsigned          num_qps;
    unsigned          num_faults;
    unsigned          num_mrs;      /* regions, with windows */
    uint64_t          memory;       /* bytes of queues and doorbell records */
} ctl_status_t;

/* By enum ibv_qp_state */
static const char *ctl_qp_state_names[] = {
    "reset", "init", "rtr", "rts", "sqd", "sqe", "err"
};

#define CTL_NUM_QP_STATES \
    (sizeof(ctl_qp_state_names) / sizeof(ctl_qp_state_names[0]))


static const char *ctl_status_qp_state(const ctl_status_qp_t *qp)
{
    return (qp->state < CTL_NUM_QP_STATES) ? ctl_qp_state_names[qp->state] :
           "unknown";
}

static const char *ctl_status_qp_type(const ctl_status_qp_t *qp)
{
    return (qp->type < EMU_QPT_LAST) ? emu_qp_type_names[qp->type] : "unknown";
}

static void ctl_status_add_proc(ctl_status_t *status, const emu_proc_t *proc)
{
    ctl_status_proc_t *copy = &status->procs[status->num_procs++];

    copy->index   = proc - emu_fabric->procs;
    copy->pid     = proc->pid;
    copy->host    = proc->host;
    copy->alive   = emu_proc_alive(proc);
    copy->num_qps = 0;
    memcpy(copy->comm, proc->comm, sizeof(copy->comm));
    copy->comm[sizeof(copy->comm) - 1] = '\0';
}

static void ctl_status_add_qp(ctl_status_t *status, const emu_qp_t *qp)
{
    ctl_status_qp_t *copy = &status->qps[status->num_qps++];
    unsigned i;

    copy->qpn   = qp->qpn;
    copy->type  = qp->type;
    copy->state = (qp->type == EMU_QPT_DCT) ? qp->resp_state : qp->req_state;
    copy->port  = qp->port;
    copy->pid   = 0;
    for (i = 0; i < status->num_procs; ++i) {
        if (status->procs[i].index == qp->proc) {
            copy->pid = status->procs[i].pid;
            ++status->procs[i].num_qps;
        }
    }
}

static uint64_t ctl_status_memory(void)
{
    uint64_t memory = 0;
    uint64_t i;

    emu_lock(&emu_fabric->heap_lock);
    for (i = 0; i < emu_fabric->heap_top; ++i) {
        memory += (emu_fabric->heap_pages[i] != 0) ? EMU_PAGE : 0;
    }

    emu_unlock(&emu_fabric->heap_lock);
    return memory;
}

static void ctl_status_copy(ctl_status_t *status)
{
    int keeper = emu_keep_proc();
    unsigned i;

    status->memory     = ctl_status_memory();
    status->num_faults = emu_fault_list(status->faults, EMU_FAULT_MAX_RULES);
    emu_lock(&emu_fabric->table_lock);
    for (i = 0; i < EMU_MAX_PROCS; ++i) {
        if (emu_fabric->procs[i].used && ((int)i != keeper)) {
            ctl_status_add_proc(status, &emu_fabric->procs[i]);
        }
    }

    for (i = 0; i < EMU_MAX_QPS; ++i) {
        if (emu_fabric->qps[i].used) {
            ctl_status_add_qp(status, &emu_fabric->qps[i]);
        }
    }

    for (i = 0; i < EMU_MAX_MRS; ++i) {
        status->num_mrs += (emu_fabric->mrs[i].used != 0);
    }

    emu_unlock(&emu_fabric->table_lock);
}

static uint64_t ctl_status_counter(const emu_port_t *port, unsigned type,
                                   unsigned counter)
{
    return __atomic_load_n(&port->counters[type][counter], __ATOMIC_RELAXED);
}

static uint64_t ctl_status_total(const emu_port_t *port, unsigned counter)
{
    uint64_t total = 0;
    unsigned type;

    for (type = 0; type < EMU_QPT_LAST; ++type) {
        total += ctl_status_counter(port, type, counter);
    }

    return total;
}

static void ctl_status_print_speed(const emu_port_t *port)
{
    emu_pipe_speed_t speed;

    if (emu_pipe_is_on()) {
        emu_pipe_get(port->index, &speed);
        ctl_speed_print(&speed);
    }
    printf("\n");
}

static void ctl_status_print_port(const emu_port_t *port)
{
    char device[EMU_PORT_NAME_MAX];
    unsigned min_mtu, max_mtu, counter;
    int column = 0;
    uint64_t value;

    emu_port_device_name(port, device);
    printf("link %u:%u  %s  lid %u  %s%s%s", port->host, port->link, device,
           emu_port_lid(port), (port->nic_gen & 1) ? "dead " : "",
           emu_link_state_names[port->link_state],
           port->flap_period_ns ? " (flaps)" : "");
    ctl_mtu_range(&emu_fabric->cfg, &min_mtu, &max_mtu);
    if (min_mtu != max_mtu) {
        printf("  MTU %u", port->mtu);
    }
    ctl_status_print_speed(port);
    for (counter = 0; counter < EMU_CNT_LAST; ++counter) {
        value = ctl_status_total(port, counter);
        if (value == 0) {
            continue;
        }

        if (column > 56) {
            printf("\n");
            column = 0;
        }

        column += printf("%s%s %" PRIu64, column ? ", " : "    ",
                         emu_counter_names[counter], value);
    }

    if (column > 0) {
        printf("\n");
    }
}

static void ctl_status_print_table(const ctl_status_t *status, int with_qps)
{
    const ctl_status_proc_t *proc;
    const ctl_status_qp_t *qp;

    for (proc = status->procs; proc < status->procs + status->num_procs;
         ++proc) {
        printf("process %d  host %u  %s  %u QPs%s\n", proc->pid, proc->host,
               proc->comm, proc->num_qps,
               proc->alive ? "" : "  (dead, not cleaned up yet)");
    }

    for (qp = status->qps;
         with_qps && (qp < status->qps + status->num_qps); ++qp) {
        printf("qp 0x%06x  %-3s  %-5s  link %u:%u  process %d\n", qp->qpn,
               ctl_status_qp_type(qp), ctl_status_qp_state(qp),
               qp->port / emu_fabric->cfg.links,
               qp->port % emu_fabric->cfg.links, qp->pid);
    }
}

static void ctl_status_print(const ctl_status_t *status, int with_qps)
{
    const uint64_t written = emu_trace_count(emu_fabric->trace);
    char line[EMU_FAULT_LINE_MAX];
    unsigned min_mtu, max_mtu, i;

    ctl_mtu_range(&emu_fabric->cfg, &min_mtu, &max_mtu);
    printf("fabric \"%s\": %u hosts, %u links, MTU %u", emu_fabric->cfg.name,
           emu_fabric->cfg.hosts, emu_fabric->cfg.links, max_mtu);
    if (min_mtu != max_mtu) {
        printf(" and less");
    }
    printf(", up for %.0f s\n",
           (emu_now_ns() - emu_fabric->start_ns) * 1e-9);
    printf("seed %" PRIu64 ", time scale %g%s\n", emu_fabric->cfg.seed,
           emu_fabric->cfg.time_scale,
           emu_fabric->cfg.shared_hca ? ", one NIC for all links of a host" :
                                        "");
    printf("in use: processes %u, QPs %u, regions %u, queues %" PRIu64 " KB\n",
           status->num_procs, status->num_qps, status->num_mrs, status->memory / 1024);
    for (i = 0; i < emu_fabric->cfg.hosts * emu_fabric->cfg.links; ++i) {
        ctl_status_print_port(&emu_fabric->ports[i]);
    }

    ctl_status_print_table(status, with_qps);
    for (i = 0; i < status->num_faults; ++i) {
        printf("fault %u  fired %" PRIu64 "  %s\n", status->faults[i].id,
               status->faults[i].fired,
               emu_fault_rule_format(&status->faults[i], line, sizeof(line)));
    }

    ctl_quirk_print_status();
    if (emu_pipe_is_on()) {
        printf("time: %s, packets were late by %.3f ms at most\n",
               (emu_keep_proc() < 0) ? "NOBODY KEEPS IT" : "kept",
               emu_fabric->pipe->keeper.late_ns / 1e6);
    }
    printf("trace: %" PRIu64 " entries written, room for %" PRIu64 "%s\n",
           written, emu_fabric->cfg.trace_entries,
           (written > emu_fabric->cfg.trace_entries) ?
           ": THE FIRST ONES ARE LOST, use a larger --trace" : "");
}

static json_t *ctl_status_json_counters(const emu_port_t *port, int type)
{
    json_t *root = json_object();
    unsigned counter;

    for (counter = 0; counter < EMU_CNT_LAST; ++counter) {
        json_object_set_new(root, emu_counter_names[counter],
                            json_integer((type < 0) ?
                                         ctl_status_total(port, counter) :
                                         ctl_status_counter(port, type,
                                                            counter)));
    }

    return root;
}

static json_t *ctl_status_json_speed(const emu_port_t *port)
{
    emu_pipe_speed_t speed;

    emu_pipe_get(port->index, &speed);
    return json_pack("{s:b, s:I, s:I, s:I}", "timed", emu_pipe_is_on() != 0,
                     "rate", (json_int_t)speed.rate, "latency_ns",
                     (json_int_t)speed.latency_ns, "queue",
                     (json_int_t)speed.queue);
}

static json_t *ctl_status_json_port(const emu_port_t *port)
{
    json_t *by_type = json_object();
    char device[EMU_PORT_NAME_MAX];
    unsigned type;

    for (type = 0; type < EMU_QPT_LAST; ++type) {
        json_object_set_new(by_type, emu_qp_type_names[type],
                            ctl_status_json_counters(port, type));
    }

    emu_port_device_name(port, device);
    return json_pack("{s:i, s:i, s:s, s:i, s:i, s:s, s:b, s:b, s:I, s:o, s:o,"
                     " s:o}", "host", port->host, "link", port->link, "device", device,
                     "lid", emu_port_lid(port), "mtu", (int)port->mtu, "state",
                     emu_link_state_names[port->link_state], "dead",
                     (int)(port->nic_gen & 1), "flaps",
                     port->flap_period_ns != 0, "changes",
                     (json_int_t)port->link_changes, "counters",
                     ctl_status_json_counters(port, -1), "by_type", by_type,
                     "time", ctl_status_json_speed(port));
}

static json_t *ctl_status_json_ports(void)
{
    json_t *root = json_array();
    unsigned i;

    for (i = 0; i < emu_fabric->cfg.hosts * emu_fabric->cfg.links; ++i) {
        json_array_append_new(root,
                              ctl_status_json_port(&emu_fabric->ports[i]));
    }

    return root;
}

static json_t *ctl_status_json_procs(const ctl_status_t *status)
{
    json_t *root = json_array();
    const ctl_status_proc_t *proc;
    unsigned i;

    for (i = 0; i < status->num_procs; ++i) {
        proc = &status->procs[i];
        json_array_append_new(root,
                json_pack("{s:i, s:i, s:s%, s:b, s:i}", "pid", proc->pid,
                          "host", (int)proc->host, "command", proc->comm,
                          strlen(proc->comm), "alive", proc->alive, "qps",
                          (int)proc->num_qps));
    }

    return root;
}

static json_t *ctl_status_json_qps(const ctl_status_t *status)
{
    json_t *root = json_array();
    const ctl_status_qp_t *qp;
    unsigned i;

    for (i = 0; i < status->num_qps; ++i) {
        qp = &status->qps[i];
        json_array_append_new(root,
                json_pack("{s:i, s:s, s:s, s:i, s:i, s:i}", "qpn",
                          (int)qp->qpn, "type", ctl_status_qp_type(qp),
                          "state", ctl_status_qp_state(qp), "host",
                          (int)(qp->port / emu_fabric->cfg.links), "link",
                          (int)(qp->port % emu_fabric->cfg.links), "pid",
                          (int)qp->pid));
    }

    return root;
}

static json_t *ctl_status_json_faults(const ctl_status_t *status)
{
    json_t *root = json_array();
    char line[EMU_FAULT_LINE_MAX];
    const emu_fault_rule_t *rule;
    unsigned i;

    for (i = 0; i < status->num_faults; ++i) {
        rule = &status->faults[i];
        json_array_append_new(root,
                json_pack("{s:I, s:s, s:I, s:I}", "id", (json_int_t)rule->id,
                          "rule", emu_fault_rule_format(rule, line,
                                                        sizeof(line)),
                          "matched", (json_int_t)rule->matched, "fired",
                          (json_int_t)rule->fired));
    }

    return root;
}

static int ctl_status_print_json(const ctl_status_t *status)
{
    unsigned min_mtu, max_mtu;
    json_t *root;
    int ret;

    ctl_mtu_range(&emu_fabric->cfg, &min_mtu, &max_mtu);
    root = json_pack("{s:s, s:i, s:i, s:i, s:b, s:I, s:f, s:I, s:I, s:i, s:o, s:o,"
                     " s:o, s:o, s:o, s:i, s:{s:I, s:I}}", "name", emu_fabric->cfg.name, "hosts",
                     (int)emu_fabric->cfg.hosts, "links",
                     (int)emu_fabric->cfg.links, "mtu",
                     (int)max_mtu, "shared_hca",
                     (int)emu_fabric->cfg.shared_hca, "seed",
                     (json_int_t)emu_fabric->cfg.seed, "time_scale",
                     emu_fabric->cfg.time_scale, "uptime_ns",
                     (json_int_t)(emu_now_ns() - emu_fabric->start_ns),
                     "queue_bytes", (json_int_t)status->memory, "regions",
                     (int)status->num_mrs, "ports",
                     ctl_status_json_ports(), "processes",
                     ctl_status_json_procs(status), "qps",
                     ctl_status_json_qps(status), "faults",
                     ctl_status_json_faults(status), "quirks",
                     ctl_quirk_json_status(), "subnet_timeout",
                     (int)emu_fabric->cfg.subnet_timeout, "trace", "written",
                     (json_int_t)emu_trace_count(emu_fabric->trace), "capacity",
                     (json_int_t)emu_fabric->cfg.trace_entries);
    if (root == NULL) {
        return ctl_fail("out of memory");
    }

    ret = json_dumpf(root, stdout, JSON_INDENT(2));
    json_decref(root);
    printf("\n");
    return (ret || fflush(stdout)) ? ctl_fail("cannot write JSON") : CTL_OK;
}

static int ctl_status_show(int json, int with_qps)
{
    ctl_status_t *status;
    int ret = CTL_OK;

    ret = ctl_fabric_open();
    if (ret) {
        return ret;
    }

    status = calloc(1, sizeof(*status));
    if (status == NULL) {
        emu_fabric_close();
        return ctl_fail("out of memory");
    }

    /* Objects of dead processes are not part of the state */
    (void)emu_proc_reap();
    ctl_status_copy(status);
    if (json) {
        ret = ctl_status_print_json(status);
    } else {
        ctl_status_print(status, with_qps);
    }

    free(status);
    emu_fabric_close();
    return ret;
}

static int ctl_status_run(int argc, char **argv)
{
    int with_qps = 0;
    int json     = 0;
    int status   = 0;
    int c;

    while ((c = ctl_getopt(&ctl_verb_status, argc, argv, "",
                           ctl_status_options, &status)) != -1) {
        switch (c) {
        case CTL_STATUS_JSON:
            json = 1;
            break;
        case CTL_STATUS_QPS:
            with_qps = 1;
            break;
        default:
            return status;
        }
    }

    if (optind != argc) {
        return ctl_usage_fail(&ctl_verb_status, "unexpected \"%s\"",
                              argv[optind]);
    }

    return ctl_status_show(json, with_qps);
}

const ctl_verb_t ctl_verb_status = {
    .name    = "status",
    .run     = ctl_status_run,
    .usage   = "[-n NAME] [--json] [--qps]",
    .help    = "Show links, processes, queue pairs and counters",
    .details =
    "  -n NAME  Name of the fabric\n"
    "  --json   As JSON: all counters, also by type of queue pair\n"
    "  --qps    List each queue pair\n"
};
