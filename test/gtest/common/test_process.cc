/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The tests' own processes: a test that waits for a program gets its exact exit status.
 */

#include <common/test.h>

#include "emu_fabric.h"

#include <signal.h>


class test_process : public ucs::test {
protected:
    static rcv::args_t shell(const std::string &script)
    {
        return {"sh", "-c", script};
    }
};

UCS_TEST_F(test_process, exit_status_and_output) {
    rcv::process proc(shell("echo out; echo err >&2; exit 3"));

    EXPECT_EQ(3, proc.wait());
    EXPECT_EQ("out\nerr\n", proc.output());
}

UCS_TEST_F(test_process, environment) {
    rcv::process proc(shell("echo \"$RCV_WORD\""), {"RCV_WORD=two words"});

    EXPECT_EQ(0, proc.wait());
    EXPECT_EQ("two words\n", proc.output());
}

UCS_TEST_F(test_process, no_such_program) {
    rcv::process proc({"/no/such/program"});

    EXPECT_EQ(127, proc.wait());
    EXPECT_NE(std::string::npos, proc.output().find("/no/such/program"));
}

UCS_TEST_F(test_process, killed_by_signal) {
    rcv::process proc(shell("echo ready; exec sleep 60"));

    ASSERT_TRUE(proc.wait_for("ready"));
    proc.kill(SIGTERM);
    EXPECT_EQ(128 + SIGTERM, proc.wait());
}

UCS_TEST_F(test_process, late) {
    rcv::process proc(shell("exec sleep 60"));

    EXPECT_EQ(-1, proc.wait(0.05));
    EXPECT_NE(0, kill(proc.pid(), 0));
}

UCS_TEST_F(test_process, words_that_never_come) {
    rcv::process proc(shell("echo some; exit 0"));

    EXPECT_FALSE(proc.wait_for("others"));
    EXPECT_EQ(0, proc.wait());
}

UCS_TEST_F(test_process, killed_with_its_object) {
    pid_t pid;
    {
        rcv::process proc(shell("exec sleep 60"));
        pid = proc.pid();
        EXPECT_EQ(0, kill(pid, 0));
    }
    EXPECT_NE(0, kill(pid, 0));
}
