/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The load of the chaos test. Each client has an endpoint to each server and keeps
 * some operations under way on it: puts of a new value each, gets, messages with
 * ascending numbers.
 */
#include "ft_registers.h"
#include "ft_clock.h"
#include "ft_plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FT_REGS_SLOTS 16         /* Operations under way */
#define FT_REGS_PAUSE 2000       /* Maximum microseconds between batches */
#define FT_REGS_END   60e9       /* Nanoseconds for the last operations */

typedef struct ft_regs ft_regs_t;

/* An operation under way */
typedef struct {
    uct_completion_t comp;
    ft_regs_t        *load;
    ft_record_t      record;
    uint64_t         *buffer;
    int              busy;
} ft_regs_slot_t;

struct ft_regs {
    ft_uct_t               *uct;
    const ft_regs_params_t *params;
    const ft_address_t     *servers;
    uct_ep_h               eps[FT_CHAOS_SERVERS];
    uct_rkey_bundle_t      rkeys[FT_CHAOS_SERVERS];
    uint64_t               num_messages[FT_CHAOS_SERVERS];
    uint64_t               num_writes;
    uint64_t               num_done;
    uint64_t               random;
    uint64_t               *memory;
    uct_mem_h              memh;
    ft_regs_slot_t         slots[FT_REGS_SLOTS];
    FILE                   *file;
    char                   *error;
    size_t                 max;
};


static void ft_regs_fail(ft_regs_t *load, const char *what,
                         ucs_status_t status)
{
    if (load->error[0] == '\0') {
        snprintf(load->error, load->max, "%s: %s", what,
                 ucs_status_string(status));
    }
}

static void ft_regs_complete(ft_regs_slot_t *slot, ucs_status_t status)
{
    ft_regs_t *load = slot->load;

    if (!slot->busy) {
        ft_regs_fail(load, "a completion came twice", status);
        return;
    }

    if (status != UCS_OK) {
        ft_regs_fail(load, "an operation failed", status);
    }

    slot->busy       = 0;
    slot->record.end = ft_now_ns();
    if (!slot->record.write) {
        slot->record.value = *slot->buffer;
    }

    ++load->num_done;
    if (fwrite(&slot->record, sizeof(slot->record), 1, load->file) != 1) {
        ft_regs_fail(load, "cannot write records", UCS_ERR_IO_ERROR);
    }
}

static void ft_regs_comp_func(uct_completion_t *self)
{
    ft_regs_complete((ft_regs_slot_t*)((char*)self -
                                       offsetof(ft_regs_slot_t, comp)),
                     self->status);
}

static void ft_regs_unpack(void *arg, const void *data, size_t length)
{
    memcpy(((ft_regs_slot_t*)arg)->buffer, data, length);
}

static ft_regs_slot_t *ft_regs_free_slot(ft_regs_t *load)
{
    unsigned i;

    for (i = 0; i < FT_REGS_SLOTS; ++i) {
        if (!load->slots[i].busy) {
            return &load->slots[i];
        }
    }

    return NULL;
}

static unsigned ft_regs_choose_register(ft_regs_t *load, int write)
{
    const ft_regs_params_t *params = load->params;
    unsigned reg;
    int writer;

    do {
        reg    = ft_random(&load->random, FT_CHAOS_REGISTERS);
        writer = ft_chaos_writer(reg, params->num_clients);
    } while (write && (writer >= 0) && (writer != (int)params->client));
    return reg;
}

static void ft_regs_post_rma(ft_regs_t *load, ft_regs_slot_t *slot, int write)
{
    unsigned server = ft_random(&load->random, load->params->num_servers);
    unsigned reg    = ft_regs_choose_register(load, write);
    uint64_t addr   = load->servers[server].base + (reg * FT_CHAOS_STRIDE);
    uct_iov_t iov   = {slot->buffer, sizeof(*slot->buffer), load->memh, 0, 1};
    ucs_status_t status;

    slot->comp.func     = ft_regs_comp_func;
    slot->comp.count    = 1;
    slot->comp.status   = UCS_OK;
    slot->record.write  = write;
    slot->record.client = load->params->client;
    slot->record.server = server;
    slot->record.reg    = reg;
    slot->record.start  = ft_now_ns();
    slot->busy          = 1;
    if (write) {
        slot->record.value = ft_chaos_value(load->params->client,
                                            load->num_writes + 1);
        *slot->buffer      = slot->record.value;
        status = uct_ep_put_zcopy(load->eps[server], &iov, 1, addr,
                                  load->rkeys[server].rkey, &slot->comp);
    } else {
        status = uct_ep_get_bcopy(load->eps[server], ft_regs_unpack, slot,
                                  sizeof(*slot->buffer), addr,
                                  load->rkeys[server].rkey, &slot->comp);
    }

    if (status == UCS_ERR_NO_RESOURCE) {
        slot->busy = 0;
        return;
    }

    load->num_writes += write;
    if (status == UCS_OK) {
        ft_regs_complete(slot, UCS_OK);
    } else if (status != UCS_INPROGRESS) {
        slot->busy = 0;
        ft_regs_fail(load, "posting", status);
    }
}

static void ft_regs_post_am(ft_regs_t *load)
{
    unsigned server = ft_random(&load->random, load->params->num_servers);
    ucs_status_t status;

    status = uct_ep_am_short(load->eps[server], FT_CHAOS_AM_ID,
                             ft_chaos_value(load->params->client,
                                            load->num_messages[server]),
                             NULL, 0);
    if (status == UCS_OK) {
        ++load->num_messages[server];
    } else if (status != UCS_ERR_NO_RESOURCE) {
        ft_regs_fail(load, "sending", status);
    }
}

static void ft_regs_loop(ft_regs_t *load)
{
    uint64_t end = ft_now_ns() + (uint64_t)(load->params->seconds * 1e9);
    ft_regs_slot_t *slot;
    uint64_t pause;
    unsigned i;

    while ((ft_now_ns() < end) && (load->error[0] == '\0')) {
        for (i = ft_random(&load->random, FT_REGS_SLOTS); i > 0; --i) {
            slot = ft_regs_free_slot(load);
            if (ft_random(&load->random, 8) == 0) {
                ft_regs_post_am(load);
            } else if (slot != NULL) {
                ft_regs_post_rma(load, slot, ft_random(&load->random, 5) < 3);
            }
        }

        pause = ft_now_ns() + (1000 * ft_random(&load->random, FT_REGS_PAUSE));
        do {
            if (uct_worker_progress(load->uct->worker) == 0) {
                usleep(30);
            }
        } while (ft_now_ns() < pause);
    }
}

/* All operations must complete */
static void ft_regs_finish(ft_regs_t *load)
{
    uint64_t end = ft_now_ns() + (uint64_t)FT_REGS_END;
    unsigned busy, i;
    ucs_status_t status;

    do {
        busy = 0;
        for (i = 0; i < FT_REGS_SLOTS; ++i) {
            busy += load->slots[i].busy;
        }

        for (i = 0; i < load->params->num_servers; ++i) {
            status = uct_ep_flush(load->eps[i], 0, NULL);
            busy  += (status != UCS_OK);
        }

        uct_worker_progress(load->uct->worker);
        usleep(50);
    } while ((busy > 0) && (ft_now_ns() < end) && (load->error[0] == '\0'));

    if (busy > 0) {
        ft_regs_fail(load, "operations do not complete", UCS_ERR_TIMED_OUT);
    }
}

static void ft_regs_open(ft_regs_t *load)
{
    unsigned i;

    load->memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    load->file   = fopen(load->params->path, "w");
    if ((load->memory == MAP_FAILED) || (load->file == NULL)) {
        ft_die("cannot write %s", load->params->path);
    }

    load->memh   = ft_uct_reg(load->uct, load->memory, 4096);
    load->random = (load->params->seed + 1) * 0x9e3779b97f4a7c15ul +
                   load->params->client;
    for (i = 0; i < FT_REGS_SLOTS; ++i) {
        load->slots[i].load   = load;
        load->slots[i].buffer = load->memory + (8 * i);
    }

    for (i = 0; i < load->params->num_servers; ++i) {
        load->eps[i] = ft_uct_connect(load->uct, &load->servers[i]);
        if (uct_rkey_unpack(load->uct->component, load->servers[i].rkey,
                            &load->rkeys[i]) != UCS_OK) {
            ft_die("rkey_unpack");
        }
    }
}

static void ft_regs_close(ft_regs_t *load)
{
    unsigned i;

    printf("ft: sent %" PRIu64 " %" PRIu64 "\n", load->num_messages[0],
           load->num_messages[1]);
    for (i = 0; i < load->params->num_servers; ++i) {
        uct_ep_destroy(load->eps[i]);
        uct_rkey_release(load->uct->component, &load->rkeys[i]);
    }

    fclose(load->file);
    uct_md_mem_dereg(load->uct->md, load->memh);
    munmap(load->memory, 4096);
}

int ft_regs_run(ft_uct_t *uct, const ft_address_t *servers,
                const ft_regs_params_t *params, char *error, size_t max)
{
    static ft_regs_t load;

    memset(&load, 0, sizeof(load));
    load.uct     = uct;
    load.servers = servers;
    load.params  = params;
    load.error   = error;
    load.max     = max;
    ft_regs_open(&load);
    ft_regs_loop(&load);
    if (error[0] == '\0') {
        ft_regs_finish(&load);
    }

    if (uct->ep_errors > 0) {
        ft_regs_fail(&load, "an endpoint failed", UCS_ERR_IO_ERROR);
    }

    ft_regs_close(&load);
    return (error[0] == '\0') ? 0 : -1;
}
