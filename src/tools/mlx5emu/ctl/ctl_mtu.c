/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * MTUs of ports as words: BYTES, HOST=BYTES or HOST:LINK=BYTES.
 */

#include "ctl.h"
#include "../rules/emu_fault_value.h"

#include <string.h>

#define CTL_MTU_PLACE_MAX 16
#define CTL_MTU_ANY       UINT32_MAX /* All hosts, or all links */


/* "1" or "1:0". @return 0, or -1 */
static int ctl_mtu_parse_place(const char *text, size_t length, uint32_t *host_p,
                               uint32_t *link_p)
{
    char place[CTL_MTU_PLACE_MAX];
    uint64_t host;

    if (length >= sizeof(place)) {
        return -1;
    }

    memcpy(place, text, length);
    place[length] = '\0';
    if (strchr(place, ':') == NULL) {
        if (ctl_parse_number(place, 0, EMU_MAX_HOSTS - 1, &host)) {
            return -1;
        }
        *host_p = host;
        return 0;
    }

    return (emu_fault_read_port(place, host_p, link_p) ||
            (*host_p >= EMU_MAX_HOSTS) || (*link_p >= EMU_MAX_LINKS)) ? -1 : 0;
}

static void ctl_mtu_set(emu_fabric_config_t *cfg, uint32_t host, uint32_t link,
                        uint16_t bytes)
{
    unsigned i, j;

    for (i = 0; i < EMU_MAX_HOSTS; ++i) {
        for (j = 0; j < EMU_MAX_LINKS; ++j) {
            if (((host == CTL_MTU_ANY) || (host == i)) &&
                ((link == CTL_MTU_ANY) || (link == j))) {
                cfg->mtu[i][j] = bytes;
            }
        }
    }
}

int ctl_mtu_parse(const ctl_verb_t *verb, const char *text,
                  emu_fabric_config_t *cfg, ctl_mtu_named_t *named)
{
    uint32_t host     = CTL_MTU_ANY;
    uint32_t link     = CTL_MTU_ANY;
    const char *bytes = strchr(text, '=');
    uint64_t mtu;

    if (((bytes != NULL) && ctl_mtu_parse_place(text, bytes - text, &host, &link)) ||
        ctl_parse_number((bytes == NULL) ? text : bytes + 1, EMU_MIN_MTU, EMU_MAX_MTU,
                         &mtu) ||
        ((mtu & (mtu - 1)) != 0)) {
        return ctl_usage_fail(verb, "--mtu is 256, 512, 1024, 2048 or 4096, or that of a"
                              " host or a port, such as 1=2048 or 1:0=2048, not \"%s\"",
                              text);
    }

    ctl_mtu_set(cfg, host, link, mtu);
    if (host != CTL_MTU_ANY) {
        named->hosts = emu_max(named->hosts, host + 1);
    }
    if (link != CTL_MTU_ANY) {
        named->links = emu_max(named->links, link + 1);
    }
    return 0;
}

int ctl_mtu_check(const ctl_verb_t *verb, const emu_fabric_config_t *cfg,
                  const ctl_mtu_named_t *named)
{
    if (named->hosts > cfg->hosts) {
        return ctl_usage_fail(verb, "--mtu is for host %u, but hosts are 0 to %u",
                              named->hosts - 1, cfg->hosts - 1);
    } else if (named->links > cfg->links) {
        return ctl_usage_fail(verb, "--mtu is for link %u, but links are 0 to %u",
                              named->links - 1, cfg->links - 1);
    }

    return 0;
}

void ctl_mtu_range(const emu_fabric_config_t *cfg, unsigned *min_p, unsigned *max_p)
{
    unsigned host, link;

    *min_p = EMU_MAX_MTU;
    *max_p = EMU_MIN_MTU;
    for (host = 0; host < cfg->hosts; ++host) {
        for (link = 0; link < cfg->links; ++link) {
            *min_p = emu_min(*min_p, cfg->mtu[host][link]);
            *max_p = emu_max(*max_p, cfg->mtu[host][link]);
        }
    }
}
