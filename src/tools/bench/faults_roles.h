/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The two processes of varuna_faults, and what they say to each other on their socket.
 */
#ifndef FAULTS_ROLES_H
#define FAULTS_ROLES_H

#include "batch_load.h"


#define FAULTS_EPS_MAX 4096


typedef struct {
    const char   *tl;
    const char   *device;
    unsigned     num_eps;
    batch_load_t load;
    unsigned     connect_ms;
    unsigned     limit_ms;   /* Of the recording */
} faults_args_t;


/* From the client: how many operations of a batch are in the server's memory? The answer
 * is their number, 64 bits. Without operations it is the end. */
typedef struct {
    uint64_t offset;   /* Of the endpoint's slots */
    uint64_t value;    /* Last word of a slot of this batch */
    uint64_t count;    /* Slots to look at */
} faults_question_t;


/** Serve a client until it ends. @return 0, or -1 with the reason on stderr. */
int faults_serve(const faults_args_t *args, int fd);

/** Run the load. @return 0, or -1 with the reason on stderr. */
int faults_run(const faults_args_t *args, int fd);

#endif
