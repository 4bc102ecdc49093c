/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Random faults of a fabric, from a seed.
 */
#include "ft_storm.h"
#include "ft_clock.h"

#include <unistd.h>

#define FT_MAX_RULES   24    /* Then they are cleared */
#define FT_FIRST_KILL  4     /* The first NIC dies in one of the first faults ... */
#define FT_OTHER_KILLS 40    /* ... and others in one of so many */

void ft_storm_init(ft_storm_t *storm, ft_driver_t *driver, unsigned first_host,
                   uint64_t seed)
{
    storm->driver     = driver;
    storm->first_host = first_host;
    storm->random     = (seed + 1) * 0x9e3779b97f4a7c15ul;
    storm->broken     = storm->num_rules = 0;
    storm->faults     = storm->fired = 0;
    storm->kills      = 0;
    storm->kill_in    = 0;
    storm->dead       = 0;
}

void ft_storm_set_kills(ft_storm_t *storm, unsigned clients)
{
    storm->kills   = 1;
    storm->kill_in = 1 + ft_random(&storm->random, FT_FIRST_KILL);
    storm->clients = clients;
    storm->doomed  = ft_random(&storm->random, storm->driver->fabric.links);
}

static void ft_storm_repair(ft_storm_t *storm)
{
    const ft_fabric_t *fabric = &storm->driver->fabric;
    unsigned host, link;

    for (host = 0; host < fabric->hosts; ++host) {
        for (link = 0; (storm->broken & (1u << host)) && (link < fabric->links);
             ++link) {
            ft_fabric_do(fabric, "link", "%u:%u up", host, link);
        }
    }

    storm->broken = 0;
}

static void ft_storm_clear_rules(ft_storm_t *storm)
{
    unsigned i;

    for (i = 0; i < storm->num_rules; ++i) {
        storm->fired += (ft_fabric_fired(&storm->driver->fabric, i) > 0);
    }

    ft_fabric_do(&storm->driver->fabric, "fault", "clear");
    storm->num_rules = 0;
}

static void ft_storm_add_rule(ft_storm_t *storm, const char *point,
                              unsigned host, const char *action)
{
    unsigned nth = 1 + ft_random(&storm->random, 20);

    if (storm->num_rules == FT_MAX_RULES) {
        ft_storm_clear_rules(storm);
    }

    fprintf(storm->driver->log, "rule: %s host=%u nth=%u %s\n", point, host,
            nth, action);
    ft_fabric_do(&storm->driver->fabric, "fault", "add %s host=%u nth=%u %s",
                 point, host, nth, action);
    ++storm->num_rules;
    ++storm->faults;
}

void ft_storm_link(ft_storm_t *storm, unsigned host, unsigned link,
                   const char *state)
{
    fprintf(storm->driver->log, "link %u:%u %s\n", host, link, state);
    ft_fabric_do(&storm->driver->fabric, "link", "%u:%u %s", host, link, state);
    storm->broken |= 1u << host;
    ++storm->faults;
}

/* The NIC dies, with an event or without. An endpoint on DC fails if its own NIC dies
 * without an event, because the NIC may still send. */
static void ft_storm_kill(ft_storm_t *storm, unsigned host)
{
    const char *option = ((host < storm->clients) &&
                          ft_random(&storm->random, 2)) ? " --silent" : "";

    fprintf(storm->driver->log, "nic %u:%u dies%s\n", host, storm->doomed,
            option);
    ft_fabric_do(&storm->driver->fabric, "nic", "%u:%u kill%s", host,
                 storm->doomed, option);
    storm->dead |= 1u << host;
    ++storm->faults;
}

/* Whether a NIC dies now */
static int ft_storm_draw_kill(ft_storm_t *storm)
{
    if (storm->kill_in > 0) {
        return --storm->kill_in == 0;
    }

    return ft_random(&storm->random, FT_OTHER_KILLS) == 0;
}

/* One fault, of a random kind at a random place */
static void ft_storm_fault(ft_storm_t *storm)
{
    static const char *states[] = {"silent", "down"};
    static const char *points[] = {"packet", "exec", "ack", "post"};
    const ft_fabric_t *fabric = &storm->driver->fabric;
    unsigned host             = storm->first_host +
                                ft_random(&storm->random, fabric->hosts -
                                                storm->first_host);
    unsigned link             = ft_random(&storm->random, fabric->links);
    const char *state         = states[ft_random(&storm->random, 2)];
    unsigned number           = 1 + ft_random(&storm->random, 8);
    char action[64];

    if (storm->kills && ft_storm_draw_kill(storm) &&
        !(storm->dead & (1u << host))) {
        ft_storm_kill(storm, host);
        return;
    }

    switch (ft_random(&storm->random, 9)) {
    case 0:
        ft_storm_link(storm, host, link, state);
        break;
    case 1:
        snprintf(action, sizeof(action), "count=%u drop", number);
        ft_storm_add_rule(storm, "packet", host, action);
        break;
    case 2:
        snprintf(action, sizeof(action), "count=%u drop", number);
        ft_storm_add_rule(storm, "ack", host, action);
        break;
    case 3:
        snprintf(action, sizeof(action), "delay=%ums", number);
        ft_storm_add_rule(storm, "packet", host, action);
        break;
    case 4:
        snprintf(action, sizeof(action), "dup=%ums", number);
        ft_storm_add_rule(storm, "packet", host, action);
        break;
    default:
        /* The link in use fails at an exact point of an operation */
        ft_storm_add_rule(storm, points[ft_random(&storm->random, 4)], host,
                          state);
        storm->broken |= 1u << host;
        break;
    }
}

void ft_storm_blow(ft_storm_t *storm)
{
    unsigned i;

    for (i = ft_random(&storm->random, 3); i < 3; ++i) {
        ft_storm_fault(storm);
        usleep(1000 * ft_random(&storm->random, 50));
    }

    /* Mostly no faults for a while */
    if (ft_random(&storm->random, 4) > 0) {
        ft_storm_end(storm);
        usleep(1000 * ft_random(&storm->random, 100));
    }
}

int ft_storm_owes_kill(const ft_storm_t *storm)
{
    return storm->kills && (storm->dead == 0);
}

void ft_storm_end(ft_storm_t *storm)
{
    ft_storm_clear_rules(storm);
    ft_storm_repair(storm);
}
