/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Common code of the drivers of fault tests.
 */
#include "ft_driver.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
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

int ft_driver_option(ft_driver_t *driver, int option, const char *arg)
{
    switch (option) {
    case 'N':
        driver->name = arg;
        return 1;
    case 'P':
        driver->plugin = arg;
        return 1;
    case 'l':
        driver->log_name = arg;
        return 1;
    default:
        return 0;
    }
}

int ft_driver_open(ft_driver_t *driver, int argc, char **argv, int optind)
{
    if (argc - optind != 2) {
        return -1;
    }

    driver->prefix = argv[optind];
    driver->job    = argv[optind + 1];
    driver->log    = fopen(driver->log_name, "w");
    if (driver->log == NULL) {
        ft_fatal("cannot write %s", driver->log_name);
    }

    return 0;
}

int ft_driver_parse(ft_driver_t *driver, int argc, char **argv, const char *letters,
                    ft_option_func_t func, void *arg)
{
    char all[64];
    int c;

    snprintf(all, sizeof(all), "%s%s", FT_DRIVER_OPTIONS, letters);
    while ((c = getopt(argc, argv, all)) != -1) {
        if (!ft_driver_option(driver, c, optarg) && !func(arg, c, optarg)) {
            return -1;
        }
    }

    setvbuf(stdout, NULL, _IOLBF, 0);
    return ft_driver_open(driver, argc, argv, optind);
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

void ft_parse_range(const char *text, unsigned *first_p, unsigned *last_p)
{
    if (sscanf(text, "%u-%u", first_p, last_p) == 1) {
        *last_p = *first_p;
    }
}
