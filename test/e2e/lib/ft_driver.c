/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Common code of the drivers of fault tests.
 */
#include "ft_driver.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void ft_driver_up(ft_driver_t *driver, unsigned hosts, unsigned links,
                  const char *options)
{
    char name[64];

    snprintf(name, sizeof(name), "%s%d", driver->name, getpid());
    ft_fabric_up(&driver->fabric, driver->prefix, name, hosts, links, options);
}

void ft_driver_start_job(ft_driver_t *driver, ft_child_t *child,
                         const char *role, unsigned host, const char *arg)
{
    char runner[256], host_text[16];
    char *argv[FT_MAX_ARGS] = {driver->fabric.emu, "exec", "-n",
                               driver->fabric.name, host_text, "--", runner};
    unsigned argc           = 7;

    if (driver->plugin != NULL) {
        argv[argc++] = "-l";
        argv[argc++] = (char*)driver->plugin;
    }

    argv[argc++] = (char*)driver->job;
    argv[argc++] = (char*)role;
    argv[argc++] = (char*)arg;
    snprintf(runner, sizeof(runner), "%s/bin/rc_varuna_run", driver->prefix);
    snprintf(host_text, sizeof(host_text), "%u", host);
    ft_child_start(child, role, driver->log, argv);
}

void ft_driver_await_server(ft_driver_t *driver, ft_child_t *child, uint64_t *base_p,
                            char *address)
{
    const char *answer = ft_child_answer(child, driver->answer_time);

    if ((answer == NULL) || (sscanf(answer, "address 0x%" SCNx64, base_p) != 1)) {
        ft_driver_fatal(driver, "the %s did not start", child->name);
    }

    snprintf(address, FT_ANSWER_MAX, "%s", answer + strlen("address "));
}

void ft_driver_await_client(ft_driver_t *driver, ft_child_t *child)
{
    const char *answer = ft_child_answer(child, driver->answer_time);

    if ((answer == NULL) || strcmp(answer, "ready")) {
        ft_driver_fatal(driver, "a %s did not start", child->name);
    }
}

void ft_driver_connect(ft_driver_t *driver, ft_child_t *child, const char *address)
{
    ft_driver_await_client(driver, child);
    ft_driver_ask(driver, child, "connect %s", address);
}

const char *ft_driver_answer(ft_driver_t *driver, ft_child_t *child)
{
    const char *answer = ft_child_answer(child, driver->answer_time);

    if ((answer == NULL) || strncmp(answer, "ok", 2)) {
        ft_driver_fatal(driver, "a %s answers: %.200s", child->name,
                        (answer == NULL) ? "nothing" : answer);
    }

    return answer + 2;
}

const char *ft_driver_ask(ft_driver_t *driver, ft_child_t *child,
                          const char *format, ...)
{
    char text[FT_ANSWER_MAX + 16];
    va_list ap;

    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    ft_child_send(child, "%s", text);
    return ft_driver_answer(driver, child);
}

void ft_driver_stop_job(ft_driver_t *driver, ft_child_t *child)
{
    int status = ft_child_stop(child);

    if (status != 0) {
        ft_driver_report(driver, "a %s did not end well: status %d; its last"
                         " answer: %s", child->name, status, child->answer);
    }
}

void ft_driver_report(ft_driver_t *driver, const char *format, ...)
{
    va_list ap;

    ++driver->failures;
    printf("FAILED: %s%s", driver->label, (driver->label[0] != '\0') ? ": " : "");
    va_start(ap, format);
    vprintf(format, ap);
    va_end(ap);
    printf("\n");
    fflush(stdout);
}

void ft_driver_fatal(ft_driver_t *driver, const char *format, ...)
{
    char text[512];
    va_list ap;

    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    fflush(driver->log);
    ft_fabric_down(&driver->fabric);
    ft_fatal("%s%s%s, see the log", driver->label,
             (driver->label[0] != '\0') ? ": " : "", text);
}

static void ft_option_set(const ft_option_t *option, const char *text)
{
    unsigned *numbers = option->value;

    switch (option->type) {
    case FT_OPTION_TEXT:
        *(const char**)option->value = text;
        break;
    case FT_OPTION_UNSIGNED:
        numbers[0] = atoi(text);
        break;
    case FT_OPTION_U64:
        *(uint64_t*)option->value = strtoull(text, NULL, 0);
        break;
    case FT_OPTION_DOUBLE:
        *(double*)option->value = atof(text);
        break;
    case FT_OPTION_FLAG:
        *(int*)option->value = 1;
        break;
    case FT_OPTION_RANGE:
        if (sscanf(text, "%u-%u", &numbers[0], &numbers[1]) == 1) {
            numbers[1] = numbers[0];
        }
        break;
    case FT_OPTION_ONLY:
        numbers[0] = atoi(text);
        numbers[1] = 0;
        break;
    }
}

int ft_driver_parse(ft_driver_t *driver, int argc, char **argv, const ft_option_t *options,
                    int num_words)
{
    const ft_option_t own[] = {
        {'N', FT_OPTION_TEXT, &driver->name},
        {'P', FT_OPTION_TEXT, &driver->plugin},
        {'l', FT_OPTION_TEXT, &driver->log_name},
        {0}
    };
    const ft_option_t *lists[] = {own, options};
    const ft_option_t *known[UINT8_MAX] = {NULL};
    char letters[64]           = "h"; /* Usage */
    const ft_option_t *option;
    unsigned list;
    int c;

    for (list = 0; list < 2; ++list) {
        for (option = lists[list]; option->letter != 0; ++option) {
            known[(uint8_t)option->letter] = option;
            snprintf(letters + strlen(letters), sizeof(letters) - strlen(letters), "%c%s",
                     option->letter, (option->type == FT_OPTION_FLAG) ? "" : ":");
        }
    }

    while ((c = getopt(argc, argv, letters)) != -1) {
        if (known[(uint8_t)c] == NULL) {
            return -1;
        }
        ft_option_set(known[(uint8_t)c], optarg);
    }

    if (argc - optind != num_words + 2) {
        return -1;
    }

    setvbuf(stdout, NULL, _IOLBF, 0);
    driver->prefix = argv[optind + num_words];
    driver->job    = argv[optind + num_words + 1];
    driver->log    = fopen(driver->log_name, "w");
    if (driver->log == NULL) {
        ft_fatal("cannot write %s", driver->log_name);
    }

    return 0;
}

int ft_driver_close(ft_driver_t *driver)
{
    fclose(driver->log);
    return (driver->failures == 0) ? 0 : 1;
}

int ft_is_listed(const char *list, const char *name)
{
    size_t length = strlen(name);
    const char *at;

    if ((list == NULL) || !strcmp(list, "all")) {
        return 1;
    }

    for (at = list; (at = strstr(at, name)) != NULL; at += length) {
        if (((at == list) || (at[-1] == ',')) &&
            ((at[length] == ',') || (at[length] == '\0'))) {
            return 1;
        }
    }

    return 0;
}
