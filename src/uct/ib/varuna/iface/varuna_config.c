/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The options of the transport: the table which ucx_info shows, and what the interface
 * makes of it.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_tl_iface.h"
#include <uct/ib/varuna/core/varuna_clock.h>
#include <uct/ib/varuna/ucx/varuna_mlx5_dev.h>

#include <ucs/debug/log.h>
#include <ucs/sys/compiler_def.h>
#include <ucs/sys/math.h>
#include <ucs/time/time.h>

static const char *uct_varuna_ambiguous_names[] = {
    [UCT_VARUNA_AMBIGUOUS_REPEAT] = "repeat",
    [UCT_VARUNA_AMBIGUOUS_FAIL]   = "fail",
    [UCT_VARUNA_AMBIGUOUS_LAST]   = NULL
};

static const char *uct_varuna_log_names[] = {
    [UCT_VARUNA_LOG_ALL]      = "all",
    [UCT_VARUNA_LOG_FALLBACK] = "fallback",
    [UCT_VARUNA_LOG_LAST]     = NULL
};

static const char *uct_varuna_order_names[] = {
    [UCT_VARUNA_ORDER_POLICY_AUTO]    = "auto",
    [UCT_VARUNA_ORDER_POLICY_CERTAIN] = "certain",
    [UCT_VARUNA_ORDER_POLICY_UNKNOWN] = "unknown",
    [UCT_VARUNA_ORDER_POLICY_LAST]    = NULL
};

ucs_config_field_t uct_varuna_iface_config_table[] = {
  {"", "ALLOC=heap;FAILURE=warn", NULL,
   ucs_offsetof(uct_varuna_iface_config_t, super),
   UCS_CONFIG_TYPE_TABLE(uct_iface_config_table)},

  {"DC_NUM_DCI", "8",
   "Number of DC initiators (DCI) on each NIC, at most 64. After a failure\n"
   "all endpoints share them until their RC queue pairs are built. If there\n"
   "are fewer DCIs than endpoints, these wait for one another. Since UCX 1.18\n"
   "a DCI is created when an endpoint needs it.",
   ucs_offsetof(uct_varuna_iface_config_t, dc_num_dci), UCS_CONFIG_TYPE_UINT},

  {"HOLD_MIN", "100ms",
   "Hold-down: a link or path that has failed is used again after it has\n"
   "worked for this time. The time doubles with each further failure, up to\n"
   "HOLD_MAX.",
   ucs_offsetof(uct_varuna_iface_config_t, hold_min), UCS_CONFIG_TYPE_TIME},

  {"HOLD_MAX", "10s",
   "Longest hold-down of a link or path that keeps failing.",
   ucs_offsetof(uct_varuna_iface_config_t, hold_max), UCS_CONFIG_TYPE_TIME},

  {"CTL_TIMEOUT", "50ms",
   "Repeat a control request over the next link if it is not answered within\n"
   "this time.",
   ucs_offsetof(uct_varuna_iface_config_t, ctl_timeout), UCS_CONFIG_TYPE_TIME},

  {"GIVE_UP", "60s",
   "If no link is left, or a peer does not answer, endpoints fail with an\n"
   "error after this time, from the first operation without an answer. Time in\n"
   "which the application does not call progress does not count.",
   ucs_offsetof(uct_varuna_iface_config_t, give_up), UCS_CONFIG_TYPE_TIME},

  {"PACKET_LIFETIME", "auto",
   "Longest time for which the fabric may delay a packet. The responder cannot\n"
   "fence a failed DC lane, so nothing is repeated before this time has\n"
   "passed. auto is the subnet timeout of the ports on InfiniBand, and 2s on\n"
   "RoCE.",
   ucs_offsetof(uct_varuna_iface_config_t, packet_lifetime),
   UCS_CONFIG_TYPE_TIME_UNITS},

  {"PEER_TIMEOUT", "10s",
   "If a peer is silent on all links for this time while another process\n"
   "behind one of its ports answers, the peer's process has ended: endpoints\n"
   "to it that have lost their lane fail now instead of after GIVE_UP. Needs\n"
   "the heartbeat. 0 disables it.",
   ucs_offsetof(uct_varuna_iface_config_t, peer_timeout), UCS_CONFIG_TYPE_TIME},

  {"DRAIN_TIMEOUT", "3s",
   "A NIC that has not flushed a failed queue pair after this time hangs. The\n"
   "responder's fence and PACKET_LIFETIME then have to prove that the lane is\n"
   "at rest; otherwise the endpoint fails.",
   ucs_offsetof(uct_varuna_iface_config_t, drain_timeout),
   UCS_CONFIG_TYPE_TIME},

  {"RETURN_DELAY", "0",
   "Move the traffic back to a link of higher priority after that link has\n"
   "worked for this time in addition to its hold-down. inf leaves it on a link\n"
   "until that link fails.",
   ucs_offsetof(uct_varuna_iface_config_t, return_delay),
   UCS_CONFIG_TYPE_TIME_UNITS},

  {"STANDBY", "n",
   "On NICs without DC, keep a second RC connection of each endpoint on another\n"
   "link. After a failure it is used at once; otherwise it has to be connected\n"
   "first. It costs one more queue pair on each side.",
   ucs_offsetof(uct_varuna_iface_config_t, standby), UCS_CONFIG_TYPE_BOOL},

  {"STANDBY_RX_QUEUE_LEN", "512",
   "Number of receive buffers of each lane except RC on the primary link.\n"
   "These lanes carry traffic for short times only; a full queue slows senders\n"
   "down but loses nothing. 0 uses the inner transport's setting.",
   ucs_offsetof(uct_varuna_iface_config_t, standby_rx_queue_len),
   UCS_CONFIG_TYPE_UINT},

  {"SPARE_QPS", "4",
   "Number of RC queue pairs that are kept ready on each link. This many\n"
   "endpoints of peers can be connected while the application does not call\n"
   "progress; further ones use DC until it does.",
   ucs_offsetof(uct_varuna_iface_config_t, spare_qps), UCS_CONFIG_TYPE_UINT},

  {"TX_CQ_MODERATION", "16",
   "Number of operations of an endpoint that share one completion if the\n"
   "application waits for none of them, at most 64. Completed ones are not in\n"
   "doubt after a failure, so a lower number leaves less to recover.",
   ucs_offsetof(uct_varuna_iface_config_t, tx_cq_moderation),
   UCS_CONFIG_TYPE_UINT},

  {"PORT_EVENTS", "y",
   "Treat a port-down event as a failure of its link, and report it to peers.\n"
   "Otherwise the heartbeat or failing requests detect the failure.",
   ucs_offsetof(uct_varuna_iface_config_t, port_events), UCS_CONFIG_TYPE_BOOL},

  {"HEARTBEAT_INTERVAL", "100ms",
   "Ping peers at this interval, on each link with unfinished requests. The\n"
   "control planes exchange the pings, independently of the applications. 0\n"
   "disables the heartbeat.",
   ucs_offsetof(uct_varuna_iface_config_t, heartbeat_interval),
   UCS_CONFIG_TYPE_TIME},

  {"HEARTBEAT_MISSES", "5",
   "The path of a link to a peer has failed after this number of intervals\n"
   "without an answer, if the peer answers on another link meanwhile.",
   ucs_offsetof(uct_varuna_iface_config_t, heartbeat_misses),
   UCS_CONFIG_TYPE_UINT},

  {"HANG_TIMEOUT", "10s",
   "The path has failed if a queue pair has completed no request of an\n"
   "endpoint for this time, and the peer answers on another link only, or\n"
   "answers although the requests cannot be waiting for its receive buffers. 0\n"
   "disables it.",
   ucs_offsetof(uct_varuna_iface_config_t, hang_timeout), UCS_CONFIG_TYPE_TIME},

  {"ORPHAN_TIMEOUT", "10m",
   "Free the queue pairs of a peer's endpoints if the peer has not answered on\n"
   "any link for this time and messages to it fail on all of them. A stopped\n"
   "process keeps them. If the peer comes back later, its endpoints fail, so\n"
   "set it longer than GIVE_UP. 0 disables it.",
   ucs_offsetof(uct_varuna_iface_config_t, orphan_timeout),
   UCS_CONFIG_TYPE_TIME},

  {"MAX_TARGETS", "1000000",
   "Maximum number of endpoints that all peers may have to this interface,\n"
   "including closed ones until the application calls progress. One interface\n"
   "of a peer may have a tenth of them open.",
   ucs_offsetof(uct_varuna_iface_config_t, max_targets), UCS_CONFIG_TYPE_UINT},

  {"CTL_DIR", "auto",
   "Directory of the socket that rc_varuna_ctl connects to.\n"
   " - auto - $XDG_RUNTIME_DIR/rc_varuna, or /tmp/rc_varuna-<user id>.\n"
   " - none - No socket.",
   ucs_offsetof(uct_varuna_iface_config_t, ctl_dir), UCS_CONFIG_TYPE_STRING},

  {"AMBIGUOUS", "repeat",
   "What to do with an operation that may or may not have been executed before\n"
   "its lane failed: a put whose target differs from what was written, or an\n"
   "atomic. This concerns at most one operation of an endpoint on a lane whose\n"
   "packet sequence number cannot be queried (DC). If the network may reorder\n"
   "packets, or without a log if the peer's NIC dies, it concerns all that was\n"
   "not acknowledged.\n"
   " - repeat - Execute it, possibly for the second time.\n"
   " - fail   - Fail the endpoint.",
   ucs_offsetof(uct_varuna_iface_config_t, ambiguous),
   UCS_CONFIG_TYPE_ENUM(uct_varuna_ambiguous_names)},

  {"LOG", "all",
   "Which operations that must not be repeated write an entry to the log in\n"
   "the peer's memory.\n"
   " - all      - All of them. On RC, each entry is a message of its own.\n"
   " - fallback - Those on lanes whose packet sequence number cannot be queried\n"
   "              (DC). If the peer's NIC dies, what was executed is found out\n"
   "              by reading the targets back.",
   ucs_offsetof(uct_varuna_iface_config_t, log),
   UCS_CONFIG_TYPE_ENUM(uct_varuna_log_names)},

  {"ORDER", "auto",
   "Whether writes reach the peer's memory in the order in which they were sent,\n"
   "although the network may route packets adaptively. The log proves something\n"
   "only then.\n"
   " - auto    - What the NICs say. On Ethernet most say nothing: it is unknown.\n"
   " - certain - They do, unless the NICs say that they do not. Set this for an\n"
   "             Ethernet network without adaptive routing.\n"
   " - unknown - They may not, whatever the NICs say.",
   ucs_offsetof(uct_varuna_iface_config_t, order),
   UCS_CONFIG_TYPE_ENUM(uct_varuna_order_names)},

  {"ORDERED_SL", "n",
   "On InfiniBand, if packets of the service level may overtake each other, use\n"
   "the first one on which they stay in order, unless UCX_IB_SL names one. It may\n"
   "have another virtual lane, with less bandwidth. If nothing arrives over it,\n"
   "the first one is used again.",
   ucs_offsetof(uct_varuna_iface_config_t, ordered_sl), UCS_CONFIG_TYPE_BOOL},

  {"AUDIT", "none",
   "Directory of audit files. Each recovery adds a record of its evidence, its\n"
   "requests and its verdicts, which rc_varuna_audit checks. Nothing is written\n"
   "while no lane fails. none disables it.",
   ucs_offsetof(uct_varuna_iface_config_t, audit), UCS_CONFIG_TYPE_STRING},

  {NULL}
};

/* A packet may be on its way on any link. "inf" becomes what no fabric exceeds: deadlines
 * are sums. */
static ucs_time_t uct_varuna_iface_packet_lifetime(const uct_varuna_iface_t *iface,
                                                   ucs_time_t option)
{
    double lifetime = 0;
    const uct_varuna_nic_t *nic;
    unsigned link;

    if (option != UCS_TIME_AUTO) {
        return ucs_min(option, ucs_time_from_sec(UCT_VARUNA_LIFETIME_MAX));
    }

    for (link = 0; link < iface->num_links; ++link) {
        if (!uct_varuna_md_use(iface->md, iface->links[link].nic)) {
            continue; /* It is away, and is left out */
        }

        nic      = &iface->md->nics[iface->links[link].nic];
        lifetime = ucs_max(lifetime,
                           uct_varuna_mlx5_port_lifetime(nic->md, nic->dev_name));
        uct_varuna_md_unuse(iface->md, iface->links[link].nic);
    }

    return ucs_time_from_sec(lifetime);
}

/* An endpoint that gives up before a packet's life has ended cannot recover from DC */
static void uct_varuna_iface_check_lifetime(const uct_varuna_iface_t *iface)
{
    ucs_debug("rc_varuna: packet lifetime %.3f s",
              ucs_time_to_sec(iface->config.packet_lifetime));
    if (iface->config.packet_lifetime >= iface->config.give_up) {
        ucs_diag("rc_varuna: a packet may live for %.1f s, and endpoints give up after "
                 "%.1f s: an endpoint whose DC lane fails cannot recover. Set "
                 "UCX_RC_VARUNA_GIVE_UP longer, or UCX_RC_VARUNA_PACKET_LIFETIME "
                 "if the fabric is faster than its subnet timeout",
                 ucs_time_to_sec(iface->config.packet_lifetime),
                 ucs_time_to_sec(iface->config.give_up));
    }
}

ucs_status_t uct_varuna_iface_set_config(uct_varuna_iface_t *iface,
                                         const uct_varuna_iface_config_t *config)
{
    /* UCX's parser knows the word */
    if (config->return_delay == UCS_TIME_AUTO) {
        ucs_error("UCX_RC_VARUNA_RETURN_DELAY=auto: expected a time or inf");
        return UCS_ERR_INVALID_PARAM;
    }

    iface->config.dc_num_dci      = ucs_min(ucs_max(1, config->dc_num_dci),
                                            UCT_VARUNA_MAX_NUM_DCI);
    iface->config.standby_rx_queue_len = config->standby_rx_queue_len;
    iface->config.spare_qps       = ucs_min(config->spare_qps,
                                            UCT_VARUNA_MAX_SPARE_QPS);
    iface->config.tx_cq_moderation = ucs_min(ucs_max(1, config->tx_cq_moderation),
                                             UCT_VARUNA_MAX_MODERATION);
    iface->config.ctl_timeout     = ucs_time_from_sec(config->ctl_timeout);
    iface->config.give_up         = ucs_time_from_sec(config->give_up);
    iface->config.packet_lifetime =
            uct_varuna_iface_packet_lifetime(iface, config->packet_lifetime);
    iface->config.peer_timeout    = ucs_time_from_sec(config->peer_timeout);
    iface->config.drain_timeout   = ucs_time_from_sec(config->drain_timeout);
    iface->config.port_events     = config->port_events;
    iface->config.heartbeat_interval = ucs_time_from_sec(
                                               config->heartbeat_interval);
    iface->config.heartbeat_misses   = ucs_max(1, config->heartbeat_misses);
    iface->config.hang_timeout       = ucs_time_from_sec(config->hang_timeout);
    iface->config.max_targets        = config->max_targets;
    iface->config.orphan_timeout     = ucs_time_from_sec(
                                               config->orphan_timeout);
    iface->config.ambiguous       = config->ambiguous;
    iface->config.log             = config->log;
    iface->config.order           = config->order;
    iface->config.ordered_sl      = config->ordered_sl;
    iface->config.standby         = config->standby;
    uct_varuna_iface_check_lifetime(iface);
    return UCS_OK;
}

void uct_varuna_iface_init_link_table(uct_varuna_iface_t *iface,
                                      const uct_varuna_iface_config_t *config)
{
    const uct_varuna_md_t *md = iface->md;
    ucs_time_t delay          = md->return_policy.is_set ?
                                md->return_policy.delay : config->return_delay;

    uct_varuna_link_table_init(&iface->link_table, iface->num_links,
                               delay, ucs_time_from_sec(config->hold_min),
                               ucs_time_from_sec(config->hold_max));
}


/* --- Options that are times --- */

/* Called when an interface is opened. */

/* In seconds */
static int uct_varuna_times_check_seconds(double *value)
{
    if (!(*value >= 0)) {
        return 0; /* "nan" is neither */
    }

    *value = ucs_min(*value, UCT_VARUNA_TIMES_MAX);
    return 1;
}

/* In ticks of UCX's clock, which a negative number of seconds makes enormous. The two
 * words that the type has are the largest numbers; each option says what they mean. */
static int uct_varuna_times_check_ticks(const ucs_time_t *value)
{
    return (*value == UCS_TIME_INFINITY) || (*value == UCS_TIME_AUTO) ||
           (*value <= ucs_time_from_sec(UCT_VARUNA_TIMES_MAX));
}

ucs_status_t uct_varuna_times_check(const ucs_config_field_t *table, const char *prefix,
                                    void *config)
{
    const ucs_config_field_t *field;
    int is_good, has_inf;
    void *value;

    for (field = table; field->name != NULL; ++field) {
        value   = UCS_PTR_BYTE_OFFSET(config, field->offset);
        is_good = 1;
        has_inf = 0;
        if (field->parser.read == ucs_config_sscanf_time) {
            is_good = uct_varuna_times_check_seconds(value);
            has_inf = 1;
        } else if (field->parser.read == ucs_config_sscanf_time_units) {
            is_good = uct_varuna_times_check_ticks(value);
        }

        if (!is_good) {
            ucs_error("%s%s is no time: expected a number, not below 0, with a unit, such "
                      "as 100ms, 10s or 5m%s", prefix, field->name,
                      has_inf ? ", or inf" : "; not more than 10 years");
            return UCS_ERR_INVALID_PARAM;
        }
    }

    return UCS_OK;
}
