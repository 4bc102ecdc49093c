/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Which UCX does a program use?
 */
#ifndef RUN_UCX_H_
#define RUN_UCX_H_

#define RUN_LIBUCP    "libucp.so.0"

/* Major, minor, patch */
typedef struct {
    unsigned number[3];
} run_version_t;

typedef struct {
    int           is_linked; /* Whether the program is linked with it */
    char          *libucp;   /* Its path */
    char          *second;   /* That of another one with which it is linked, or NULL */
    run_version_t version;
    char          *error;    /* Why the version is not known, or NULL */
} run_ucx_t;

/**
 * Find the UCX that a command uses: the one with which its program is linked, by whatever
 * name, or else the one that the dynamic linker finds for programs that open it later. It
 * does not run the command.
 *
 * @param [in]  command  As for execvp(), or NULL.
 * @param [out] ucx_p    The UCX.
 */
void run_ucx_find(const char *command, run_ucx_t *ucx_p);

/** @return Whether it has the name with which the plugin is linked. */
int run_ucx_has_name(const run_ucx_t *ucx);

/** Print a message on stderr, and exit. */
void __attribute__((noreturn, format(printf, 1, 2))) run_fatal(const char *format, ...);

/** @return A string in new memory. */
char *__attribute__((format(printf, 1, 2))) run_format(const char *format, ...);

#endif
