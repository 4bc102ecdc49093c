/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The file of links: its statements and errors.
 */
#include <common/test.h>

extern "C" {
#include <uct/ib/varuna/core/varuna_link.h>
}

#include <algorithm>
#include <cstring>
#include <string>

class test_varuna_links_file : public ucs::test {
protected:
    ucs_status_t parse(const std::string &text)
    {
        /* On the heap and not terminated, so that reading after the end is detected */
        std::vector<char> copy(text.begin(), text.end());

        m_line = 0;
        memset(m_error, 0, sizeof(m_error));
        return uct_varuna_links_file_parse(copy.data(), copy.size(), &m_file,
                                           &m_line, m_error, sizeof(m_error));
    }

    void expect_error(const std::string &text, unsigned line,
                      const std::string &message)
    {
        EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse(text)) << text;
        EXPECT_EQ(line, m_line) << text;
        EXPECT_NE(std::string::npos, std::string(m_error).find(message))
                << text << ": " << m_error;
    }

    std::string order() const
    {
        std::string names;

        for (unsigned i = 0; i < m_file.num_entries; ++i) {
            names += std::string((i == 0) ? "" : " ") + m_file.entries[i].name;
        }
        return names;
    }

    uct_varuna_links_file_t m_file;
    unsigned                m_line;
    char                    m_error[128];
};

UCS_TEST_F(test_varuna_links_file, roles_and_weights) {
    ASSERT_UCS_OK(parse("# our hosts\n"
                        "disabled mlx5_9\n"
                        "backup   mlx5_2:1\r\n"
                        "\tbackup mlx5_3:1 weight=7 # better\n"
                        "\n"
                        "backup   mlx5_4:1 weight=0\n"
                        "primary  mlx5_1:1\n"
                        "primary  mlx5_0:1 weight=2"));
    EXPECT_EQ("mlx5_0:1 mlx5_1:1 mlx5_3:1 mlx5_2:1 mlx5_4:1 mlx5_9", order());
    EXPECT_EQ(UCT_VARUNA_LINK_ROLE_PRIMARY, m_file.entries[1].role);
    EXPECT_EQ(UCT_VARUNA_LINK_ROLE_BACKUP, m_file.entries[2].role);
    EXPECT_EQ(UCT_VARUNA_LINK_ROLE_DISABLED, m_file.entries[5].role);
    EXPECT_EQ(4u, m_file.entries[2].line);
    EXPECT_FALSE(m_file.has_return);
}

UCS_TEST_F(test_varuna_links_file, return_policy) {
    static const struct {
        const char *text;
        double     delay;
    } cases[] = {{"yes", 0}, {"no", INFINITY}, {"5", 5},
                 {"5s", 5},  {"250ms", 0.25},  {"1.5m", 90}};

    for (const auto &c : cases) {
        ASSERT_UCS_OK(parse(std::string("primary all\nreturn ") + c.text));
        EXPECT_TRUE(m_file.has_return);
        EXPECT_DOUBLE_EQ(c.delay, m_file.return_delay) << c.text;
    }
}

UCS_TEST_F(test_varuna_links_file, errors_by_line) {
    expect_error("primary mlx5_0\nbakcup mlx5_1\n", 2, "'bakcup'");
    expect_error("primary mlx5_0\n\n\nbackup\n", 4, "needs a port");
    expect_error("primary mlx5_0\nbackup mlx5_0\n", 2, "in line 1");
    expect_error("backup a weight=1001\n", 1, "weight=N");
    expect_error("backup a weight=-1\n", 1, "weight=N");
    expect_error("backup a weight=\n", 1, "weight=N");
    expect_error("backup a heavy\n", 1, "weight=N");
    expect_error("backup a weight=1 b\n", 1, "too many words");
    expect_error("return\n", 1, "yes, no");
    expect_error("return soon\n", 1, "yes, no");
    expect_error("return -1\n", 1, "yes, no");
    expect_error("return 2d\n", 1, "yes, no");
    expect_error("return 1e9\n", 1, "yes, no");
    expect_error("return 0x10q\n", 1, "yes, no");
    expect_error("return yes\nreturn no\n", 2, "second");
    expect_error(std::string("primary a\n\0\n", 12), 2, "not a text file");
    expect_error("primary a\nbackup " + std::string(300, 'x'), 2, "longer");
    expect_error("primary " + std::string(100, 'x'), 1, "longer");
    expect_error("", 0, "names no link");
    expect_error("# nothing\ndisabled mlx5_0\n", 0, "names no link");
}

UCS_TEST_F(test_varuna_links_file, too_many) {
    std::string text;

    for (unsigned i = 0; i < UCT_VARUNA_LINKS_FILE_MAX; ++i) {
        text += "backup m" + std::to_string(i) + "\n";
    }
    ASSERT_UCS_OK(parse(text));
    expect_error(text + "backup one", UCT_VARUNA_LINKS_FILE_MAX + 1,
                 "more than");
}

/* Any contents are valid, or an error of an existing line */
UCS_TEST_F(test_varuna_links_file, random_text) {
    static const char *words[] = {"primary", "backup", "disabled", "return",
                                  "mlx5_0:1", "mlx5_1", "all", "weight=2",
                                  "weight=", "yes", "5s", "#", "\n", "\n", "\n",
                                  " ", "\t", "\r", "%s%n", "\xff"};
    unsigned num_right = 0, num_wrong = 0;

    for (unsigned i = 0; i < 20000; ++i) {
        std::string text;

        for (unsigned n = ucs::rand() % 12; n > 0; --n) {
            text += words[ucs::rand() % ucs_static_array_size(words)];
            text += (ucs::rand() % 4) ? " " : "";
        }
        if (!text.empty() && (ucs::rand() % 3 == 0)) {
            text[ucs::rand() % text.size()] = ucs::rand();
        }

        if (parse(text) == UCS_OK) {
            ++num_right;
            ASSERT_GT(m_file.num_entries, 0u);
        } else {
            ++num_wrong;
            ASSERT_LE(m_line, 1 + (size_t)std::count(text.begin(), text.end(),
                                                     '\n'));
            ASSERT_NE('\0', m_error[0]);
        }
    }

    EXPECT_GT(num_right, 50u);
    EXPECT_GT(num_wrong, 50u);
}
