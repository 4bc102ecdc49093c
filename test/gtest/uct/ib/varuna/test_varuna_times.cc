/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 */
#include <common/test.h>

extern "C" {
#include <uct/ib/varuna/iface/varuna_tl_iface.h>
#include <ucs/time/time.h>
}

#include <cmath>
#include <string>

/* Options as UCX reads them from the environment */
class test_varuna_times : public ucs::test {
protected:
    struct options {
        double     seconds;
        unsigned   number;
        ucs_time_t units;
    };

    ucs_status_t check(const std::string &seconds, const std::string &units = "1s")
    {
        static ucs_config_field_t table[] = {
            {"SECONDS", "1s", "", offsetof(options, seconds), UCS_CONFIG_TYPE_TIME},
            {"NUMBER", "1", "", offsetof(options, number), UCS_CONFIG_TYPE_UINT},
            {"UNITS", "1s", "", offsetof(options, units), UCS_CONFIG_TYPE_TIME_UNITS},
            {NULL}
        };
        scoped_log_handler slh(wrap_errors_logger);

        EXPECT_TRUE(table[0].parser.read(seconds.c_str(), &m_options.seconds, NULL));
        EXPECT_TRUE(table[2].parser.read(units.c_str(), &m_options.units, NULL));
        m_options.number = ~0u;
        m_errors.clear();
        return uct_varuna_times_check(table, "UCX_TEST_", &m_options);
    }

    options m_options;
};

UCS_TEST_F(test_varuna_times, usual_ones_stay) {
    for (double value : {0.0, 1e-9, 0.1, 60.0, 1e6}) {
        EXPECT_EQ(UCS_OK, check(std::to_string(value)));
        EXPECT_NEAR(value, m_options.seconds, 1e-6);
        EXPECT_EQ(~0u, m_options.number);
        EXPECT_EQ(ucs_time_from_sec(1), m_options.units);
    }
}

/* Deadlines are sums of such times */
UCS_TEST_F(test_varuna_times, infinite_is_long) {
    for (const char *value : {"inf", "1e300", "1e30m"}) {
        ucs_time_t now = ucs_get_time();

        EXPECT_EQ(UCS_OK, check(value)) << value;
        EXPECT_EQ(UCT_VARUNA_TIMES_MAX, m_options.seconds);
        EXPECT_GT(now + (4 * ucs_time_from_sec(m_options.seconds)), now);
    }
}

UCS_TEST_F(test_varuna_times, no_times) {
    for (const char *value : {"-1", "-1ms", "-inf", "nan", "-1e300"}) {
        EXPECT_EQ(UCS_ERR_INVALID_PARAM, check(value)) << value;
        ASSERT_EQ(1u, m_errors.size());
        EXPECT_NE(std::string::npos, m_errors[0].find("UCX_TEST_SECONDS"));
        EXPECT_NE(std::string::npos, m_errors[0].find("10s"));
    }
}

UCS_TEST_F(test_varuna_times, with_words) {
    EXPECT_EQ(UCS_OK, check("1s", "inf"));
    EXPECT_EQ(UCS_TIME_INFINITY, m_options.units);
    EXPECT_EQ(UCS_OK, check("1s", "auto"));
    EXPECT_EQ(UCS_TIME_AUTO, m_options.units);
    EXPECT_EQ(UCS_OK, check("1s", "0"));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, check("1s", "-1s"));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, check("1s", "-10ms"));
}
