/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Tests whose programs wait for completion events.
 */
#ifndef TEST_EMU_EVENT_H_
#define TEST_EMU_EVENT_H_

#include "test_emu.h"

class test_emu_event : public emu::test_emu {
protected:
    void arm(emu::side &s, bool solicited_only = false)
    {
        (*s)("arm", s.cq, (int)solicited_only);
    }

    bool has_event(emu::side &s, unsigned timeout_ms = emu::patience_ms)
    {
        return !(*s)("event", s.ctx, timeout_ms).empty();
    }
};

#endif
