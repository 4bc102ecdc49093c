/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The mlx5emu command: what its verbs share. Each verb is one function that
 * gets its own argv (argv[0] is the verb) and returns the exit status.
 *
 * Called by: mlx5emu.c (dispatch) and the ctl_*.c files (helpers).
 */

#ifndef CTL_H_
#define CTL_H_

#include "../core/emu_pipe.h"

#include <getopt.h>
#include <stdint.h>
#include <stdio.h>

#define CTL_PROGRAM      "mlx5emu"
#define CTL_DEFAULT_NAME "default"
#define CTL_ENV_FABRIC   "MLX5EMU_FABRIC"
#define CTL_ENV_HOST     "MLX5EMU_HOST"
#define CTL_ENV_FAULTS   "MLX5EMU_FAULTS"      /* up: a file of rules */
#define CTL_ENV_RULES    "MLX5EMU_RULES"       /* up: rules, by ';' */
#define CTL_ENV_QUIRKS   "MLX5EMU_QUIRKS"      /* up: quirks, by ";" */
#define CTL_ENV_EXEC     "MLX5EMU_EXEC_RULES"  /* exec: the same */

/* Exit statuses; exec has those of the shell beside them */
#define CTL_OK           0
#define CTL_FAILED       1   /* could not be done */
#define CTL_USAGE        2   /* not understood */
#define CTL_INCOMPLETE   3   /* trace: entries were lost; fault list --check,
                                exec --require-fired: a rule never fired */

/** A verb of the command. */
typedef struct ctl_verb {
    const char *name;
    int        (*run)(int argc, char **argv);
    const char *usage;      /* arguments, one line */
    const char *help;       /* a sentence for the list of verbs */
    const char *details;    /* the rest of "VERB --help" */
} ctl_verb_t;

extern const ctl_verb_t ctl_verb_up;
extern const ctl_verb_t ctl_verb_down;
extern const ctl_verb_t ctl_verb_exec;
extern const ctl_verb_t ctl_verb_link;
extern const ctl_verb_t ctl_verb_nic;
extern const ctl_verb_t ctl_verb_fault;
extern const ctl_verb_t ctl_verb_quirk;
extern const ctl_verb_t ctl_verb_status;
extern const ctl_verb_t ctl_verb_trace;


/** Print "mlx5emu: MESSAGE" on standard error. @return CTL_FAILED. */
int ctl_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));


/** The same for wrong arguments of a verb: also points to its help.
 *  @return CTL_USAGE. */
int ctl_usage_fail(const ctl_verb_t *verb, const char *fmt, ...)
        __attribute__((format(printf, 2, 3)));


/** Print a verb's help on standard output. @return CTL_OK. */
int ctl_help(const ctl_verb_t *verb);


/** Print the version on standard output. @return CTL_OK. */
int ctl_version(void);


/**
 * getopt_long() for a verb: handles -n NAME, -V/--version, -h/--help and what is
 * unknown.
 *
 * @param [in]  shorts    Short options besides "n:Vh", may start with "+".
 * @param [in]  longs     Long options besides those, {0}-ended.
 * @param [out] status_p  Exit status, if the result is '?'.
 *
 * @return A verb's own option, -1 at the end, '?' if the verb must return.
 */
int ctl_getopt(const ctl_verb_t *verb, int argc, char **argv,
               const char *shorts, const struct option *longs, int *status_p);


/** Fabric that was selected: -n, else the surrounding exec's, else default. */
const char *ctl_fabric_name(void);


/**
 * Open the selected fabric, or say why not.
 *
 * @return 0 or CTL_FAILED.
 */
int ctl_fabric_open(void);


/** Parse a whole decimal number. @return 0, or -1 if it is none or out of
 *  range. */
int ctl_parse_number(const char *text, uint64_t min, uint64_t max,
                     uint64_t *value_p);


/** Parse "HOST:LINK" of the open fabric; says what is wrong.
 *  @return 0 or CTL_USAGE. */
int ctl_parse_port(const ctl_verb_t *verb, const char *text,
                   unsigned *host_p, unsigned *link_p);


/** Parse a host of the open fabric; says what is wrong.
 *  @return 0 or CTL_USAGE. */
int ctl_parse_host(const ctl_verb_t *verb, const char *text, unsigned *host_p);


/** Load fault rules from a file, "-" for standard input: all or none.
 *  @return exit status. */
int ctl_fault_load(const char *path, int verbose);


/** Load fault rules from a text that has them one a line or separated by ';':
 *  all or none. Messages contain @a name. @return exit status. */
int ctl_fault_load_text(const char *text, const char *name);


/** Switch on the quirks of a text, [HOST[:LINK]=]NAME[,NAME]...: all or none.
 *  @return exit status. */
int ctl_quirk_add(const ctl_verb_t *verb, const char *text);


/** The same for texts separated by ';'. Messages contain @a name.
 *  @return exit status. */
int ctl_quirk_add_list(const ctl_verb_t *verb, const char *list,
                       const char *name);


/** Print the quirks that are on or have acted, with their counts. */
void ctl_quirk_print_status(void);


/** The same as JSON (json_t). */
struct json_t *ctl_quirk_json_status(void);


/** How many hosts and links the places of MTUs need. */
typedef struct ctl_mtu_named {
    uint32_t hosts;
    uint32_t links;
} ctl_mtu_named_t;

/** Parse an MTU, "BYTES", "HOST=BYTES" or "HOST:LINK=BYTES", into the configuration.
 *  @return exit status. */
int ctl_mtu_parse(const ctl_verb_t *verb, const char *text,
                  emu_fabric_config_t *cfg, ctl_mtu_named_t *named);


/** Complain about places that the fabric will not have. @return exit status. */
int ctl_mtu_check(const ctl_verb_t *verb, const emu_fabric_config_t *cfg,
                  const ctl_mtu_named_t *named);


/** The smallest and the largest MTU of a fabric's ports. */
void ctl_mtu_range(const emu_fabric_config_t *cfg, unsigned *min_p, unsigned *max_p);


#define CTL_SPEED_MAX_LATENCY_NS 10000000000ul

/** Parse what a link can do: "rate", "latency" or "queue", and its value.
 *  @return exit status. */
int ctl_speed_parse(const ctl_verb_t *verb, const char *name, const char *text,
                    emu_pipe_speed_t *speed);


/** Print it, in words that a line goes on with. */
void ctl_speed_print(const emu_pipe_speed_t *speed);


/** Start the keeper of the open fabric, if it has time and no keeper.
 *  @return exit status. */
int ctl_keeper_ensure(void);


/** End the keeper of the open fabric, if there is one. */
void ctl_keeper_end(void);


/** Say which loaded rules have never fired. @return their number. */
unsigned ctl_fault_report_idle(void);

#endif
