/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What the drivers of the fault tests have in common.
 */
#include "ft_driver.h"

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

void ft_driver_fatal(ft_driver_t *driver, const char *format, ...)
{
    char text[512];
    va_list ap;

    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    fflush(driver->log);
    ft_fabric_down(&driver->fabric);
    ft_fatal("%s, see the log", text);
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
