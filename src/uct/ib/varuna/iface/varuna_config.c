/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The options of the transport: the table which ucx_info shows, and what the
 * interface makes of it.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_config.h"
#include <uct/ib/varuna/core/varuna_mutate.h>

static const char *uct_varuna_recovery_names[] = {
    [UCT_VARUNA_RECOVERY_VARUNA]       = "varuna",
    [UCT_VARUNA_RECOVERY_RESEND]       = "resend",
    [UCT_VARUNA_RECOVERY_RESEND_CACHE] = "resend_cache",
    [UCT_VARUNA_RECOVERY_NONE]         = "none",
    [UCT_VARUNA_RECOVERY_LAST]         = NULL
};

static const char *uct_varuna_ambiguous_names[] = {
    [UCT_VARUNA_AMBIGUOUS_REPEAT] = "repeat",
    [UCT_VARUNA_AMBIGUOUS_FAIL]   = "fail",
    [UCT_VARUNA_AMBIGUOUS_LAST]   = NULL
};

ucs_config_field_t uct_varuna_iface_config_table[] = {
  {"", "ALLOC=heap", NULL,
   ucs_offsetof(uct_varuna_iface_config_t, super),
   UCS_CONFIG_TYPE_TABLE(uct_iface_config_table)},

  {"DC_NUM_DCI", "1",
   "Number of DC initiators (DCI) on each NIC, shared by all endpoints while\n"
   "their RC queue pairs are being built. More of them mean less waiting for\n"
   "one another right after a failure.",
   ucs_offsetof(uct_varuna_iface_config_t, dc_num_dci), UCS_CONFIG_TYPE_UINT},

  {"SIGNAL_PERIOD", "16",
   "Ask for a completion after so many short operations which nobody waits\n"
   "for, so that their log entries can be used again.",
   ucs_offsetof(uct_varuna_iface_config_t, signal_period),
   UCS_CONFIG_TYPE_UINT},

  {"HOLD_MIN", "100ms",
   "A link or path that failed is used again when it has been good for this\n"
   "time at least. The time doubles with each further failure, up to HOLD_MAX.",
   ucs_offsetof(uct_varuna_iface_config_t, hold_min), UCS_CONFIG_TYPE_TIME},

  {"HOLD_MAX", "10s",
   "Longest time for which a link that keeps failing is left alone.",
   ucs_offsetof(uct_varuna_iface_config_t, hold_max), UCS_CONFIG_TYPE_TIME},

  {"CTL_TIMEOUT", "50ms",
   "Send a control request again, over the next link, when it has not been\n"
   "answered for this time.",
   ucs_offsetof(uct_varuna_iface_config_t, ctl_timeout), UCS_CONFIG_TYPE_TIME},

  {"GIVE_UP", "60s",
   "Endpoints wait this long for a link to come back when none is left, and\n"
   "for a peer that does not answer. Then they fail with an error. The time\n"
   "stands still while the application does not call progress.",
   ucs_offsetof(uct_varuna_iface_config_t, give_up), UCS_CONFIG_TYPE_TIME},

  {"PACKET_LIFETIME", "100ms",
   "Longest time for which the fabric may delay a packet. A failed DC lane\n"
   "cannot be fenced by the responder, so it is waited out for this time\n"
   "before anything is repeated.",
   ucs_offsetof(uct_varuna_iface_config_t, packet_lifetime),
   UCS_CONFIG_TYPE_TIME},

  {"PEER_TIMEOUT", "10s",
   "Endpoints whose lane has failed give up after this time instead of GIVE_UP,\n"
   "if the peer was silent on all links for so long while another process on a\n"
   "port of the peer's answered: then the peer's process has ended. 0 stands\n"
   "for never. Needs the heartbeat.",
   ucs_offsetof(uct_varuna_iface_config_t, peer_timeout), UCS_CONFIG_TYPE_TIME},

  {"DRAIN_TIMEOUT", "3s",
   "A NIC which has not flushed a failed queue pair after this time hangs. Then\n"
   "the responder's fence and PACKET_LIFETIME have to prove that the lane is at\n"
   "rest, or else the endpoint fails.",
   ucs_offsetof(uct_varuna_iface_config_t, drain_timeout),
   UCS_CONFIG_TYPE_TIME},

  {"RETURN_PRIMARY", "y",
   "Move the traffic back to a link of higher priority when it works again.",
   ucs_offsetof(uct_varuna_iface_config_t, return_primary),
   UCS_CONFIG_TYPE_BOOL},

  {"RETURN_DELAY", "0",
   "Move the traffic back to a link of higher priority only when it has been\n"
   "good for this time, beyond its hold-down.",
   ucs_offsetof(uct_varuna_iface_config_t, return_delay), UCS_CONFIG_TYPE_TIME},

  {"STANDBY_RX_QUEUE_LEN", "512",
   "Receive buffers of each lane other than RC on the primary link: these carry\n"
   "the traffic for short times only, and a full queue slows senders down but\n"
   "loses nothing. 0 stands for what the inner transport is set to.",
   ucs_offsetof(uct_varuna_iface_config_t, standby_rx_queue_len),
   UCS_CONFIG_TYPE_UINT},

  {"SPARE_QPS", "4",
   "RC queue pairs which are kept ready on each link. So many endpoints of\n"
   "peers can be connected while the application does not call progress;\n"
   "further ones use DC until it does.",
   ucs_offsetof(uct_varuna_iface_config_t, spare_qps), UCS_CONFIG_TYPE_UINT},

  {"PORT_EVENTS", "y",
   "Take a port's going down as a failure of its link at once, and tell peers.\n"
   "Otherwise the failure is noticed when requests run out of retries.",
   ucs_offsetof(uct_varuna_iface_config_t, port_events), UCS_CONFIG_TYPE_BOOL},

  {"HEARTBEAT_INTERVAL", "100ms",
   "Ask the peer at this interval whether it is there, on each link that carries\n"
   "requests to it. The control planes of both sides do that, so it does not\n"
   "matter what the applications do. 0 stands for never.",
   ucs_offsetof(uct_varuna_iface_config_t, heartbeat_interval),
   UCS_CONFIG_TYPE_TIME},

  {"HEARTBEAT_MISSES", "5",
   "After so many intervals without an answer, the path of the link to the peer\n"
   "has failed, if the peer answers on another link meanwhile.",
   ucs_offsetof(uct_varuna_iface_config_t, heartbeat_misses),
   UCS_CONFIG_TYPE_UINT},

  {"HEARTBEAT_IDLE", "n",
   "Ask on links without unfinished requests, too.",
   ucs_offsetof(uct_varuna_iface_config_t, heartbeat_idle),
   UCS_CONFIG_TYPE_BOOL},

  {"HANG_TIMEOUT", "10s",
   "When a queue pair has completed nothing of an endpoint's requests for this\n"
   "time, and the peer answers on another link only, then the path has failed.\n"
   "So it has if the peer answers, but its receive buffers can't be what the\n"
   "requests wait for. Otherwise they are waited for. 0 stands for never.",
   ucs_offsetof(uct_varuna_iface_config_t, hang_timeout), UCS_CONFIG_TYPE_TIME},

  {"ORPHAN_TIMEOUT", "10m",
   "Free the queue pairs that a peer's endpoints have here when the peer has not\n"
   "answered on any link for this time, and messages to it fail on all of them:\n"
   "it died without a word. A peer that is merely stopped keeps them. One that\n"
   "was cut off for so long is told when it comes back, and its endpoints fail:\n"
   "say more than GIVE_UP. 0 stands for never.",
   ucs_offsetof(uct_varuna_iface_config_t, orphan_timeout),
   UCS_CONFIG_TYPE_TIME},

  {"MAX_TARGETS", "1000000",
   "Largest number of endpoints that all peers may have here, open or closed so\n"
   "recently that the application has not called progress since.",
   ucs_offsetof(uct_varuna_iface_config_t, max_targets), UCS_CONFIG_TYPE_UINT},

  {"MAX_PEER_TARGETS", "100000",
   "Largest number of endpoints that one interface of a peer may have open here.",
   ucs_offsetof(uct_varuna_iface_config_t, max_peer_targets),
   UCS_CONFIG_TYPE_UINT},

  {"REBUILD_RATE", "1000",
   "Largest number of RC connections that are begun in a second, at first use\n"
   "as well as after a failure, so that thousands of them do not stall the\n"
   "traffic. Meanwhile endpoints use DC. 0 stands for no limit.",
   ucs_offsetof(uct_varuna_iface_config_t, rebuild_rate),
   UCS_CONFIG_TYPE_DOUBLE},

  {"CTL_DIR", "auto",
   "Directory of the socket over which rc_varuna_ctl speaks to this process.\n"
   " - auto  - $XDG_RUNTIME_DIR/rc_varuna, or /tmp/rc_varuna-<user id>.\n"
   " - none  - No socket.",
   ucs_offsetof(uct_varuna_iface_config_t, ctl_dir), UCS_CONFIG_TYPE_STRING},

  {"RECOVERY", "varuna",
   "What to do when a lane fails. All but the first are for comparison with it\n"
   "only: they execute operations twice, or not at all.\n"
   " - varuna       - Find out what was executed, repeat the rest on another link.\n"
   " - resend       - Connect RC on another link, and repeat all that is\n"
   "                  unfinished.\n"
   " - resend_cache - The same with an RC connection that is kept in reserve.\n"
   " - none         - Fail the endpoint.",
   ucs_offsetof(uct_varuna_iface_config_t, recovery),
   UCS_CONFIG_TYPE_ENUM(uct_varuna_recovery_names)},

  {"AMBIGUOUS", "repeat",
   "What to do with an operation of which nobody can tell whether it was\n"
   "executed before its lane failed: a put whose target, read back, is not what\n"
   "was written, or an atomic. That can happen to one operation on a lane\n"
   "whose packet sequence numbers are not known (DC).\n"
   " - repeat  - Execute it, maybe for the second time.\n"
   " - fail    - Fail the endpoint.",
   ucs_offsetof(uct_varuna_iface_config_t, ambiguous),
   UCS_CONFIG_TYPE_ENUM(uct_varuna_ambiguous_names)},

  {"PSN", "y",
   "Use the packet sequence number that a fenced queue pair expected. Say no if\n"
   "a device tells it wrongly: then puts in doubt are compared with their target.",
   ucs_offsetof(uct_varuna_iface_config_t, psn), UCS_CONFIG_TYPE_BOOL},

#ifdef UCT_VARUNA_MUTATIONS
  {"MUTATE", "none",
   "Make a deliberate mistake, for testing the tests: see varuna_mutate.h.",
   ucs_offsetof(uct_varuna_iface_config_t, mutation),
   UCS_CONFIG_TYPE_ENUM(uct_varuna_mutation_names)},
#endif

  {NULL}
};

void uct_varuna_iface_set_config(uct_varuna_iface_t *iface,
                                 const uct_varuna_iface_config_t *config)
{
    iface->config.signal_period   = ucs_max(1, ucs_min(config->signal_period,
                                                       UCT_VARUNA_LOG_SIZE / 2));
    iface->config.dc_num_dci      = ucs_max(1, config->dc_num_dci);
    iface->config.standby_rx_queue_len = config->standby_rx_queue_len;
    iface->config.spare_qps       = ucs_min(config->spare_qps,
                                            UCT_VARUNA_MAX_SPARE_QPS);
    iface->config.ctl_timeout     = ucs_time_from_sec(config->ctl_timeout);
    iface->config.give_up         = ucs_time_from_sec(config->give_up);
    iface->config.packet_lifetime = ucs_time_from_sec(config->packet_lifetime);
    iface->config.peer_timeout    = ucs_time_from_sec(config->peer_timeout);
    iface->config.drain_timeout   = ucs_time_from_sec(config->drain_timeout);
    iface->config.port_events     = config->port_events;
    iface->config.heartbeat_interval = ucs_time_from_sec(
                                               config->heartbeat_interval);
    iface->config.heartbeat_misses   = ucs_max(1, config->heartbeat_misses);
    iface->config.heartbeat_idle     = config->heartbeat_idle;
    iface->config.hang_timeout       = ucs_time_from_sec(config->hang_timeout);
    iface->config.max_targets        = config->max_targets;
    iface->config.max_peer_targets   = config->max_peer_targets;
    iface->config.orphan_timeout     = ucs_time_from_sec(
                                               config->orphan_timeout);
    iface->config.recovery        = config->recovery;
    iface->config.ambiguous       = config->ambiguous;
    iface->config.psn             = config->psn;
#ifdef UCT_VARUNA_MUTATIONS
    uct_varuna_mutation           = config->mutation;
#endif
}

void uct_varuna_iface_init_link_table(uct_varuna_iface_t *iface,
                                      const uct_varuna_iface_config_t *config)
{
    const uct_varuna_md_t *md = iface->md;
    int is_set                = md->return_policy.is_set;

    uct_varuna_link_table_init(&iface->link_table, iface->num_links,
                               is_set ? md->return_policy.does_return :
                               config->return_primary,
                               ucs_time_from_sec(config->hold_min),
                               ucs_time_from_sec(config->hold_max));
    iface->link_table.return_delay =
            ucs_time_from_sec(is_set ? md->return_policy.delay :
                              config->return_delay);
}
