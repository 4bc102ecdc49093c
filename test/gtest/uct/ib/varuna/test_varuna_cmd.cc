/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Commands on the threads of NICs, some of which hang.
 */
#include <common/test.h>

extern "C" {
#include <uct/ib/varuna/md/varuna_cmd.h>
}

#include <memory>
#include <poll.h>
#include <semaphore.h>
#include <thread>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

class test_varuna_cmd : public ucs::test {
protected:
    enum { NICS = 2 };
    enum { PATIENCE_MS = 120000 }; /* Only ends a hang */

    /* A command that writes down where it was given, and may hang until it is told to go
     * on */
    struct command {
        uct_varuna_cmd_t super;
        test_varuna_cmd  *test;
        pthread_t        thread;
        unsigned         given;
        unsigned         again;   /* How often it comes again */
        unsigned         done;
        ucs_status_t     status;
        bool             hangs;
        sigset_t         blocked;
        sem_t            started, go, ended;

        command() : given(0), again(0), done(0), status(UCS_INPROGRESS), hangs(false)
        {
            sem_init(&started, 0, 0);
            sem_init(&go, 0, 0);
            sem_init(&ended, 0, 0);
        }

        ~command()
        {
            sem_destroy(&started);
            sem_destroy(&go);
            sem_destroy(&ended);
        }
    };

    static ucs_status_t run(uct_varuna_cmd_t *cmd)
    {
        command *self = ucs_container_of(cmd, command, super);

        self->thread = pthread_self();
        self->given  = ++self->test->m_given;
        pthread_sigmask(SIG_BLOCK, NULL, &self->blocked);
        sem_post(&self->started);
        if (self->hangs) {
            sem_wait(&self->go);
        }
        if (self->again > 0) {
            --self->again;
            return UCS_INPROGRESS;
        }
        return UCS_ERR_IO_ERROR;
    }

    static void done(uct_varuna_cmd_t *cmd, ucs_status_t status)
    {
        command *self = ucs_container_of(cmd, command, super);

        self->status = status;
        ++self->done;
        sem_post(&self->ended);
    }

    virtual void init()
    {
        ucs::test::init();
        m_given = 0;
        ASSERT_UCS_OK(uct_varuna_cmd_sink_init(&m_sink));
        for (unsigned i = 0; i < NICS; ++i) {
            ASSERT_UCS_OK(uct_varuna_cmds_create("nic", &m_cmds[i]));
        }
    }

    virtual void cleanup()
    {
        for (unsigned i = 0; i < NICS; ++i) {
            if (m_cmds[i] != NULL) {
                EXPECT_UCS_OK(uct_varuna_cmd_sink_detach(&m_sink, m_cmds[i]));
                EXPECT_UCS_OK(uct_varuna_cmds_destroy(m_cmds[i]));
            }
        }
        uct_varuna_cmd_sink_cleanup(&m_sink);
        ucs::test::cleanup();
    }

    void submit(unsigned nic, command &cmd, ucs_time_t deadline = 0)
    {
        cmd.test           = this;
        cmd.super.run      = run;
        cmd.super.done     = done;
        cmd.super.sink     = &m_sink;
        cmd.super.deadline = deadline;
        uct_varuna_cmds_submit(m_cmds[nic], &cmd.super);
    }

    /* Wait for the descriptor, as UCX's async thread does */
    void await(command &cmd)
    {
        while (cmd.done == 0) {
            struct pollfd pfd = {m_sink.fd, POLLIN, 0};
            ASSERT_EQ(1, poll(&pfd, 1, PATIENCE_MS));
            uct_varuna_cmd_sink_dispatch(&m_sink);
        }
        EXPECT_EQ(1u, cmd.done);
    }

    void hang(unsigned nic, command &cmd, bool is_awaited = true)
    {
        cmd.hangs = true;
        submit(nic, cmd);
        if (is_awaited) {
            sem_wait(&cmd.started);
        }
    }

    bool is_readable() const
    {
        struct pollfd pfd = {m_sink.fd, POLLIN, 0};
        return poll(&pfd, 1, 0) == 1;
    }

    uct_varuna_cmd_sink_t m_sink;
    uct_varuna_cmds_t     *m_cmds[NICS];
    unsigned              m_given;
};

/* In order, on another thread, whose signals are blocked; done here */
UCS_TEST_F(test_varuna_cmd, one_after_the_other) {
    command cmds[3];

    for (unsigned i = 0; i < 3; ++i) {
        submit(0, cmds[i]);
    }
    for (unsigned i = 0; i < 3; ++i) {
        await(cmds[i]);
        EXPECT_EQ(UCS_ERR_IO_ERROR, cmds[i].status);
        EXPECT_EQ(i + 1, cmds[i].given);
        EXPECT_TRUE(pthread_equal(cmds[0].thread, cmds[i].thread));
        EXPECT_FALSE(pthread_equal(pthread_self(), cmds[i].thread));
        EXPECT_TRUE(sigismember(&cmds[i].blocked, SIGALRM));
    }

    EXPECT_FALSE(is_readable());
}

/* A command in two parts lets others begin between them */
UCS_TEST_F(test_varuna_cmd, two_parts) {
    command first, cmds[3];

    hang(0, first);
    for (unsigned i = 0; i < 3; ++i) {
        cmds[i].again = 1;
        submit(0, cmds[i]);
    }
    sem_post(&first.go);
    for (unsigned i = 0; i < 3; ++i) {
        await(cmds[i]);
        EXPECT_EQ(UCS_ERR_IO_ERROR, cmds[i].status);
        EXPECT_EQ(i + 5, cmds[i].given) << "after the first parts of all";
    }
}

/* Its second part is canceled as a command is that was not given */
UCS_TEST_F(test_varuna_cmd, second_part_is_canceled) {
    command cmd, next;

    cmd.again = 1;
    hang(0, cmd);
    hang(0, next, false);
    sem_post(&cmd.go);
    sem_wait(&next.started);
    EXPECT_EQ(0u, cmd.done);
    std::thread release([&next]() {
        usleep(10000);
        sem_post(&next.go);
    });
    EXPECT_UCS_OK(uct_varuna_cmd_sink_detach(&m_sink, m_cmds[0]));
    release.join();
    EXPECT_EQ(1u, cmd.done);
    EXPECT_EQ(UCS_ERR_CANCELED, cmd.status);
    await(next);
}

/* done() is not called by itself */
UCS_TEST_F(test_varuna_cmd, done_where_it_is_dispatched) {
    command cmd;

    submit(0, cmd);
    for (int i = 0; (i < PATIENCE_MS) && !is_readable(); ++i) {
        usleep(1000);
    }
    ASSERT_TRUE(is_readable());
    EXPECT_EQ(0u, cmd.done);
    uct_varuna_cmd_sink_dispatch(&m_sink);
    EXPECT_EQ(1u, cmd.done);
}

/* A NIC that hangs delays no other one, and is known to hang */
UCS_TEST_F(test_varuna_cmd, other_nic) {
    command hung, other, next;

    hang(0, hung);
    submit(0, next);
    submit(1, other);
    await(other);
    EXPECT_EQ(0u, hung.done + next.done);
    usleep((useconds_t)(UCT_VARUNA_CMD_HUNG * 1.5e6));
    EXPECT_TRUE(uct_varuna_cmds_is_hung(m_cmds[0]));
    EXPECT_FALSE(uct_varuna_cmds_is_hung(m_cmds[1]));

    sem_post(&hung.go);
    await(hung);
    await(next);
    EXPECT_FALSE(uct_varuna_cmds_is_hung(m_cmds[0]));
}

/* Whether an answer is worth waiting for: not if the NIC hangs */
UCS_TEST_F(test_varuna_cmd, may_answer) {
    const ucs_time_t hang_time = ucs_time_from_sec(UCT_VARUNA_CMD_HUNG);
    const ucs_time_t forever   = ucs_time_from_sec(1000);
    struct pollfd pfd          = {m_sink.fd, POLLIN, 0};
    command hung, next;

    hang(0, hung);
    submit(0, next);
    EXPECT_TRUE(uct_varuna_cmds_may_answer(m_cmds[0], &hung.super, forever));
    EXPECT_TRUE(uct_varuna_cmds_may_answer(m_cmds[0], &next.super, forever));
    usleep((useconds_t)(UCT_VARUNA_CMD_HUNG * 1.5e6));
    EXPECT_FALSE(uct_varuna_cmds_may_answer(m_cmds[0], &hung.super, hang_time));
    EXPECT_FALSE(uct_varuna_cmds_may_answer(m_cmds[0], &next.super, hang_time));

    /* Answered, though nobody has looked yet */
    sem_post(&hung.go);
    sem_wait(&next.started);
    ASSERT_EQ(1, poll(&pfd, 1, PATIENCE_MS));
    EXPECT_TRUE(uct_varuna_cmds_may_answer(m_cmds[0], &hung.super, 0));
    await(hung);
    await(next);
}

/* The thread lacks a CPU, which says nothing about the NIC */
UCS_TEST_F(test_varuna_cmd, waits_for_cpu) {
    uct_varuna_cmd_t cmd = {};

    ucs_time_t now;
    int may_answer;

    cmd.status = UCS_INPROGRESS;
    do {
        now        = ucs_get_time();
        cmd.since  = now - ucs_time_from_sec(UCT_VARUNA_CMD_START / 2);
        may_answer = uct_varuna_cmds_may_answer(m_cmds[0], &cmd, 0);
        /* Again, if this thread itself lacked a CPU */
    } while (!may_answer &&
             ((ucs_get_time() - now) >= ucs_time_from_sec(UCT_VARUNA_CMD_START / 2)));
    EXPECT_TRUE(may_answer);
    cmd.since = ucs_get_time() - ucs_time_from_sec(UCT_VARUNA_CMD_START * 1.5);
    EXPECT_FALSE(uct_varuna_cmds_may_answer(m_cmds[0], &cmd, 0));
}

/* Commands whose time is over are not given */
UCS_TEST_F(test_varuna_cmd, deadline) {
    command hung, late, timely;

    hang(0, hung);
    submit(0, late, ucs_get_time());
    submit(0, timely, ucs_get_time() + ucs_time_from_sec(1000));
    sem_post(&hung.go);
    await(timely);
    EXPECT_EQ(1u, late.done);
    EXPECT_EQ(UCS_ERR_TIMED_OUT, late.status);
    EXPECT_EQ(0u, late.given);
    EXPECT_EQ(UCS_ERR_IO_ERROR, timely.status);
}

/* The waiting caller is gone: queued commands are canceled at once, the one in progress
 * later, on the NIC's thread */
UCS_TEST_F(test_varuna_cmd, detach) {
    command hung, waits;

    hang(0, hung);
    submit(0, waits);
    EXPECT_EQ(UCS_ERR_BUSY, uct_varuna_cmd_sink_detach(&m_sink, m_cmds[0]));
    EXPECT_EQ(1u, waits.done);
    EXPECT_EQ(UCS_ERR_CANCELED, waits.status);
    EXPECT_EQ(0u, waits.given);
    EXPECT_EQ(0u, hung.done);
    sem_post(&hung.go);
    sem_wait(&hung.ended);
    EXPECT_EQ(1u, hung.done);
    EXPECT_EQ(UCS_ERR_CANCELED, hung.status);
    EXPECT_FALSE(is_readable());
}

/* The one in progress comes again, and another one is given before it: it is canceled, too. The
 * time only makes it likely that it comes back while the caller waits for that */
UCS_TEST_F(test_varuna_cmd, detach_from_one_that_comes_again) {
    ucs_status_t status = UCS_INPROGRESS;
    uct_varuna_cmd_sink_t sink;
    command own, other;

    ASSERT_UCS_OK(uct_varuna_cmd_sink_init(&sink));
    own.again = 1;
    hang(0, own);
    other.hangs          = true;
    other.test           = this;
    other.super.run      = run;
    other.super.done     = done;
    other.super.sink     = &sink;
    other.super.deadline = 0;
    uct_varuna_cmds_submit(m_cmds[0], &other.super);

    std::thread caller([&]() { status = uct_varuna_cmd_sink_detach(&m_sink, m_cmds[0]); });
    usleep(50000);
    sem_post(&own.go);
    sem_wait(&other.started);
    caller.join();
    EXPECT_UCS_OK(status);
    EXPECT_EQ(1u, own.done);
    EXPECT_EQ(UCS_ERR_CANCELED, own.status);
    sem_post(&other.go);
    EXPECT_UCS_OK(uct_varuna_cmd_sink_detach(&sink, m_cmds[0]));
    uct_varuna_cmd_sink_cleanup(&sink);
    EXPECT_EQ(1u, other.done);
    EXPECT_EQ(1u, own.given) << "it is not given again";
}

/* What came back and was not dispatched is released */
UCS_TEST_F(test_varuna_cmd, cleanup_of_results) {
    uct_varuna_cmd_sink_t sink;
    command cmd;

    ASSERT_UCS_OK(uct_varuna_cmd_sink_init(&sink));
    cmd.test           = this;
    cmd.super.run      = run;
    cmd.super.done     = done;
    cmd.super.sink     = &sink;
    cmd.super.deadline = 0;
    uct_varuna_cmds_submit(m_cmds[0], &cmd.super);
    struct pollfd pfd = {sink.fd, POLLIN, 0};
    ASSERT_EQ(1, poll(&pfd, 1, PATIENCE_MS));
    EXPECT_UCS_OK(uct_varuna_cmd_sink_detach(&sink, m_cmds[0]));
    uct_varuna_cmd_sink_cleanup(&sink);
    EXPECT_EQ(1u, cmd.done);
    EXPECT_EQ(UCS_ERR_CANCELED, cmd.status);
}

/* Closing takes a second, not as long as the command */
UCS_TEST_F(test_varuna_cmd, destroy_hung) {
    command hung, waits;
    ucs_time_t begin;

    hang(0, hung);
    submit(0, waits);
    EXPECT_EQ(UCS_ERR_BUSY, uct_varuna_cmd_sink_detach(&m_sink, m_cmds[0]));
    begin = ucs_get_time();
    {
        scoped_log_handler hide(hide_warns_logger);
        EXPECT_EQ(UCS_ERR_BUSY, uct_varuna_cmds_destroy(m_cmds[0]));
    }
    EXPECT_GE(ucs_get_time() - begin,
              ucs_time_from_sec(UCT_VARUNA_CMD_LINGER / 2));
    m_cmds[0] = NULL; /* The thread releases it */
    sem_post(&hung.go);
    sem_wait(&hung.ended);
}

/* A command that ends meanwhile is waited for */
UCS_TEST_F(test_varuna_cmd, destroy_busy) {
    std::unique_ptr<command> cmd;
    unsigned tries = 0;

    /* Again, if the thread had no CPU for so long as a command is waited for */
    do {
        ASSERT_LT(tries++, 60u);
        if (cmd) {
            sem_wait(&cmd->ended);
        }
        cmd.reset(new command);
        hang(0, *cmd);
        sem_post(&cmd->go);
    } while (uct_varuna_cmd_sink_detach(&m_sink, m_cmds[0]) == UCS_ERR_BUSY);
    EXPECT_UCS_OK(uct_varuna_cmds_destroy(m_cmds[0]));
    m_cmds[0] = NULL;
    uct_varuna_cmd_sink_dispatch(&m_sink);
    EXPECT_EQ(1u, cmd->done);
    EXPECT_EQ(UCS_ERR_IO_ERROR, cmd->status);
}

/* A child process has no thread: it gives its commands itself, and can close */
UCS_TEST_F(test_varuna_cmd, child) {
    command cmd;
    int status;
    pid_t pid;

    submit(0, cmd);
    await(cmd);
    pid = fork();
    if (pid == 0) {
        command own;
        submit(0, own);
        uct_varuna_cmd_sink_dispatch(&m_sink);
        _exit((own.done == 1) && pthread_equal(own.thread, pthread_self()) &&
              (uct_varuna_cmds_destroy(m_cmds[0]) == UCS_OK) ? 0 : 1);
    }
    ASSERT_EQ(pid, waitpid(pid, &status, 0));
    EXPECT_EQ(0, status);
}
