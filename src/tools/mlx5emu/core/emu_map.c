/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * See emu_map.h.
 */

#include "emu_map.h"
#include "emu_chan.h"
#include "emu_cq.h"
#include "emu_ctx.h"
#include "emu_fabric.h"
#include "emu_late.h"
#include "emu_mr.h"
#include "emu_pipe.h"
#include "emu_port.h"
#include "emu_proc.h"
#include "emu_qp.h"
#include "emu_srq.h"
#include "../trace/emu_trace.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

/** Where each table begins, from EMU_BASE. */
typedef struct emu_layout {
    uint64_t procs, ctxs, chans, pds, mrs, cqs, srqs, qps, ports, lates, late_data;
    uint64_t pipe, flights, flight_data, trace, heap_pages, heap, total;
} emu_layout_t;

void emu_fabric_config_default(emu_fabric_config_t *cfg_p)
{
    unsigned host, link;

    memset(cfg_p, 0, sizeof(*cfg_p));
    cfg_p->hosts         = 2;
    cfg_p->links         = 2;
    cfg_p->trace_entries = EMU_DEFAULT_TRACE;
    cfg_p->heap_size     = EMU_DEFAULT_HEAP;
    cfg_p->seed          = 1;
    cfg_p->time_scale    = 1;
    cfg_p->subnet_timeout = EMU_DEFAULT_SUBNET_TIMEOUT;
    for (link = 0; link < EMU_MAX_LINKS; ++link) {
        cfg_p->speeds[link]     = EMU_SPEED_EDR;
        cfg_p->pci_switch[link] = 1;
        for (host = 0; host < EMU_MAX_HOSTS; ++host) {
            cfg_p->mtu[host][link] = EMU_MAX_MTU;
        }
    }
}

int emu_fabric_name_valid(const char *name)
{
    size_t i;

    if ((name[0] == '\0') || (name[0] == '.')) {
        return 0;
    }

    for (i = 0; name[i] != '\0'; i++) {
        if (!isalnum((unsigned char)name[i]) &&
            (strchr("_.-", name[i]) == NULL)) {
            return 0;
        }
    }

    /* "x.d" would be the directory of "x" */
    return (i < EMU_NAME_MAX) &&
           ((i < 2) || (strcmp(name + i - 2, ".d") != 0));
}

static uint64_t emu_layout_add(uint64_t *pos_p, uint64_t size)
{
    uint64_t pos = *pos_p;

    *pos_p = (pos + size + EMU_PAGE - 1) & ~(EMU_PAGE - 1);
    return pos;
}

static void emu_layout_make(const emu_fabric_config_t *cfg, emu_layout_t *l)
{
    uint64_t pos = 0;

    emu_layout_add(&pos, sizeof(emu_fabric_t));
    l->procs      = emu_layout_add(&pos, sizeof(emu_proc_t) * EMU_MAX_PROCS);
    l->ctxs       = emu_layout_add(&pos, sizeof(emu_ctx_t) * EMU_MAX_CTXS);
    l->chans      = emu_layout_add(&pos, sizeof(emu_chan_t) * EMU_MAX_CHANS);
    l->pds        = emu_layout_add(&pos, sizeof(emu_pd_t) * EMU_MAX_PDS);
    l->mrs        = emu_layout_add(&pos, sizeof(emu_mr_t) * EMU_MAX_MRS);
    l->cqs        = emu_layout_add(&pos, sizeof(emu_cq_t) * EMU_MAX_CQS);
    l->srqs       = emu_layout_add(&pos, sizeof(emu_srq_t) * EMU_MAX_SRQS);
    l->qps        = emu_layout_add(&pos, sizeof(emu_qp_t) * EMU_MAX_QPS);
    l->ports      = emu_layout_add(&pos, sizeof(emu_port_t) * EMU_MAX_PORTS);
    l->lates      = emu_layout_add(&pos, sizeof(emu_late_t) * EMU_MAX_LATE);
    l->late_data  = emu_layout_add(&pos, EMU_MAX_LATE * EMU_LATE_BYTES);
    l->pipe       = emu_layout_add(&pos, sizeof(emu_pipe_t));
    l->flights    = emu_layout_add(&pos, sizeof(emu_flight_t) * EMU_MAX_FLIGHTS);
    l->flight_data = emu_layout_add(&pos, (uint64_t)EMU_MAX_FLIGHTS *
                                    EMU_FLIGHT_BYTES);
    l->trace      = emu_layout_add(&pos, sizeof(emu_trace_t) +
                                   cfg->trace_entries *
                                   sizeof(emu_trace_entry_t));
    l->heap_pages = emu_layout_add(&pos, cfg->heap_size / EMU_PAGE *
                                   sizeof(uint32_t));
    l->heap       = emu_layout_add(&pos, cfg->heap_size);
    l->total      = pos;
}

/* Differs between builds whose structures do not match */
static uint64_t emu_layout_hash(void)
{
    static const uint64_t sizes[] = {
        sizeof(emu_fabric_t), sizeof(emu_proc_t), sizeof(emu_ctx_t),
        sizeof(emu_chan_t), sizeof(emu_pd_t), sizeof(emu_mr_t),
        sizeof(emu_cq_t), sizeof(emu_srq_t), sizeof(emu_qp_t),
        sizeof(emu_port_t),
        sizeof(emu_trace_entry_t), sizeof(emu_fault_rule_t),
        sizeof(emu_quirk_port_t), sizeof(emu_late_t), sizeof(emu_pipe_t),
        sizeof(emu_flight_t)
    };
    uint64_t hash = 0xcbf29ce484222325ul;
    size_t i;

    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        hash = (hash ^ sizes[i]) * 0x100000001b3ul;
    }

    return hash;
}

/* @return whether one is not possible: *mtu_p */
static int emu_fabric_has_bad_mtu(const emu_fabric_config_t *cfg, unsigned *mtu_p)
{
    unsigned host, link, mtu;

    for (host = 0; host < cfg->hosts; ++host) {
        for (link = 0; link < cfg->links; ++link) {
            mtu = cfg->mtu[host][link];
            if ((mtu < EMU_MIN_MTU) || (mtu > EMU_MAX_MTU) || (mtu & (mtu - 1))) {
                *mtu_p = mtu;
                return 1;
            }
        }
    }

    return 0;
}

static int emu_fabric_config_check(const emu_fabric_config_t *cfg, char *err,
                                   size_t err_max)
{
    unsigned mtu;

    if (!emu_fabric_name_valid(cfg->name)) {
        snprintf(err, err_max, "invalid fabric name '%s': use letters, digits, "
                 "'_', '-' and '.', at most %d of them", cfg->name,
                 EMU_NAME_MAX - 1);
    } else if ((cfg->hosts < 1) || (cfg->hosts > EMU_MAX_HOSTS)) {
        snprintf(err, err_max, "%u hosts: 1 to %d are possible", cfg->hosts,
                 EMU_MAX_HOSTS);
    } else if ((cfg->links < 1) || (cfg->links > EMU_MAX_LINKS)) {
        snprintf(err, err_max, "%u links: 1 to %d are possible", cfg->links,
                 EMU_MAX_LINKS);
    } else if (emu_fabric_has_bad_mtu(cfg, &mtu)) {
        snprintf(err, err_max, "MTU %u: 256, 512, 1024, 2048 or 4096 is "
                 "possible", mtu);
    } else if (!(cfg->time_scale >= 0.001) || !(cfg->time_scale <= 1000)) {
        snprintf(err, err_max, "time scale %g: 0.001 to 1000 is possible",
                 cfg->time_scale);
    } else if (cfg->subnet_timeout > EMU_MAX_SUBNET_TIMEOUT) {
        snprintf(err, err_max, "subnet timeout %u: 0 to %d is possible",
                 cfg->subnet_timeout, EMU_MAX_SUBNET_TIMEOUT);
    } else if (cfg->trace_entries > (1ul << 32)) {
        snprintf(err, err_max, "%lu trace entries are too many",
                 (unsigned long)cfg->trace_entries);
    } else if ((cfg->heap_size < (1ul << 20)) ||
               (cfg->heap_size > (1ul << 40)) ||
               ((cfg->heap_size % EMU_PAGE) != 0)) {
        snprintf(err, err_max, "heap size %lu: 1m to 1t, in pages",
                 (unsigned long)cfg->heap_size);
    } else {
        return 0;
    }

    return -EINVAL;
}

static int emu_fabric_map(int fd, uint64_t size, char *err, size_t err_max)
{
    void *ptr = mmap((void*)EMU_BASE, size, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0);

    if (ptr == (void*)EMU_BASE) {
        emu_fabric    = ptr;
        emu_fabric_fd = fd;
        return 0;
    }

    if (ptr != MAP_FAILED) {
        munmap(ptr, size);
        errno = EEXIST;
    }
    snprintf(err, err_max, "the address range 0x%lx..0x%lx, at which all "
             "processes map the fabric, is not free in this process: %s",
             EMU_BASE, EMU_BASE + size, strerror(errno));
    return -errno;
}

static void emu_fabric_init_port(emu_fabric_t *f, unsigned host, unsigned link)
{
    emu_port_t *port = &f->ports[host * f->cfg.links + link];

    port->index      = host * f->cfg.links + link;
    port->host       = host;
    port->link       = link;
    port->hca        = f->cfg.shared_hca ? host * f->cfg.links : port->index;
    port->link_state = EMU_LINK_UP;
    port->speed      = f->cfg.speeds[link];
    port->mtu        = f->cfg.mtu[host][link];
    emu_lock_init(&port->hca_lock);
    emu_lock_init(&port->link_lock);
}

static void emu_fabric_init_tables(emu_fabric_t *f, const emu_layout_t *l)
{
    f->procs          = (void*)(EMU_BASE + l->procs);
    f->ctxs           = (void*)(EMU_BASE + l->ctxs);
    f->chans          = (void*)(EMU_BASE + l->chans);
    f->pds            = (void*)(EMU_BASE + l->pds);
    f->mrs            = (void*)(EMU_BASE + l->mrs);
    f->cqs            = (void*)(EMU_BASE + l->cqs);
    f->srqs           = (void*)(EMU_BASE + l->srqs);
    f->qps            = (void*)(EMU_BASE + l->qps);
    f->ports          = (void*)(EMU_BASE + l->ports);
    f->lates          = (void*)(EMU_BASE + l->lates);
    f->late_data      = (void*)(EMU_BASE + l->late_data);
    f->pipe           = (void*)(EMU_BASE + l->pipe);
    f->flights        = (void*)(EMU_BASE + l->flights);
    f->flight_data    = (void*)(EMU_BASE + l->flight_data);
    f->trace          = (void*)(EMU_BASE + l->trace);
    f->heap_pages     = (void*)(EMU_BASE + l->heap_pages);
    f->heap           = (void*)(EMU_BASE + l->heap);
    f->heap_num_pages = f->cfg.heap_size / EMU_PAGE;

    f->trace->num_entries = f->cfg.trace_entries;
}

static void emu_fabric_init(emu_fabric_t *f, const emu_fabric_config_t *cfg,
                            const emu_layout_t *l)
{
    unsigned host, link;

    f->cfg           = *cfg;
    f->version       = EMU_VERSION;
    f->layout        = emu_layout_hash();
    f->total_size    = l->total;
    f->start_ns      = emu_now_ns();
    f->uid           = f->start_ns ^ ((uint64_t)getpid() << 40);
    f->fault_next_id = 1;
    emu_lock_init(&f->table_lock);
    emu_lock_init(&f->heap_lock);
    emu_lock_init(&f->fault_lock);
    emu_lock_init(&f->quirk_lock);
    emu_lock_init(&f->late_lock);
    emu_fabric_init_tables(f, l);
    emu_lock_init_urgent(&f->pipe->lock);
    emu_lock_init(&f->pipe->keeper.life);
    for (host = 0; host < cfg->hosts; host++) {
        for (link = 0; link < cfg->links; link++) {
            emu_fabric_init_port(f, host, link);
        }
    }

    f->magic = EMU_MAGIC;
    __atomic_store_n(&f->ready, 1, __ATOMIC_RELEASE);
}

int emu_fabric_create(const emu_fabric_config_t *cfg, char *err, size_t err_max)
{
    char path[128], dir[128];
    emu_layout_t layout;
    int fd, ret;

    ret = emu_fabric_config_check(cfg, err, err_max);
    if (ret != 0) {
        return ret;
    }

    snprintf(path, sizeof(path), EMU_FILE_FMT, cfg->name);
    snprintf(dir, sizeof(dir), EMU_DIR_FMT, cfg->name);
    emu_layout_make(cfg, &layout);

    fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        ret = -errno;
        snprintf(err, err_max, (ret == -EEXIST) ?
                 "fabric '%s' exists already" : "cannot create fabric '%s': %s",
                 cfg->name, strerror(-ret));
        return ret;
    }

    if ((ftruncate(fd, layout.total) != 0) ||
        ((mkdir(dir, 0700) != 0) && (errno != EEXIST))) {
        ret = -errno;
        snprintf(err, err_max, "cannot create fabric '%s': %s", cfg->name,
                 strerror(errno));
        goto err_unlink;
    }

    ret = emu_fabric_map(fd, layout.total, err, err_max);
    if (ret != 0) {
        goto err_rmdir;
    }

    emu_fabric_init(emu_fabric, cfg, &layout);
    emu_fabric_close();
    return 0;

err_rmdir:
    rmdir(dir);
err_unlink:
    unlink(path);
    close(fd);
    return ret;
}

/* The file's head is read before anything of it is mapped or believed */
static int emu_fabric_check_file(int fd, const char *name, uint64_t *size_p,
                                 char *err, size_t err_max)
{
    struct stat st;
    struct {
        uint64_t magic;
        uint32_t version;
        uint32_t ready;
        uint64_t layout;
        uint64_t uid;
        uint64_t total_size;
    } head;

    if ((pread(fd, &head, sizeof(head), 0) != sizeof(head)) ||
        (head.magic != EMU_MAGIC) || !head.ready) {
        snprintf(err, err_max, "'" EMU_FILE_FMT "' is not a fabric that came "
                 "up completely", name);
    } else if ((head.version != EMU_VERSION) ||
               (head.layout != emu_layout_hash())) {
        snprintf(err, err_max, "fabric '%s' was made by another version of "
                 "mlx5emu", name);
    } else if ((fstat(fd, &st) != 0) ||
               ((uint64_t)st.st_size != head.total_size)) {
        snprintf(err, err_max, "the file of fabric '%s' is truncated", name);
    } else {
        *size_p = head.total_size;
        return 0;
    }

    return -EINVAL;
}

int emu_fabric_open(const char *name, char *err, size_t err_max)
{
    char path[128];
    uint64_t size;
    int fd, ret;

    if (emu_fabric != NULL) {
        if (strcmp(emu_fabric->cfg.name, name) == 0) {
            return 0;
        }
        snprintf(err, err_max, "fabric '%s' is open in this process",
                 emu_fabric->cfg.name);
        return -EBUSY;
    }

    if (!emu_fabric_name_valid(name)) {
        snprintf(err, err_max, "invalid fabric name '%s'", name);
        return -EINVAL;
    }

    snprintf(path, sizeof(path), EMU_FILE_FMT, name);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        ret = -errno;
        if (ret == -ENOENT) {
            snprintf(err, err_max, "there is no fabric '%s'", name);
        } else {
            snprintf(err, err_max, "cannot open fabric '%s': %s", name,
                     strerror(errno));
        }
        return ret;
    }

    ret = emu_fabric_check_file(fd, name, &size, err, err_max);
    if (ret == 0) {
        ret = emu_fabric_map(fd, size, err, err_max);
    }
    if (ret != 0) {
        close(fd);
    }
    return ret;
}

void emu_fabric_close(void)
{
    if (emu_fabric != NULL) {
        munmap(emu_fabric, emu_fabric->total_size);
        close(emu_fabric_fd);
        emu_fabric    = NULL;
        emu_fabric_fd = -1;
    }
}

static void emu_remove_tree(const char *path)
{
    char sub[512];
    struct dirent *entry;
    DIR *dir;

    if ((unlink(path) == 0) || (rmdir(path) == 0)) {
        return;
    }

    dir = opendir(path);
    if (dir == NULL) {
        return;
    }

    while ((entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") &&
            (snprintf(sub, sizeof(sub), "%s/%s", path, entry->d_name) <
             (int)sizeof(sub))) {
            emu_remove_tree(sub);
        }
    }
    closedir(dir);
    rmdir(path);
}

int emu_fabric_destroy(const char *name, char *err, size_t err_max)
{
    char path[128], dir[128];
    struct stat st;

    if (!emu_fabric_name_valid(name)) {
        snprintf(err, err_max, "invalid fabric name '%s'", name);
        return -EINVAL;
    }

    snprintf(path, sizeof(path), EMU_FILE_FMT, name);
    snprintf(dir, sizeof(dir), EMU_DIR_FMT, name);
    if ((stat(path, &st) != 0) && (stat(dir, &st) != 0)) {
        snprintf(err, err_max, "there is no fabric '%s'", name);
        return -ENOENT;
    }

    emu_remove_tree(dir);
    if ((unlink(path) != 0) && (errno != ENOENT)) {
        snprintf(err, err_max, "cannot remove %s: %s", path, strerror(errno));
        return -errno;
    }

    return 0;
}
