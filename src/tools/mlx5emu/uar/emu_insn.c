/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED. See LICENSE for terms (BSD-3-Clause). */

/*
 * Decoding of the machine instruction that stored to a doorbell register. See
 * emu_insn.h.
 *
 * A program rings from a handful of code addresses, so what an address decodes
 * to is remembered per thread. The instruction's bytes are compared on every
 * use: code at one address may change when libraries are unloaded.
 */

#include "emu_insn.h"

#include <Zydis/Zydis.h>

#include <cpuid.h>
#include <signal.h>
#include <string.h>

#define EMU_INSN_CACHE_SIZE  64
#define EMU_INSN_PAGE        4096
#define EMU_INSN_NO_REG      0xff /* No base, or no index */
#define EMU_INSN_NUM_XMM     16   /* In the part which FXSAVE knows */
#define EMU_INSN_NUM_VEC     32
#define EMU_INSN_ZMM_SIZE    64
#define EMU_INSN_FLAG_DF     (1 << 10) /* String instructions go backwards */
#define EMU_INSN_COPY_MAX    64   /* Bytes of a request that is copied (BlueFlame) */

/* Layout of the floating point part of a signal frame: what FXSAVE writes, with
 * some words of the kernel in it, then what XSAVE adds */
#define EMU_INSN_FP_SW_OFFSET     464
#define EMU_INSN_FP_MAGIC         0x46505853u
#define EMU_INSN_FP_XSTATE_BV     512
#define EMU_INSN_FP_HI16_ZMM      7

/* In uc_flags: the kernel has stored the registers by XSAVE (UC_FP_XSTATE) */
#define EMU_INSN_UC_FP_XSTATE     1

#define EMU_INSN_TLS __thread __attribute__((tls_model("initial-exec")))


typedef enum emu_insn_src {
    EMU_INSN_SRC_NONE,  /* Not a store that we know */
    EMU_INSN_SRC_GPR,   /* General purpose register, index into gregs */
    EMU_INSN_SRC_IMM,   /* Immediate operand */
    EMU_INSN_SRC_VEC,   /* Low half of an SSE/AVX register */
    EMU_INSN_SRC_MEM    /* At RSI: string instructions, which copy to RDI */
} emu_insn_src_t;


typedef struct emu_insn_entry {
    uintptr_t      ip;
    uint8_t        code[ZYDIS_MAX_INSTRUCTION_LENGTH];
    uint8_t        length;
    uint8_t        size;
    uint8_t        swap;   /* MOVBE: bytes are reversed on their way */
    uint8_t        shift;  /* Second byte of a register: AH and the like */
    uint8_t        repeats; /* A string instruction: as often as RCX says */
    emu_insn_src_t src;
    uint8_t        has_addr; /* Address can be computed from what follows */
    uint8_t        mem_base;
    uint8_t        mem_index;
    uint8_t        mem_scale;
    int64_t        mem_disp;
    unsigned       index;  /* Register */
    uint64_t       imm;
} emu_insn_entry_t;


static EMU_INSN_TLS emu_insn_entry_t emu_insn_cache[EMU_INSN_CACHE_SIZE];


/* Encoding order of the general purpose registers -> order of gregs */
static const uint8_t emu_insn_gregs[] = {
    REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
    REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15
};


static int emu_insn_is_move(ZydisMnemonic mnemonic)
{
    switch (mnemonic) {
    case ZYDIS_MNEMONIC_MOV:
    case ZYDIS_MNEMONIC_MOVBE:
    case ZYDIS_MNEMONIC_MOVNTI:
    case ZYDIS_MNEMONIC_MOVQ:
    case ZYDIS_MNEMONIC_MOVLPS:
    case ZYDIS_MNEMONIC_MOVLPD:
    case ZYDIS_MNEMONIC_MOVSD:
    case ZYDIS_MNEMONIC_MOVUPS:
    case ZYDIS_MNEMONIC_MOVUPD:
    case ZYDIS_MNEMONIC_MOVAPS:
    case ZYDIS_MNEMONIC_MOVAPD:
    case ZYDIS_MNEMONIC_MOVDQA:
    case ZYDIS_MNEMONIC_MOVDQU:
    case ZYDIS_MNEMONIC_MOVNTDQ:
    case ZYDIS_MNEMONIC_MOVNTPS:
    case ZYDIS_MNEMONIC_MOVNTPD:
    case ZYDIS_MNEMONIC_VMOVQ:
    case ZYDIS_MNEMONIC_VMOVLPS:
    case ZYDIS_MNEMONIC_VMOVLPD:
    case ZYDIS_MNEMONIC_VMOVSD:
    case ZYDIS_MNEMONIC_VMOVUPS:
    case ZYDIS_MNEMONIC_VMOVUPD:
    case ZYDIS_MNEMONIC_VMOVAPS:
    case ZYDIS_MNEMONIC_VMOVAPD:
    case ZYDIS_MNEMONIC_VMOVDQA:
    case ZYDIS_MNEMONIC_VMOVDQU:
    case ZYDIS_MNEMONIC_VMOVDQU8:
    case ZYDIS_MNEMONIC_VMOVDQU16:
    case ZYDIS_MNEMONIC_VMOVDQU32:
    case ZYDIS_MNEMONIC_VMOVDQU64:
    case ZYDIS_MNEMONIC_VMOVDQA32:
    case ZYDIS_MNEMONIC_VMOVDQA64:
    case ZYDIS_MNEMONIC_VMOVNTDQ:
    case ZYDIS_MNEMONIC_VMOVNTPS:
    case ZYDIS_MNEMONIC_VMOVNTPD:
        return 1;
    default:
        return 0;
    }
}

/* Copies of 64 bytes are REP MOVSQ where a compiler expects them to be rare */
static int emu_insn_set_string(emu_insn_entry_t *entry, const ZydisDecodedInstruction *insn)
{
    switch (insn->mnemonic) {
    case ZYDIS_MNEMONIC_MOVSB:
    case ZYDIS_MNEMONIC_MOVSW:
    case ZYDIS_MNEMONIC_MOVSD:
    case ZYDIS_MNEMONIC_MOVSQ:
        break;
    default:
        return -1;
    }

    if ((insn->operand_count_visible != 0) || (insn->address_width != 64)) {
        return -1;
    }

    entry->src     = EMU_INSN_SRC_MEM;
    entry->size    = insn->operand_width / 8;
    entry->repeats = !!(insn->attributes & ZYDIS_ATTRIB_HAS_REP);
    return 0;
}

static int emu_insn_set_register(emu_insn_entry_t *entry, ZydisRegister reg)
{
    ZydisRegister full = ZydisRegisterGetLargestEnclosing(
                                 ZYDIS_MACHINE_MODE_LONG_64, reg);
    ZyanI8 id          = ZydisRegisterGetId(full);

    if (id < 0) {
        return -1;
    }

    switch (ZydisRegisterGetClass(reg)) {
    case ZYDIS_REGCLASS_GPR8:
    case ZYDIS_REGCLASS_GPR16:
    case ZYDIS_REGCLASS_GPR32:
    case ZYDIS_REGCLASS_GPR64:
        if (id >= (int)sizeof(emu_insn_gregs)) {
            return -1;
        }
        entry->src   = EMU_INSN_SRC_GPR;
        entry->index = emu_insn_gregs[id];
        entry->shift = ((reg >= ZYDIS_REGISTER_AH) &&
                        (reg <= ZYDIS_REGISTER_BH)) ? 8 : 0;
        return 0;
    case ZYDIS_REGCLASS_XMM:
    case ZYDIS_REGCLASS_YMM:
    case ZYDIS_REGCLASS_ZMM:
        if (id >= EMU_INSN_NUM_VEC) {
            return -1;
        }
        entry->src   = EMU_INSN_SRC_VEC;
        entry->index = id;
        return 0;
    default:
        return -1;
    }
}

/* Set a register of an address: a whole one, or none */
static int emu_insn_set_mem_register(ZydisRegister reg, uint8_t *greg_p)
{
    if (reg == ZYDIS_REGISTER_NONE) {
        *greg_p = EMU_INSN_NO_REG;
        return 0;
    }

    if (ZydisRegisterGetClass(reg) != ZYDIS_REGCLASS_GPR64) {
        return -1;
    }

    *greg_p = emu_insn_gregs[ZydisRegisterGetId(reg)];
    return 0;
}

static void emu_insn_set_address(emu_insn_entry_t *entry,
                                 const ZydisDecodedInstruction *insn,
                                 const ZydisDecodedOperand *dst)
{
    if ((insn->address_width != 64) ||
        (dst->mem.segment == ZYDIS_REGISTER_FS) ||
        (dst->mem.segment == ZYDIS_REGISTER_GS) ||
        (emu_insn_set_mem_register(dst->mem.base, &entry->mem_base) != 0) ||
        (emu_insn_set_mem_register(dst->mem.index, &entry->mem_index) != 0)) {
        return;
    }

    entry->mem_scale = dst->mem.scale;
    entry->mem_disp  = dst->mem.disp.value;
    entry->has_addr  = 1;
}

/* Decode the instruction at ip, which is mapped: it was just being executed. The next
 * page may not be mapped, so it is read only if the instruction extends into it. */
static ZyanStatus emu_insn_decode_raw(uintptr_t ip,
                                      ZydisDecodedInstruction *insn,
                                      ZydisDecodedOperand *operands)
{
    const uint8_t *code = (const uint8_t*)ip;
    size_t max          = 4096 - (ip & 4095);
    ZydisDecoder decoder;
    ZyanStatus status;

    if (max > ZYDIS_MAX_INSTRUCTION_LENGTH) {
        max = ZYDIS_MAX_INSTRUCTION_LENGTH;
    }

    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64,
                     ZYDIS_STACK_WIDTH_64);
    status = ZydisDecoderDecodeFull(&decoder, code, max, insn, operands);
    if ((status == ZYDIS_STATUS_NO_MORE_DATA) &&
        (max < ZYDIS_MAX_INSTRUCTION_LENGTH)) {
        status = ZydisDecoderDecodeFull(&decoder, code,
                                        ZYDIS_MAX_INSTRUCTION_LENGTH, insn,
                                        operands);
    }

    return status;
}

static int emu_insn_decode(uintptr_t ip, emu_insn_entry_t *entry)
{
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    const ZydisDecodedOperand *src;
    ZydisDecodedInstruction insn;
    ZyanStatus status;

    memset(entry, 0, sizeof(*entry));
    status = emu_insn_decode_raw(ip, &insn, operands);
    if (!ZYAN_SUCCESS(status)) {
        return -1;
    }

    /* What is no store is remembered, too: it ends each copy */
    entry->ip     = ip;
    entry->length = insn.length;
    memcpy(entry->code, (const void*)ip, insn.length);
    if (emu_insn_set_string(entry, &insn) == 0) {
        return 0;
    }

    if ((insn.operand_count_visible < 2) ||
        (operands[0].type != ZYDIS_OPERAND_TYPE_MEMORY) ||
        (operands[0].size == 0) || !emu_insn_is_move(insn.mnemonic)) {
        return -1;
    }

    entry->size = operands[0].size / 8;
    entry->swap = (insn.mnemonic == ZYDIS_MNEMONIC_MOVBE);
    emu_insn_set_address(entry, &insn, &operands[0]);

    /* AVX-512 has a mask between destination and source; K0 masks nothing */
    src = &operands[1];
    if ((insn.operand_count_visible > 2) &&
        (src->type == ZYDIS_OPERAND_TYPE_REGISTER) &&
        (src->reg.value == ZYDIS_REGISTER_K0)) {
        src = &operands[2];
    }

    switch (src->type) {
    case ZYDIS_OPERAND_TYPE_IMMEDIATE:
        entry->src = EMU_INSN_SRC_IMM;
        entry->imm = src->imm.value.u;
        break;
    case ZYDIS_OPERAND_TYPE_REGISTER:
        if (emu_insn_set_register(entry, src->reg.value) != 0) {
            return -1;
        }
        break;
    default:
        return -1;
    }

    return 0;
}

/* Where registers 16 to 31 are in a signal frame, and their size; 0 if there are
 * none. Asked once: the instruction is trapped by hypervisors, at a cost of tens
 * of microseconds. Threads which ask at the same time get the same answer. */
static uint32_t emu_insn_hi16_zmm(uint32_t *end_p)
{
    static uint64_t cache; /* offset << 32 | end; 1: not there */
    uint64_t value = __atomic_load_n(&cache, __ATOMIC_RELAXED);
    unsigned eax, ebx, ecx, edx;

    if (value == 0) {
        value = 1;
        if (__get_cpuid_count(0xd, EMU_INSN_FP_HI16_ZMM, &eax, &ebx, &ecx,
                              &edx) && (eax != 0)) {
            value = ((uint64_t)ebx << 32) | (ebx + eax);
        }
        __atomic_store_n(&cache, value, __ATOMIC_RELAXED);
    }

    *end_p = (uint32_t)value;
    return value >> 32;
}

/* Asked once, see emu_insn_hi16_zmm() */
static int emu_insn_has_xsave(void)
{
    static int cache; /* 1: yes, -1: no */
    int value = __atomic_load_n(&cache, __ATOMIC_RELAXED);
    unsigned eax, ebx, ecx, edx;

    if (value == 0) {
        value = __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_OSXSAVE) ?
                1 : -1;
        __atomic_store_n(&cache, value, __ATOMIC_RELAXED);
    }

    return value > 0;
}

/* Whether the signal frame has vector registers. The kernel sets a flag, unless it does
 * not use XSAVE: then the registers are always there. A frame made by valgrind has room
 * for them, but does not contain them. */
static int emu_insn_has_vec(const ucontext_t *uc)
{
    return (uc->uc_mcontext.fpregs != NULL) &&
           ((uc->uc_flags & EMU_INSN_UC_FP_XSTATE) || !emu_insn_has_xsave());
}

/* First bytes of a vector register, from the signal frame */
static int emu_insn_read_vec(const ucontext_t *uc, unsigned index,
                             uint64_t *value_p)
{
    const uint8_t *fp = (const uint8_t*)uc->uc_mcontext.fpregs;
    uint32_t magic, extended_size, offset, end;
    uint64_t xstate_bv;

    if (!emu_insn_has_vec(uc)) {
        return EMU_INSN_NO_VALUE;
    }

    if (index < EMU_INSN_NUM_XMM) {
        memcpy(value_p, &uc->uc_mcontext.fpregs->_xmm[index], sizeof(*value_p));
        return 0;
    }

    memcpy(&magic, fp + EMU_INSN_FP_SW_OFFSET, sizeof(magic));
    memcpy(&extended_size, fp + EMU_INSN_FP_SW_OFFSET + sizeof(magic),
           sizeof(extended_size));
    offset = emu_insn_hi16_zmm(&end);
    if ((magic != EMU_INSN_FP_MAGIC) || (offset == 0) ||
        (end > extended_size)) {
        return EMU_INSN_NO_VALUE;
    }

    memcpy(&xstate_bv, fp + EMU_INSN_FP_XSTATE_BV, sizeof(xstate_bv));
    if (!(xstate_bv & (1ul << EMU_INSN_FP_HI16_ZMM))) {
        *value_p = 0; /* Never written: registers are in their first state */
        return 0;
    }

    memcpy(value_p,
           fp + offset + (index - EMU_INSN_NUM_XMM) * EMU_INSN_ZMM_SIZE,
           sizeof(*value_p));
    return 0;
}

static const emu_insn_entry_t *emu_insn_lookup(uintptr_t ip)
{
    emu_insn_entry_t *entry = &emu_insn_cache[(ip ^ (ip >> 6) ^ (ip >> 12)) %
                                              EMU_INSN_CACHE_SIZE];

    if ((entry->ip == ip) &&
        (memcmp(entry->code, (const void*)ip, entry->length) == 0)) {
        return (entry->src != EMU_INSN_SRC_NONE) ? entry : NULL;
    }

    return (emu_insn_decode(ip, entry) == 0) ? entry : NULL;
}

/* What is left of a string instruction, which the CPU has executed up to the fault */
static int
emu_insn_decode_string(const ucontext_t *uc, const emu_insn_entry_t *entry,
                       emu_insn_store_t *store_p)
{
    const greg_t *gregs = uc->uc_mcontext.gregs;
    const uint64_t num  = entry->repeats ? gregs[REG_RCX] : 1;
    size_t length;

    if ((gregs[REG_EFL] & EMU_INSN_FLAG_DF) || (num == 0) ||
        (num > (EMU_INSN_COPY_MAX / entry->size))) {
        return EMU_INSN_NO_STORE;
    }

    store_p->size    = num * entry->size;
    store_p->length  = entry->length;
    store_p->is_copy = 1;
    store_p->repeats = entry->repeats ? num : 0;
    store_p->value   = 0;
    length           = (store_p->size < sizeof(store_p->value)) ? store_p->size :
                                                                  sizeof(store_p->value);
    memcpy(&store_p->value, (const void*)gregs[REG_RSI], length);
    return 0;
}

int emu_insn_decode_store(const ucontext_t *uc, emu_insn_store_t *store_p)
{
    const uintptr_t ip = uc->uc_mcontext.gregs[REG_RIP];
    const emu_insn_entry_t *entry;
    uint64_t value;
    int ret;

    entry = emu_insn_lookup(ip);
    if (entry == NULL) {
        return EMU_INSN_NO_STORE;
    }

    switch (entry->src) {
    case EMU_INSN_SRC_GPR:
        value = (uint64_t)uc->uc_mcontext.gregs[entry->index] >> entry->shift;
        break;
    case EMU_INSN_SRC_IMM:
        value = entry->imm;
        break;
    case EMU_INSN_SRC_VEC:
        ret = emu_insn_read_vec(uc, entry->index, &value);
        if (ret != 0) {
            return ret;
        }
        break;
    case EMU_INSN_SRC_MEM:
        return emu_insn_decode_string(uc, entry, store_p);
    default:
        return EMU_INSN_NO_STORE;
    }

    if (entry->swap) {
        value = __builtin_bswap64(value) >> (64 - entry->size * 8);
    } else if (entry->size < sizeof(value)) {
        value &= (1ul << (entry->size * 8)) - 1;
    }

    store_p->value   = value;
    store_p->size    = entry->size;
    store_p->length  = entry->length;
    store_p->is_copy = 0;
    return 0;
}

int emu_insn_decode_next(const ucontext_t *uc, const emu_insn_store_t *store,
                         uintptr_t *addr_p, emu_insn_store_t *next_p)
{
    const greg_t *gregs = uc->uc_mcontext.gregs;
    const uintptr_t ip  = gregs[REG_RIP];
    const emu_insn_entry_t *entry;
    uintptr_t addr;

    /* Read no code that may not be there */
    if ((ip - store->length) / EMU_INSN_PAGE !=
        (ip + ZYDIS_MAX_INSTRUCTION_LENGTH) / EMU_INSN_PAGE) {
        return -1;
    }

    entry = emu_insn_lookup(ip);
    if ((entry == NULL) || !entry->has_addr) {
        return -1;
    }

    addr = entry->mem_disp;
    if (entry->mem_base != EMU_INSN_NO_REG) {
        addr += gregs[entry->mem_base];
    }
    if (entry->mem_index != EMU_INSN_NO_REG) {
        addr += (uintptr_t)gregs[entry->mem_index] * entry->mem_scale;
    }

    if (emu_insn_decode_store(uc, next_p) != 0) {
        return -1;
    }

    *addr_p = addr;
    return 0;
}

void emu_insn_skip(ucontext_t *uc, const emu_insn_store_t *store)
{
    /* The CPU's registers wrap */
    unsigned long long *gregs = (unsigned long long*)uc->uc_mcontext.gregs;

    gregs[REG_RIP] += store->length;
    if (store->is_copy) {
        gregs[REG_RSI] += store->size;
        gregs[REG_RDI] += store->size;
        gregs[REG_RCX] -= store->repeats;
    }
}
