/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The mlx5emu command: its effects, its cleanup, and refused arguments.
 */

#include "test_emu.h"

#include <signal.h>
#include <unistd.h>

class test_emu_cmd : public emu::test_emu {
protected:
    struct result {
        int         status;
        std::string output;
    };

    static result run(const rcv::args_t &args)
    {
        rcv::args_t full = {rcv::fabric::tool()};

        full.insert(full.end(), args.begin(), args.end());
        rcv::process process(full);
        int status = process.wait();
        return result{status, process.output()};
    }

    /* Fails with a status and a message */
    static void refuses(const rcv::args_t &args, int status,
                        const std::string &words)
    {
        result r = run(args);

        EXPECT_EQ(status, r.status) << args[0] << ": " << r.output;
        EXPECT_NE(std::string::npos, r.output.find(words))
                << args[0] << ": \"" << words << "\" is not in: " << r.output;
    }

    /* Files of the fabric with this name */
    static unsigned files(const std::string &name)
    {
        return (access(("/dev/shm/mlx5emu." + name).c_str(), F_OK) == 0) +
               (access(("/dev/shm/mlx5emu." + name + ".d").c_str(), F_OK) ==
                0);
    }

    static std::string other_name()
    {
        return "test.cmd." + std::to_string(getpid());
    }
};

UCS_TEST_F(test_emu_cmd, help) {
    EXPECT_EQ(0, run({"--help"}).status);
    for (const char *verb : {"up", "exec", "link", "nic", "fault", "quirk",
                             "trace", "status", "down"}) {
        result r = run({verb, "--help"});

        EXPECT_EQ(0, r.status) << verb;
        EXPECT_NE(std::string::npos, r.output.find(verb));
    }
}

UCS_TEST_F(test_emu_cmd, errors) {
    const std::string &name = fabric().name();

    refuses({}, 2, "Usage");
    refuses({"fly"}, 2, "unknown verb \"fly\"");
    refuses({"-n", "x", "up"}, 2, "follow the verb");
    refuses({"up", "-n", name}, 1, "exists already");
    refuses({"up", "-n", "a/b"}, 2, "cannot name a fabric");
    refuses({"up", "-n", ".."}, 2, "cannot name a fabric");
    refuses({"up", "-n", std::string(100, 'x')}, 2, "cannot name a fabric");
    refuses({"up", "-n"}, 2, "needs a value");
    refuses({"up", "-n", "x", "--hosts", "0"}, 2, "from 1 to");
    refuses({"up", "-n", "x", "--hosts", "two"}, 2, "from 1 to");
    refuses({"up", "-n", "x", "--links", "99"}, 2, "from 1 to");
    refuses({"up", "-n", "x", "--mtu", "1500"}, 2, "2048");
    for (const char *mtu : {"1=1500", "=1024", "1=", "1:=1024", "1:0:0=1024", "32=1024",
                            "1:8=1024", "1:0=128"}) {
        refuses({"up", "-n", "x", "--mtu", mtu}, 2, "1:0=2048");
    }
    refuses({"up", "-n", "x", "--mtu", "2=1024", "--hosts", "2"}, 2, "host 2");
    refuses({"up", "-n", "x", "--mtu", "1:2=1024", "--links", "2"}, 2, "link 2");
    for (const char *topology : {"", "0", "9", "2,", "2;2", "4,4,1", "/2", "2//2"}) {
        refuses({"up", "-n", "x", "--topology", topology}, 2, "such as \"2,2/4\"");
    }
    refuses({"up", "-n", "x", "--speeds", "edr,fast"}, 2, "sdr, ddr, qdr");
    refuses({"up", "-n", "x", "--speeds", ""}, 2, "sdr, ddr, qdr");
    refuses({"up", "-n", "x", "--speeds",
             "edr,edr,edr,edr,edr,edr,edr,edr,edr"}, 2, "one for each link");
    refuses({"up", "-n", "x", "--colour"}, 2, "unknown option --colour");
    refuses({"up", "-n", "x", "more"}, 2, "unexpected \"more\"");
    refuses({"up", "-n", "x", "--seed", "-1"}, 2, "--seed");
    refuses({"up", "-n", "x", "--time-scale", "0"}, 2, "0.001 to 1000");
    refuses({"up", "-n", "x", "--subnet-timeout", "32"}, 2, "from 0 to 31");
    refuses({"link", "-n", name, "0:0", "flap"}, 2, "a period");
    refuses({"link", "-n", name, "0:0", "flap", "5"}, 2, "PERIOD");
    refuses({"link", "-n", name, "0:0", "up", "5ms"}, 2, "a link and a state");
    refuses({"nic", "-n", name, "0:0"}, 2, "kill or revive");
    refuses({"nic", "-n", name, "0:0", "hurt"}, 2, "kill or revive");
    refuses({"nic", "-n", name, "0:5", "kill"}, 2, "links 0 to 1");
    refuses({"nic", "-n", name, "0:0", "revive"}, 1, "alive already");
    refuses({"nic", "-n", name, "--silent", "0:0", "revive"}, 2, "--silent");
    refuses({"fault", "-n", name, "load"}, 2, "one file");
    refuses({"fault", "-n", name, "load", "/no/such"}, 1, "/no/such");
    refuses({"trace", "-n", name, "--check", "--follow"}, 2, "exclude");
    refuses({"link", "-n", name, "0:0"}, 2, "a link and a state");
    refuses({"link", "-n", name, "0:0", "red"}, 2, "up, down or silent");
    refuses({"link", "-n", name, "0:2", "up"}, 2, "links 0 to 1");
    refuses({"link", "-n", name, "7:0", "up"}, 2, "hosts 0 to 1");
    refuses({"link", "-n", name, "1", "up"}, 2, "HOST:LINK");
    refuses({"fault", "-n", name}, 2, "add, load, list or clear");
    refuses({"fault", "-n", name, "sing"}, 2, "add, load, list or clear");
    refuses({"fault", "-n", name, "add", "packet", "host=2", "drop"}, 2,
            "hosts 0 to 1");
    refuses({"fault", "-n", name, "add", "packet", "down=0:5"}, 2,
            "links 0 to 1");
    refuses({"fault", "-n", name, "clear", "77"}, 1, "no rule 77");
    refuses({"fault", "-n", name, "add", "--file", "/no/such"}, 1, "/no/such");
    refuses({"trace", "-n", name, "5"}, 2, "hosts 0 to 1");
    refuses({"status", "-n", name, "all"}, 2, "unexpected \"all\"");
    EXPECT_EQ(0u, files("x"));
}

UCS_TEST_F(test_emu_cmd, no_such_fabric) {
    std::string name = other_name();

    for (const rcv::args_t &args :
         {rcv::args_t{"status", "-n", name}, rcv::args_t{"trace", "-n", name},
          rcv::args_t{"down", "-n", name},
          rcv::args_t{"link", "-n", name, "0:0", "up"},
          rcv::args_t{"fault", "-n", name, "list"},
          rcv::args_t{"exec", "-n", name, "0", "--", "true"}}) {
        refuses(args, 1, "there is no fabric \"" + name + "\"");
    }
}

UCS_TEST_F(test_emu_cmd, down_leaves_nothing) {
    std::string name = other_name();

    EXPECT_EQ(0, run({"up", "-n", name, "--hosts", "3", "--links",
                      "1"}).status);
    EXPECT_GT(files(name), 0u);
    EXPECT_EQ(0, run({"exec", "-n", name, "2", "--",
                      RCV_TOP_BUILDDIR "/test/gtest/verbs_agent"}).status);
    EXPECT_EQ(0, run({"down", "-n", name}).status);
    EXPECT_EQ(0u, files(name));
}

UCS_TEST_F(test_emu_cmd, exec_has_the_status_of_the_program) {
    const std::string &name = fabric().name();

    EXPECT_EQ(0, run({"exec", "-n", name, "0", "--", "true"}).status);
    EXPECT_EQ(7, run({"exec", "-n", name, "0", "--", "sh", "-c",
                      "exit 7"}).status);
    EXPECT_EQ(5, run({"exec", "-n", name, "1", "sh", "-c", "exit 5"}).status);
    EXPECT_EQ(128 + SIGTERM, run({"exec", "-n", name, "0", "--", "sh", "-c",
                                  "kill -TERM $$"}).status);
    refuses({"exec", "-n", name, "0", "--", "/no/such/program"}, 127,
            "/no/such/program");
    refuses({"exec", "-n", name, "0", "--", "/dev/null"}, 126, "/dev/null");
    refuses({"exec", "-n", name, "2", "--", "true"}, 2, "hosts 0 to 1");
    refuses({"exec", "-n", name, "0"}, 2, "no command");
    refuses({"exec", "-n", name}, 2, "no host");
}

UCS_TEST_F(test_emu_cmd, exec_knows_host_and_fabric) {
    result r = run({"exec", "-n", fabric().name(), "1", "--", "sh", "-c",
                    "echo $MLX5EMU_FABRIC $MLX5EMU_HOST; " +
                    rcv::fabric::tool() + " link 1:1 silent"});

    EXPECT_EQ(0, r.status) << r.output;
    EXPECT_EQ(fabric().name() + " 1\n", r.output);
    EXPECT_NE(std::string::npos, fabric().command("status").find("silent"));
}

UCS_TEST_F(test_emu_cmd, down_refuses_while_used) {
    std::string name = other_name();
    result r;

    ASSERT_EQ(0, run({"up", "-n", name}).status);
    rcv::process user({rcv::fabric::tool(), "exec", "-n", name, "0", "--",
                       "sh", "-c", "(echo devices; sleep 30) | "
                       RCV_TOP_BUILDDIR "/test/gtest/verbs_agent"});
    ASSERT_TRUE(user.wait_for("ok"));

    r = run({"down", "-n", name});
    EXPECT_EQ(1, r.status);
    EXPECT_NE(std::string::npos, r.output.find("verbs_agent")) << r.output;
    EXPECT_NE(std::string::npos, r.output.find("--force")) << r.output;
    EXPECT_GT(files(name), 0u);
    EXPECT_EQ(1, run({"down", "-n", name, "--wait", "1"}).status);

    EXPECT_EQ(0, run({"down", "-n", name, "--force"}).status);
    EXPECT_EQ(0u, files(name));
}

UCS_TEST_F(test_emu_cmd, fault_list_and_clear) {
    const std::string &name = fabric().name();

    EXPECT_EQ("1: packet op=write drop\n",
              fabric().command("fault", {"add", "packet", "op=write", "drop"}));
    EXPECT_EQ("2: ack delay=1ms\n",
              fabric().command("fault", {"add", "ack delay=1ms"}));
    EXPECT_EQ("3: exec down\n",
              fabric().command("fault", {"add", "exec down"}));
    refuses({"fault", "-n", name, "list", "--check"}, 3, "3 of 3 rules never");
    EXPECT_EQ("", fabric().command("fault", {"clear", "2"}));

    std::string list = fabric().command("fault", {"list"});
    EXPECT_NE(std::string::npos, list.find("packet op=write drop"));
    EXPECT_EQ(std::string::npos, list.find("delay"));
    EXPECT_NE(std::string::npos, list.find("exec down"));
    EXPECT_EQ("", fabric().command("fault", {"clear"}));
    EXPECT_EQ("", fabric().command("fault", {"list", "--check"}));
}

UCS_TEST_F(test_emu_cmd, faults_from_a_file) {
    char path[] = "/tmp/test_emu_faults_XXXXXX";
    int fd      = mkstemp(path);

    ASSERT_GE(fd, 0);
    dprintf(fd, "# two rules\n\npacket drop   # one\n\tack op=cas drop\n");
    EXPECT_EQ("1: packet drop\n2: ack op=cas drop\n",
              fabric().command("fault", {"add", "--file", path}));

    /* All or none */
    dprintf(fd, "packet fly\n");
    refuses({"fault", "-n", fabric().name(), "add", "--file", path}, 1,
            std::string(path) + ":5: ");
    EXPECT_EQ(std::string::npos,
              fabric().command("fault", {"list"}).find("   3 "));
    close(fd);
    unlink(path);
}

UCS_TEST_F(test_emu_cmd, faults_for_one_command) {
    const std::string &name = fabric().name();
    rcv::args_t exec = {rcv::fabric::tool(), "exec", "-n", name,
                        "--require-fired", "0", "--"};
    rcv::args_t args = exec;

    /* Loaded only for this command, not for its children */
    args.insert(args.end(), {"sh", "-c", rcv::fabric::tool() + " exec 0 -- " +
                             "sh -c 'echo \"<$MLX5EMU_EXEC_RULES>\"; exit 4'"});
    rcv::process failing(args, {"MLX5EMU_EXEC_RULES=packet drop; ack drop"});
    EXPECT_EQ(4, failing.wait()) << failing.output();
    EXPECT_NE(std::string::npos, failing.output().find("<>"));
    EXPECT_NE(std::string::npos, failing.output().find("rule 1 never fired"));
    EXPECT_NE(std::string::npos, failing.output().find("rule 2 never fired"));
    EXPECT_EQ(std::string::npos, failing.output().find("rule 3"));

    /* The command fails if a rule never fired */
    args = exec;
    args.push_back("true");
    EXPECT_EQ(3, rcv::process(args).wait());
    fabric().command("fault", {"clear"});
    EXPECT_EQ(0, rcv::process(args).wait());

    args.insert(args.begin() + 4, {"--faults", "/no/such"});
    rcv::process missing(args);
    EXPECT_EQ(1, missing.wait());
    EXPECT_NE(std::string::npos, missing.output().find("/no/such"));
    rcv::process wrong(exec, {"MLX5EMU_EXEC_RULES=packet drop;packet fly"});
    EXPECT_EQ(2, wrong.wait());   /* no command */
    args = exec;
    args.push_back("true");
    rcv::process bad(args, {"MLX5EMU_EXEC_RULES=packet drop;packet fly"});
    EXPECT_EQ(1, bad.wait());
    EXPECT_NE(std::string::npos,
              bad.output().find("$MLX5EMU_EXEC_RULES:2: ")) << bad.output();
}

UCS_TEST_F(test_emu_cmd, exec_require_fired_is_satisfied) {
    rcv::args_t args = {rcv::fabric::tool(), "exec", "-n", fabric().name(),
                        "--require-fired", "0", "--",
                        RCV_TOP_BUILDDIR "/test/gtest/verbs_agent"};

    make_pair();
    fault("packet op=write count");
    EXPECT_TRUE(a->write(*b, 1, 0, 8, 0).completes(IBV_WC_SUCCESS));
    EXPECT_EQ(0, rcv::process(args).wait());
}

UCS_TEST_F(test_emu_cmd, faults_from_the_start) {
    std::string name = other_name();
    char path[]      = "/tmp/test_emu_faults_XXXXXX";
    int fd           = mkstemp(path);

    ASSERT_GE(fd, 0);
    dprintf(fd, "packet drop\n");
    for (const char *how : {"option", "file", "rules"}) {
        bool by_option = !strcmp(how, "option");
        rcv::args_t args = {rcv::fabric::tool(), "up", "-n", name};
        rcv::args_t env;

        if (by_option) {
            args.insert(args.end(), {"--faults", path});
        } else if (!strcmp(how, "file")) {
            env.push_back(std::string("MLX5EMU_FAULTS=") + path);
        } else {
            env.push_back("MLX5EMU_RULES=ack drop;packet drop");
        }
        rcv::process up(args, env);
        ASSERT_EQ(0, up.wait()) << up.output();
        EXPECT_NE(std::string::npos, run({"fault", "-n", name, "list"})
                                             .output.find("packet drop"))
                << how;
        EXPECT_EQ(0, run({"down", "-n", name}).status);
    }

    /* A fabric with bad rules is not created */
    dprintf(fd, "packet fly\n");
    refuses({"up", "-n", name, "--faults", path}, 1, "\"fly\"");
    EXPECT_EQ(0u, files(name));
    close(fd);
    unlink(path);
}

UCS_TEST_F(test_emu_cmd, down_removes_what_is_damaged) {
    std::string name = other_name();
    std::string path = "/dev/shm/mlx5emu." + name;

    for (const char *contents : {"", "rubbish"}) {
        FILE *file = fopen(path.c_str(), "w");

        ASSERT_TRUE(file != NULL);
        fputs(contents, file);
        fclose(file);
        refuses({"status", "-n", name}, 1, "not a fabric");
        refuses({"exec", "-n", name, "0", "--", "true"}, 1, "not a fabric");
        refuses({"down", "-n", name}, 1, "--force");
        EXPECT_EQ(0, run({"down", "-n", name, "--force"}).status);
        EXPECT_EQ(0u, files(name));
    }
}

UCS_TEST_F(test_emu_cmd, counters) {
    make_pair();
    EXPECT_TRUE(a->write(*b, 1, 0, 10 * 1024, 0).completes(IBV_WC_SUCCESS));
    EXPECT_TRUE(a->read(*b, 2, 0, 3 * 1024, 0).completes(IBV_WC_SUCCESS));
    EXPECT_TRUE(a->faa(*b, 3, 0, 0, 1).completes(IBV_WC_SUCCESS));

    EXPECT_EQ(3ul, counter(0, 0, "doorbells"));
    EXPECT_EQ(3ul, counter(0, 0, "wqes"));
    EXPECT_EQ(12ul, counter(0, 0, "tx_packets"));
    EXPECT_EQ(10ul * 1024, counter(0, 0, "tx_bytes"));
    EXPECT_EQ(3ul, counter(0, 0, "cqes"));
    EXPECT_EQ(1ul, counter(1, 0, "tx_acks"));
    EXPECT_EQ(4ul, counter(1, 0, "tx_response_packets"));
    EXPECT_EQ(0ul, counter(0, 0, "retransmitted_packets"));
    EXPECT_EQ(0ul, counter(0, 1, "tx_packets"));
    EXPECT_EQ(0ul, counter(1, 0, "doorbells"));
}

UCS_TEST_F(test_emu_cmd, too_many_faults) {
    for (int i = 0; i < 64; ++i) {
        fabric().command("fault", {"add", "packet nth=1000000 drop"});
    }
    refuses({"fault", "-n", fabric().name(), "add", "packet", "drop"}, 1,
            "fault clear");
}
