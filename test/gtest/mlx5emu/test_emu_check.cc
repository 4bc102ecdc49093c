/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The judge of the trace accepts the behavior of a reliable transport, and detects each
 * violation. Needs no fabric.
 */

#include <common/test.h>

extern "C" {
#include "tools/mlx5emu/ctl/ctl_trace_check.h"
}

#include <stdarg.h>
#include <string.h>

static std::string check_said;

extern "C" {

/* Stand-ins for functions of the command and the engine */
const char *emu_trace_op_names[EMU_TRACE_LAST] = {
    "send", "send_imm", "write", "write_imm", "read", "cas", "faa"
};

int ctl_fail(const char *fmt, ...)
{
    char text[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    check_said += std::string(text) + "\n";
    return CTL_FAILED;
}

}

class test_emu_check : public ucs::test {
protected:
    void init() override
    {
        ucs::test::init();
        check_said.clear();
        m_check = ctl_check_create();
    }

    /* Request number op of queue pair number qp; [addr, addr + length) */
    void entry(uint64_t qp, uint64_t op, uint64_t addr, uint32_t length,
               unsigned flags = 0, uint64_t total = 8,
               emu_trace_op_t kind = EMU_TRACE_WRITE)
    {
        emu_trace_entry_t e = {};

        e.seq    = ++m_seq;
        e.id     = (qp << EMU_QP_OPS_BITS) | op;
        e.op     = kind;
        e.flags  = flags;
        e.qp_type = m_qp_type;
        e.addr   = addr;
        e.length = length;
        e.arg[1] = total;
        ctl_check_entry(m_check, &e);
    }

    /* Ends the trace: its output has these words, or is empty */
    void expect(int status, const std::string &words = "")
    {
        testing::internal::CaptureStdout();
        int result = ctl_check_finish(m_check, 1);
        std::string output = testing::internal::GetCapturedStdout();

        EXPECT_EQ(status, result) << output;
        m_output = output;
        if (words.empty()) {
            EXPECT_EQ("", check_said);
        } else {
            EXPECT_NE(std::string::npos, check_said.find(words)) << check_said;
        }
    }

    static const unsigned part = EMU_TRACE_FLAG_PARTIAL;
    static const unsigned last = EMU_TRACE_FLAG_LAST;
    static const unsigned dup  = EMU_TRACE_FLAG_DUP;

    /* ... and its summary has these numbers */
    void expect_unjudged(int status, unsigned missing, unsigned unjudged)
    {
        std::string want = "\"errors\":0,\"missing\":" +
                           std::to_string(missing) + ",\"unjudged\":" +
                           std::to_string(unjudged) + "}";

        expect(status);
        EXPECT_NE(std::string::npos, m_output.find(want)) << m_output;
    }

    ctl_check_t *m_check;
    uint64_t    m_seq = 0;
    uint8_t     m_qp_type = EMU_QPT_RC;
    std::string m_output;
};

UCS_TEST_F(test_emu_check, what_may_be) {
    entry(1, 0, 0x1000, 8);
    entry(2, 0, 0x1000, 8);                 /* another queue pair */
    entry(1, 1, 0x1000, 8);                 /* the same, posted again */
    entry(1, 1, 0x1000, 8, dup);            /* not executed */
    entry(1, 2, 0x2000, 1024, part, 3072);
    entry(2, 5, 0, 64, 0, 64, EMU_TRACE_SEND);
    entry(1, 2, 0x2400, 1024, part, 3072);
    entry(1, 2, 0x2800, 1024, last, 3072);
    entry(1, 9, 0x3000, 1024, part, 3072);  /* never ended */
    expect(CTL_OK);
}

UCS_TEST_F(test_emu_check, executed_again) {
    entry(1, 4, 0x1000, 8);
    entry(1, 4, 0x1000, 8);
    expect(CTL_FAILED, "entry 2: request 1.4 (write, 8 bytes, queue pair"
           " 0x000000) was executed again");
}

UCS_TEST_F(test_emu_check, part_executed_again) {
    entry(1, 1, 0x2000, 1024, part, 2048);
    entry(1, 1, 0x2000, 1024, part, 2048);
    expect(CTL_FAILED, "part executed again");
}

UCS_TEST_F(test_emu_check, gap) {
    entry(1, 1, 0x2000, 1024, part, 3072);
    entry(1, 1, 0x2800, 1024, last, 3072);
    expect(CTL_FAILED, "has a gap");
}

UCS_TEST_F(test_emu_check, end_without_beginning) {
    entry(1, 1, 0x2800, 1024, last, 3072);
    expect(CTL_FAILED, "without its beginning");
}

UCS_TEST_F(test_emu_check, too_short) {
    entry(1, 1, 0x2000, 1024, part, 3072);
    entry(1, 1, 0x2400, 1024, last, 3072);
    expect(CTL_FAILED, "not executed with all its bytes");
}

UCS_TEST_F(test_emu_check, out_of_order) {
    entry(1, 2, 0x1000, 8);
    entry(1, 1, 0x1000, 8);
    expect(CTL_FAILED, "after a later one");
}

UCS_TEST_F(test_emu_check, duplicate_of_nothing) {
    entry(1, 1, 0x1000, 8, dup);
    expect(CTL_FAILED, "never executed");
}

/* With time, parts are acknowledged by themselves: one that comes again before its
 * message has ended is no more than a duplicate */
UCS_TEST_F(test_emu_check, duplicate_of_a_part) {
    entry(1, 1, 0x2000, 1024, part, 4096);
    entry(1, 1, 0x2400, 1024, part, 4096);
    entry(1, 1, 0x2400, 1024, part | dup, 4096);
    entry(1, 1, 0x2000, 1024, part | dup, 4096);
    entry(1, 1, 0x2800, 2048, last, 4096);
    expect(CTL_OK);
}

UCS_TEST_F(test_emu_check, duplicate_of_a_part_that_never_was) {
    entry(1, 1, 0x2000, 1024, part, 4096);
    entry(1, 1, 0x2400, 1024, part | dup, 4096);
    expect(CTL_FAILED, "never executed");
}

/* They may take any way, and be doubled */
UCS_TEST_F(test_emu_check, datagrams_come_in_any_order) {
    m_qp_type = EMU_QPT_UD;
    entry(1, 2, 0, 64, 0, 64, EMU_TRACE_SEND);
    entry(1, 1, 0, 64, 0, 64, EMU_TRACE_SEND);
    entry(1, 1, 0, 64, 0, 64, EMU_TRACE_SEND);
    expect(CTL_OK);
    EXPECT_NE(std::string::npos, m_output.find("\"requests\":2,\"whole\":2"))
            << m_output;
}

UCS_TEST_F(test_emu_check, nothing_is_missing) {
    entry(1, 1, 0x1000, 8);
    expect_unjudged(CTL_OK, 0, 0);
}

UCS_TEST_F(test_emu_check, lost_entries_are_told) {
    ctl_check_lost(m_check, 7);
    entry(1, 1, 0x2800, 1024, last, 3072);
    entry(1, 1, 0x2800, 8, dup);
    expect_unjudged(CTL_INCOMPLETE, 7, 1);
}

UCS_TEST_F(test_emu_check, left_out_entries_are_told) {
    ctl_check_left_out(m_check, 3);
    entry(1, 4, 0x1000, 8, dup);            /* executed before */
    entry(1, 5, 0x2400, 1024, part, 3072);  /* begun before */
    entry(1, 5, 0x2800, 1024, last, 3072);
    entry(1, 6, 0x1000, 8);
    expect_unjudged(CTL_OK, 3, 2);
}

UCS_TEST_F(test_emu_check, whole_behind_lost_entries) {
    ctl_check_lost(m_check, 1);
    entry(1, 4, 0x1000, 8);
    entry(1, 5, 0x2000, 1024, part, 2048);
    entry(1, 5, 0x2400, 1024, last, 2048);
    expect_unjudged(CTL_INCOMPLETE, 1, 0);
}

/* A request that a queue pair executes after another one started after it */
UCS_TEST_F(test_emu_check, end_without_beginning_behind_lost_entries) {
    ctl_check_lost(m_check, 1);
    entry(1, 4, 0x1000, 8);
    entry(1, 5, 0x2800, 1024, last, 3072);
    expect(CTL_FAILED, "without its beginning");
}

UCS_TEST_F(test_emu_check, duplicate_of_nothing_behind_lost_entries) {
    ctl_check_lost(m_check, 1);
    entry(1, 4, 0x1000, 8);
    entry(1, 5, 0x1000, 8, dup);
    expect(CTL_FAILED, "never executed");
}

/* The parts in between are no gap of the request */
UCS_TEST_F(test_emu_check, parts_are_lost) {
    entry(1, 4, 0x2000, 1024, part, 4096);
    ctl_check_lost(m_check, 2);
    entry(1, 4, 0x2c00, 1024, last, 4096);
    expect_unjudged(CTL_INCOMPLETE, 2, 1);
}

UCS_TEST_F(test_emu_check, many_requests) {
    for (uint64_t i = 0; i < 100000; ++i) {
        entry(1 + i % 7, i, 0x1000, 8);
    }
    entry(1 + 5 % 7, 5, 0x1000, 8);
    expect(CTL_FAILED, "request 6.5 ");
}

/* Parts that were placed out of order are counted, in any order */
UCS_TEST_F(test_emu_check, parts_out_of_order) {
    const unsigned ooo = EMU_TRACE_FLAG_OOO;

    entry(1, 0, 0x1000, 1024, part, 4096);
    entry(1, 0, 0x1c00, 1024, last | ooo, 4096);
    entry(1, 1, 0x8000, 8, ooo);
    entry(1, 0, 0x1800, 1024, part | ooo, 4096);
    entry(1, 0, 0x1400, 1024, part | ooo, 4096);    /* fills the gap */
    entry(1, 0, 0x1400, 1024, part | dup, 4096);
    entry(1, 2, 0x9000, 8);
    entry(1, 3, 0xa000, 8, ooo, 77, EMU_TRACE_CAS); /* arg[1] is no length */
    expect(CTL_OK);
    EXPECT_NE(std::string::npos, m_output.find("\"whole\":4")) << m_output;
}

UCS_TEST_F(test_emu_check, out_of_order_part_again) {
    const unsigned ooo = EMU_TRACE_FLAG_OOO;

    entry(1, 0, 0x1400, 1024, part | ooo, 3072);
    entry(1, 0, 0x1000, 2048, part | ooo, 3072);
    entry(1, 0, 0x1400, 1024, part | ooo, 3072);
    expect(CTL_FAILED, "was executed again");
}

UCS_TEST_F(test_emu_check, out_of_order_too_long) {
    const unsigned ooo = EMU_TRACE_FLAG_OOO;

    entry(1, 0, 0x1400, 1024, part | ooo, 1536);
    entry(1, 0, 0x1400, 1024, last | ooo, 1536);
    expect(CTL_FAILED, "had a part executed again");
}

/* The exception is only for that entry */
UCS_TEST_F(test_emu_check, behind_an_out_of_order_one) {
    entry(1, 5, 0x1000, 8, EMU_TRACE_FLAG_OOO);
    entry(1, 4, 0x2000, 8);
    expect(CTL_FAILED, "after a later one");
}

/* Nothing was executed */
UCS_TEST_F(test_emu_check, quirks_are_no_requests) {
    entry(1, 0, 0x1000, 8);
    entry(1, 0, 0, 0, 0, 0, EMU_TRACE_QUIRK);
    entry(0, 0, 0, 0, 0, 0, EMU_TRACE_QUIRK);
    entry(1, 1, 0x1000, 8);
    expect(CTL_OK);
    EXPECT_NE(std::string::npos, m_output.find("\"requests\":2,")) << m_output;
}
