/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Any text as a fault rule: it is refused with a message, or written as text that
 * parses to the same rule; and no event makes it crash.
 */
#include "fuzz.h"
#include "rules/emu_fault_rule.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    emu_fault_rule_t rule, again;
    emu_fault_event_t event;
    emu_fault_verdict_t verdict;
    char line[512], text[EMU_FAULT_LINE_MAX], text2[EMU_FAULT_LINE_MAX];
    char err[256] = "";
    fuzz_input_t in;
    size_t length;

    length = (size < sizeof(line) - 1) ? size : (sizeof(line) - 1);
    memcpy(line, data, length);
    line[length] = '\0';
    if (emu_fault_rule_parse(line, &rule, err, sizeof(err)) != 0) {
        FUZZ_CHECK((err[0] != '\0') && (strlen(err) < sizeof(err)));
        return 0;
    }

    emu_fault_rule_format(&rule, text, sizeof(text));
    FUZZ_CHECK(strlen(text) < sizeof(text));
    FUZZ_CHECK(emu_fault_rule_parse(text, &again, err, sizeof(err)) == 0);
    if (rule.prob_ppm == 1000000) {
        rule.seed      = again.seed; /* not part of the text */
        rule.have_seed = again.have_seed;
    }
    FUZZ_CHECK(memcmp(&rule, &again, sizeof(rule)) == 0);
    emu_fault_rule_format(&again, text2, sizeof(text2));
    FUZZ_CHECK(strcmp(text, text2) == 0);

    rule.id = 1;
    in.data = data;
    in.size = size;
    fuzz_take(&in, &event, sizeof(event));
    event.point %= EMU_FAULT_POINT_LAST;
    event.op    %= EMU_FAULT_OP_LAST;
    emu_fault_rules_apply(&rule, 1, &event, &verdict);
    FUZZ_CHECK(rule.fired <= rule.matched);
    emu_fault_rules_need_split(&rule, 1, event.host, event.link);
    return 0;
}

void fuzz_seeds(void (*add)(const void *data, size_t size))
{
    static const char *lines[] = {
        "ack op=cas host=0 nth=3 drop",
        "packet op=write size=64k- pkt=7 silent",
        "post host=0 op=write nth=2 down=1:0",
        "packet host=1 link=0 op=send qpn=0x17 count=all delay=20ms",
        "packet peer=1 try=again pkt=middle dup=5us",
        "packet prob=0.01 seed=7 count=all drop",
        "exec size=8 wqe=3 up",
        "packet op=read,faa,cas size=1-4096 pkt=last none"
    };
    unsigned i;

    for (i = 0; i < sizeof(lines) / sizeof(lines[0]); ++i) {
        add(lines[i], strlen(lines[i]));
    }
}
