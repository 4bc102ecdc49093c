/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED. See LICENSE for terms (BSD-3-Clause). */

/*
 * UAR pages and their trap, see emu_uar.h.
 *
 * All pages come from one region which is reserved once and never unmapped, so
 * that the fault handler recognizes a doorbell by two comparisons.
 */

#include "emu_uar.h"
#include "emu_insn.h"
#include "emu_signal.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>


#define EMU_UAR_TLS __thread __attribute__((tls_model("initial-exec")))


typedef struct emu_uar_page {
    emu_uar_store_func_t func;  /* NULL: page is free */
    void                 *arg;
} emu_uar_page_t;


/* A doorbell of which some bytes have been stored */
typedef struct emu_uar_word {
    uintptr_t            addr;
    uint8_t              bytes[sizeof(uint64_t)];
    uint8_t              map;   /* Of the bytes that were */
} emu_uar_word_t;


/* Protects allocation; the fault handler reads func and arg without it */
static pthread_mutex_t emu_uar_lock = PTHREAD_MUTEX_INITIALIZER;
static uintptr_t emu_uar_base;
static emu_uar_page_t emu_uar_pages[EMU_UAR_MAX_PAGES];

/* As a CPU combines writes: those of one thread */
static EMU_UAR_TLS emu_uar_word_t emu_uar_word;


/* A NIC would see this store, but the emulator cannot decode it. Print a line to stderr,
 * by functions that are safe in a signal handler, and call the program's own handler. */
static void emu_uar_complain(const ucontext_t *uc, int reason)
{
    static const char no_store[] =
            "mlx5emu: a doorbell was rung by an instruction which the emulator "
            "can't decode, at 0x";
    static const char no_value[] =
            "mlx5emu: a doorbell was rung by storing a vector register, which the "
            "signal frame does not have (valgrind's has none): the program must "
            "store 8 bytes, as UCX does with UCX_IB_MMIO_MODE=db; at 0x";
    const char *text = (reason == EMU_INSN_NO_VALUE) ? no_value : no_store;
    uintptr_t ip     = uc->uc_mcontext.gregs[REG_RIP];
    char line[sizeof(no_value) + 2 * sizeof(ip) + 1];
    size_t len       = strlen(text);
    ssize_t written __attribute__((unused));
    int shift;

    memcpy(line, text, len);
    for (shift = 60; shift >= 0; shift -= 4) {
        line[len++] = "0123456789abcdef"[(ip >> shift) & 0xf];
    }
    line[len++] = '\n';
    written     = write(STDERR_FILENO, line, len);
}

/* A part of a doorbell. Some copy a request byte by byte, in either direction
 * (memmove() of the address sanitizer does); what the CPU has combined reaches the
 * NIC at once. So the doorbell is rung when all of its bytes are there.
 * @return nonzero if they are: the store is the whole then. */
static int emu_uar_gather(uintptr_t *addr_p, emu_insn_store_t *store)
{
    const uintptr_t addr = *addr_p & ~(sizeof(store->value) - 1);
    const unsigned first = *addr_p - addr;
    emu_uar_word_t *word = &emu_uar_word;
    unsigned i;

    if (word->addr != addr) {
        word->addr = addr;
        word->map  = 0;
    }

    for (i = 0; (i < store->size) && (first + i < sizeof(word->bytes)); ++i) {
        word->bytes[first + i] = store->value >> (8 * i);
        word->map             |= 1u << (first + i);
    }

    if (word->map != UINT8_MAX) {
        return 0;
    }

    word->map   = 0;
    *addr_p     = addr;
    store->size = sizeof(store->value);
    memcpy(&store->value, word->bytes, sizeof(store->value));
    return 1;
}

/* Tell the page's owner what was stored */
static void emu_uar_store(uintptr_t addr, emu_insn_store_t store)
{
    const uintptr_t offset = addr - emu_uar_base;
    emu_uar_page_t *page   = &emu_uar_pages[offset / EMU_UAR_PAGE_SIZE];
    emu_uar_store_func_t func;

    if ((store.size < sizeof(store.value)) && !emu_uar_gather(&addr, &store)) {
        return;
    }

    func = __atomic_load_n(&page->func, __ATOMIC_ACQUIRE);
    if (func != NULL) {
        func(page->arg, addr % EMU_UAR_PAGE_SIZE, store.value, store.size);
    }
}

/* The other stores of a copy to a send queue's register (BlueFlame), as far as
 * they follow one another: libc copies 64 bytes by one to four stores, one of
 * which may be there twice; a compiler may begin anywhere in them. A NIC's memory
 * combines them to one write, and this saves their faults. Stores of a doorbell's
 * size are doorbells each, the copy's are longer; the one that holds the doorbell
 * rings, once. */
static void emu_uar_combine(ucontext_t *uc, uintptr_t addr,
                            const emu_insn_store_t *store)
{
    const unsigned offset  = addr % EMU_UAR_PAGE_SIZE;
    const uintptr_t reg    = addr - (offset % EMU_UAR_SQ_REG_SIZE);
    emu_insn_store_t first = *store; /* Where the doorbell is */
    int has_rung           = (addr == reg);
    emu_insn_store_t next;
    uintptr_t next_addr;

    if ((offset < EMU_UAR_OFFSET_SQ) || (store->size <= sizeof(store->value))) {
        return;
    }

    while ((emu_insn_decode_next(uc, store, &next_addr, &next) == 0) &&
           (next_addr >= reg) &&
           (next_addr + next.size <= reg + EMU_UAR_SQ_REG_SIZE) &&
           (next.size > sizeof(next.value)) &&
           ((next_addr != reg) || !has_rung || (next.value == first.value))) {
        if ((next_addr == reg) && !has_rung) {
            emu_uar_store(next_addr, next);
            first    = next;
            has_rung = 1;
        }
        emu_insn_skip(uc, &next);
    }
}

static int emu_uar_fault(siginfo_t *info, void *context)
{
    const uintptr_t addr = (uintptr_t)info->si_addr;
    const uintptr_t base = __atomic_load_n(&emu_uar_base, __ATOMIC_ACQUIRE);
    emu_insn_store_t store;
    int ret;

    if ((info->si_code <= 0) || (addr < base) ||
        (addr >= base + EMU_UAR_MAX_PAGES * EMU_UAR_PAGE_SIZE)) {
        return 0;
    }

    ret = emu_insn_decode_store(context, &store);
    if (ret != 0) {
        emu_uar_complain(context, ret);
        return 0;
    }

    emu_uar_store(addr, store);
    emu_insn_skip(context, &store);
    emu_uar_combine(context, addr, &store);
    return 1;
}

static int emu_uar_init(void)
{
    void *base;
    int ret;

    if (emu_uar_base != 0) {
        return 0;
    }

    base = mmap(NULL, EMU_UAR_MAX_PAGES * EMU_UAR_PAGE_SIZE, PROT_READ,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) {
        return errno;
    }

    ret = emu_signal_init(emu_uar_fault);
    if (ret != 0) {
        munmap(base, EMU_UAR_MAX_PAGES * EMU_UAR_PAGE_SIZE);
        return ret;
    }

    __atomic_store_n(&emu_uar_base, (uintptr_t)base, __ATOMIC_RELEASE);
    return 0;
}

int emu_uar_page_create(emu_uar_store_func_t func, void *arg, void **page_p)
{
    unsigned i;
    int ret;

    pthread_mutex_lock(&emu_uar_lock);
    ret = emu_uar_init();
    if (ret != 0) {
        goto out;
    }

    ret = ENOMEM;
    for (i = 0; i < EMU_UAR_MAX_PAGES; ++i) {
        if (emu_uar_pages[i].func == NULL) {
            emu_uar_pages[i].arg = arg;
            __atomic_store_n(&emu_uar_pages[i].func, func, __ATOMIC_RELEASE);
            *page_p = (void*)(emu_uar_base + i * EMU_UAR_PAGE_SIZE);
            ret     = 0;
            break;
        }
    }

out:
    pthread_mutex_unlock(&emu_uar_lock);
    return ret;
}

void emu_uar_page_destroy(void *page)
{
    unsigned i = ((uintptr_t)page - emu_uar_base) / EMU_UAR_PAGE_SIZE;

    pthread_mutex_lock(&emu_uar_lock);
    __atomic_store_n(&emu_uar_pages[i].func, NULL, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&emu_uar_lock);
}
