/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What a recovery and a comparison write to the audit file.
 */
#include "test_varuna_recovery.h"

extern "C" {
#include <tools/rc_varuna_audit/audit_certify.h>
#include <uct/ib/varuna/requester/varuna_sm.h>
}

#include <dirent.h>
#include <fstream>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

class test_varuna_audit_file : public test_varuna_recovery {
protected:
    virtual void init()
    {
        char name[] = "/tmp/varuna_audit_XXXXXX";

        test_varuna_recovery::init();
        ASSERT_TRUE(mkdtemp(name) != NULL);
        m_dir = name;
        ASSERT_UCS_OK(uct_varuna_audit_open(host->requester(), name));
    }

    virtual void cleanup()
    {
        uct_varuna_audit_close(host->requester());
        for (const std::string &file : files()) {
            unlink((m_dir + "/" + file).c_str());
        }
        rmdir(m_dir.c_str());
        test_varuna_recovery::cleanup();
    }

    std::vector<std::string> files() const
    {
        std::vector<std::string> names;
        DIR *dir = opendir(m_dir.c_str());

        while (struct dirent *entry = (dir == NULL) ? NULL : readdir(dir)) {
            if (entry->d_name[0] != '.') {
                names.push_back(entry->d_name);
            }
        }
        if (dir != NULL) {
            closedir(dir);
        }
        return names;
    }

    /* Read the only file; the views point into m_data */
    std::vector<uct_varuna_audit_view_t> records()
    {
        std::vector<uct_varuna_audit_view_t> views;
        std::vector<std::string> names = files();
        size_t pos = sizeof(uct_varuna_audit_file_t);
        std::stringstream text;
        const char *reason;

        EXPECT_EQ(1u, names.size());
        text << std::ifstream(m_dir + "/" + names.at(0)).rdbuf();
        m_data = text.str();
        EXPECT_EQ(nullptr, uct_varuna_audit_check_file(m_data.data(), m_data.size()));
        while (pos < m_data.size()) {
            uct_varuna_audit_view_t view;
            size_t length = uct_varuna_audit_read(&m_data[pos], m_data.size() - pos,
                                                  &view, &reason);
            EXPECT_GT(length, 0u) << reason;
            if (length == 0) {
                break;
            }
            views.push_back(view);
            pos += length;
        }
        return views;
    }

    void put_three_and_fail()
    {
        put_and_fail(3);
        execute(lane(0), 2); /* A put and its entry */
    }

    std::string m_dir;
    std::string m_data;
    char        m_why[AUDIT_WHY_MAX];
};

UCS_TEST_F(test_varuna_audit_file, no_failure_no_file) {
    open();
    ASSERT_UCS_OK(put(1));
    step();
    EXPECT_EQ(0u, files().size());
}

UCS_TEST_F(test_varuna_audit_file, recovery_and_comparison) {
    struct stat st;

    put_three_and_fail();
    answer_fence(1);
    compare(lane(1), 0);

    std::vector<uct_varuna_audit_view_t> views = records();
    ASSERT_EQ(2u, views.size());
    ASSERT_TRUE(views[0].verdict != NULL);
    EXPECT_EQ(1u, views[0].head.epoch);
    ASSERT_EQ(3u, views[0].verdict->num_ops);
    EXPECT_EQ(UCT_VARUNA_AUDIT_COMPLETED, views[0].ops[0].action);
    EXPECT_EQ(UCT_VARUNA_AUDIT_COMPARED, views[0].ops[1].action);
    EXPECT_EQ(UCT_VARUNA_AUDIT_REPEATED, views[0].ops[2].action);
    EXPECT_EQ(TARGET, views[0].ops[2].remote_addr);
    EXPECT_TRUE(audit_certify_verdict(&views[0], m_why)) << m_why;

    uint64_t req = views[0].ops[1].req;
    ASSERT_TRUE(views[1].compare != NULL);
    ASSERT_EQ(1u, views[1].compare->num_targets);
    EXPECT_TRUE(audit_certify_compare(&views[1], &req, 1, m_why)) << m_why;

    ASSERT_EQ(0, stat((m_dir + "/" + files().at(0)).c_str(), &st));
    EXPECT_EQ(0600u, st.st_mode & 0777);
}

/* A doubtful answer is no recovery */
/* A lane that owes nothing is left without asking the peer */
UCS_TEST_F(test_varuna_audit_file, lane_left_without_a_fence) {
    char why[AUDIT_WHY_MAX];

    open();
    ASSERT_UCS_OK(uct_varuna_ep_am_short(&ep->super.super, 1, 2, NULL, 0));
    link_down(0);
    step();
    step();
    step();
    ASSERT_EQ(UCT_VARUNA_EP_ACTIVE, state());

    std::vector<uct_varuna_audit_view_t> views = records();
    ASSERT_EQ(1u, views.size());
    ASSERT_TRUE(views[0].verdict != NULL);
    EXPECT_EQ(UCT_VARUNA_AUDIT_UNFENCED, views[0].verdict->flags);
    EXPECT_EQ(1u, views[0].verdict->num_ops);
    EXPECT_EQ(0, views[0].verdict->owes);
    EXPECT_TRUE(audit_certify_verdict(&views[0], why)) << why;
}

UCS_TEST_F(test_varuna_audit_file, unfenced_answers_are_not_recorded) {
    put_three_and_fail();
    answer_fence(1, 0, 0, 0);
    EXPECT_EQ(0u, files().size());
    answer_fence(1);
    EXPECT_EQ(1u, records().size());
}

/* The directory vanishes: a warning, and the job continues */
UCS_TEST_F(test_varuna_audit_file, directory_is_removed) {
    put_three_and_fail();
    rmdir(m_dir.c_str());
    {
        scoped_log_handler slh(hide_warns_logger);
        answer_fence(1);
    }
    compare(lane(1), 0);
    EXPECT_EQ(UCT_VARUNA_EP_ACTIVE, state());
    EXPECT_EQ((std::vector<uint64_t>{2, 3}), puts(lane(1)));
    EXPECT_EQ(0u, files().size());
}

UCS_TEST_F(test_varuna_audit_file, bad_directories) {
    scoped_log_handler slh(hide_errors_logger);
    uct_varuna_requester_t *requester = host->requester();

    uct_varuna_audit_close(requester);
    for (const char *dir : {"", "/nowhere/at/all", "/proc/self/exe"}) {
        EXPECT_EQ(UCS_ERR_INVALID_PARAM, uct_varuna_audit_open(requester, dir)) << dir;
    }
    EXPECT_UCS_OK(uct_varuna_audit_open(requester, "none"));
    uct_varuna_audit_close(requester);
}
