/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Any bytes as the instruction that stored to a doorbell, and any registers.
 */
#include "fuzz.h"
#include "uar/emu_insn.h"

#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t *page;
    fuzz_input_t in          = { data, size };
    struct _libc_fpstate fp  = {};
    unsigned at_end          = fuzz_u64(&in, 1) & 1;
    unsigned length          = 1 + fuzz_u64(&in, 1) % 15;
    size_t page_size         = sysconf(_SC_PAGESIZE);
    emu_insn_store_t store   = {};
    ucontext_t uc            = {};
    uint8_t code[16];
    greg_t rip;
    unsigned i;

    if (page == NULL) {
        page = mmap(NULL, 2 * page_size, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        FUZZ_CHECK(page != MAP_FAILED);
        FUZZ_CHECK(mprotect(page + page_size, page_size, PROT_NONE) == 0);
    }

    /* Code may end at the end of its page, where the next page is not readable. A
     * complete instruction there must be decoded without reading further. */
    fuzz_take(&in, code, sizeof(code));
    memset(page, 0x90, page_size);
    rip = (greg_t)(page + (at_end ? page_size - 16 : 64));
    memcpy((void*)rip, code, sizeof(code));
    if (at_end) {
        /* the last bytes of the page: padded in front with NOPs */
        memset((void*)rip, 0x90, 16 - length);
        rip += 16 - length;
        memcpy((void*)rip, code, length);
    }

    for (i = 0; i < NGREG; ++i) {
        uc.uc_mcontext.gregs[i] = fuzz_u64(&in, 8);
    }
    /* The CPU reads what a string instruction copies before it stores */
    uc.uc_mcontext.gregs[REG_RSI]  = (greg_t)(page + (uc.uc_mcontext.gregs[REG_RSI] & 0x7ff));
    fuzz_take(&in, &fp._xmm, sizeof(fp._xmm));
    uc.uc_flags                    = fuzz_u64(&in, 1);
    uc.uc_mcontext.fpregs          = (at_end && (length == 15)) ? NULL : &fp;
    uc.uc_mcontext.gregs[REG_RIP]  = rip;

    /* An instruction that continues after its page faults before it stores, so the
     * decoder never gets one: skip these */
    if (at_end && (length < 15)) {
        uint8_t *copy = page + 256;

        memcpy(copy, code, 16);
        memset(copy + length, 0xcc, 15);
        uc.uc_mcontext.gregs[REG_RIP] = (greg_t)copy;
        if ((emu_insn_decode_store(&uc, &store) != 0) ||
            (store.length > length)) {
            return 0;
        }
        uc.uc_mcontext.gregs[REG_RIP] = rip;
    }

    if (emu_insn_decode_store(&uc, &store) != 0) {
        return 0;
    }

    FUZZ_CHECK((store.length >= 1) && (store.length <= 15));
    FUZZ_CHECK((store.size >= 1) && (store.size <= 64));
    FUZZ_CHECK((store.size >= 8) || ((store.value >> (8 * store.size)) == 0));
    emu_insn_skip(&uc, &store);
    FUZZ_CHECK(uc.uc_mcontext.gregs[REG_RIP] == rip + store.length);
    return 0;
}

void fuzz_seeds(void (*add)(const void *data, size_t size))
{
    static const uint8_t insns[][12] = {
        { 0x48, 0x89, 0x07 },                   /* mov %rax, (%rdi) */
        { 0x48, 0xc7, 0x07, 1, 2, 3, 4 },       /* movq $imm, (%rdi) */
        { 0x88, 0x27 },                         /* mov %ah, (%rdi) */
        { 0x48, 0x0f, 0xc3, 0x07 },             /* movnti %rax, (%rdi) */
        { 0x66, 0x0f, 0xd6, 0x07 },             /* movq %xmm0, (%rdi) */
        { 0x0f, 0x29, 0x07 },                   /* movaps %xmm0, (%rdi) */
        { 0x48, 0x0f, 0x38, 0xf1, 0x07 },       /* movbe %rax, (%rdi) */
        { 0xc5, 0xfe, 0x7f, 0x07 },             /* vmovdqu %ymm0, (%rdi) */
        { 0x62, 0xf1, 0xfe, 0x48, 0x7f, 0x07 }, /* vmovdqu64 %zmm0, (%rdi) */
        { 0x48, 0x87, 0x07 }                    /* xchg %rax, (%rdi) */
    };
    uint8_t data[2 + 16 + 23 * 8 + 256];
    unsigned i, at_end;

    for (i = 0; i < sizeof(insns) / sizeof(insns[0]); ++i) {
        for (at_end = 0; at_end < 2; ++at_end) {
            memset(data, 0x5a, sizeof(data));
            data[0] = at_end;
            data[1] = 6;
            memset(data + 2, 0x90, 16);
            memcpy(data + 2, insns[i], sizeof(insns[i]));
            add(data, sizeof(data));
        }
    }
}
