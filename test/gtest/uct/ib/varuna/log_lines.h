/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The warnings and errors that a user sees at the default log level, for tests that count
 * them.
 */
#ifndef LOG_LINES_H_
#define LOG_LINES_H_

#include <common/test.h>

extern "C" {
#include <ucs/debug/log.h>
}

#include <string>
#include <vector>

/* Takes all lines, from its construction to its destruction: they don't fail the test */
class log_lines {
public:
    log_lines()
    {
        lines().clear();
        ucs_log_push_handler(take);
    }

    ~log_lines()
    {
        ucs_log_pop_handler();
    }

    /* Lines that contain a text */
    static unsigned count(const std::string &text = "")
    {
        unsigned num = 0;

        for (const std::string &line : lines()) {
            num += (line.find(text) != std::string::npos);
        }
        return num;
    }

    static const std::string &last()
    {
        static const std::string none;

        return lines().empty() ? none : lines().back();
    }

    static void clear()
    {
        lines().clear();
    }

private:
    static std::vector<std::string> &lines()
    {
        static std::vector<std::string> all;

        return all;
    }

    static ucs_log_func_rc_t take(const char*, unsigned, const char*, ucs_log_level_t level,
                                  const ucs_log_component_config_t*, const char *format,
                                  va_list args)
    {
        char text[2048];

        if (level > UCS_LOG_LEVEL_WARN) {
            return UCS_LOG_FUNC_RC_CONTINUE;
        }

        vsnprintf(text, sizeof(text), format, args);
        lines().push_back(text);
        return UCS_LOG_FUNC_RC_STOP;
    }
};

#endif
