/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * See emu_touch.h. The copy is one instruction, which leaves in its registers how
 * far it has come; the handler of the fault continues after it. Nothing else in the
 * process has that address, so no other fault is taken for one of ours.
 */

#include "emu_touch.h"

#include <signal.h>
#include <stdint.h>
#include <ucontext.h>

#if !defined(__x86_64__)
#error "mlx5emu is for x86_64"
#endif

/* The copy, and what follows it */
extern const char emu_touch_insn[] __attribute__((visibility("hidden")));
extern const char emu_touch_next[] __attribute__((visibility("hidden")));

/* The arguments come in the registers in which the instruction wants them: where it
 * begins, and how many bytes are left. In assembly as a whole, since its labels must
 * be there once. */
size_t emu_touch_forward(void *dst, const void *src, size_t unused, size_t left)
        __attribute__((visibility("hidden")));
size_t emu_touch_backward(void *dst, const void *src, size_t unused, size_t left)
        __attribute__((visibility("hidden")));

__asm__(".text\n"
        ".globl emu_touch_forward, emu_touch_backward\n"
        ".globl emu_touch_insn, emu_touch_next\n"
        ".hidden emu_touch_forward, emu_touch_backward\n"
        ".hidden emu_touch_insn, emu_touch_next\n"
        ".type emu_touch_forward, @function\n"
        ".type emu_touch_backward, @function\n"
        "emu_touch_backward:\n"
        "    std\n"
        "emu_touch_forward:\n"
        "emu_touch_insn:\n"
        "    rep movsb\n"
        "emu_touch_next:\n"
        "    cld\n"
        "    mov %rcx, %rax\n"
        "    ret\n"
        ".size emu_touch_forward, . - emu_touch_forward\n"
        ".size emu_touch_backward, . - emu_touch_backward\n");

size_t emu_touch_copy(void *dst, const void *src, size_t length,
                      int *is_backward_p)
{
    *is_backward_p = ((uintptr_t)dst > (uintptr_t)src) &&
                     ((uintptr_t)dst - (uintptr_t)src < length);

    return *is_backward_p ?
           emu_touch_backward((uint8_t*)dst + length - 1,
                              (const uint8_t*)src + length - 1, 0, length) :
           emu_touch_forward(dst, src, 0, length);
}

int emu_touch_recover(void *context)
{
    ucontext_t *uc = context;

    if (uc->uc_mcontext.gregs[REG_RIP] != (greg_t)(uintptr_t)emu_touch_insn) {
        return 0;
    }

    uc->uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)emu_touch_next;
    return 1;
}
