/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED. See LICENSE for terms (BSD-3-Clause). */

/*
 * Decoding of the machine instruction which stored to a doorbell register.
 * Called by the fault handler (emu_uar.c) only; it runs in signal context, so
 * it allocates nothing and takes no lock.
 */

#ifndef EMU_INSN_H_
#define EMU_INSN_H_

#include <stdint.h>
#include <ucontext.h>


/* Why a store is not known */
enum {
    EMU_INSN_NO_STORE = -1, /* The instruction is none that the decoder knows */
    EMU_INSN_NO_VALUE = -2  /* It stores a register which the signal frame lacks */
};


/**
 * What an instruction wrote, and where execution continues.
 */
typedef struct emu_insn_store {
    uint64_t value;   /* Bytes stored, the first 8 of them, in memory order */
    unsigned size;    /* Bytes stored by the instruction */
    unsigned length;  /* Bytes of the instruction itself */
    unsigned is_copy; /* A string instruction, which also moves RSI and RDI */
    unsigned repeats; /* By how much RCX becomes less */
} emu_insn_store_t;


/**
 * Decode the instruction at which @a uc was interrupted as a store.
 *
 * @param [in]  uc       Interrupted context.
 * @param [out] store_p  What was stored; set on success only.
 *
 * @return 0 on success, or EMU_INSN_NO_STORE or EMU_INSN_NO_VALUE.
 */
int emu_insn_decode_store(const ucontext_t *uc, emu_insn_store_t *store_p);


/**
 * Decode the instruction at which @a uc continues, after @ref emu_insn_skip, if that is
 * a store.
 *
 * @param [in]  uc      Interrupted context.
 * @param [in]  store   The store before it, which was skipped.
 * @param [out] addr_p  Address it stores to.
 * @param [out] next_p  What it stores.
 *
 * @return 0 on success, -1 if it is not a store, or an unknown one. Outputs are set on
 *         success only.
 */
int emu_insn_decode_next(const ucontext_t *uc, const emu_insn_store_t *store,
                         uintptr_t *addr_p, emu_insn_store_t *next_p);


/**
 * Make @a uc continue after the store, as if it had been executed.
 */
void emu_insn_skip(ucontext_t *uc, const emu_insn_store_t *store);

#endif
