/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Decoding of the instructions that ring doorbells: each is executed on a page that
 * cannot be written, as on a real doorbell. Needs no fabric.
 */

#include <cpuid.h>
#include <common/test.h>

extern "C" {
#include "tools/mlx5emu/uar/emu_insn.h"
}

#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#define EMU_INSN_VALUE 0x1122334455667788ul


class test_emu_insn : public ucs::test {
protected:
    virtual void init()
    {
        struct sigaction act = {};

        ucs::test::init();
        m_page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                      0);
        ASSERT_NE(MAP_FAILED, m_page);

        act.sa_sigaction = handler;
        act.sa_flags     = SA_SIGINFO | SA_NODEFER;
        ASSERT_EQ(0, sigaction(SIGSEGV, &act, &m_saved));
        m_faults  = 0;
        m_refused = 0;
        m_no_vec  = false;
        memset(&m_store, 0, sizeof(m_store));
    }

    virtual void cleanup()
    {
        sigaction(SIGSEGV, &m_saved, NULL);
        munmap(m_page, 4096);
        ucs::test::cleanup();
    }

    static void handler(int, siginfo_t *, void *context)
    {
        ucontext_t *uc = reinterpret_cast<ucontext_t*>(context);

        ++m_faults;
        if (m_no_vec) {
            uc->uc_flags &= ~1ul;
        }

        m_ret = emu_insn_decode_store(uc, &m_store);
        if (m_ret == 0) {
            emu_insn_skip(uc, &m_store);
        } else {
            ++m_refused;
            siglongjmp(m_jump, 1);
        }
    }

    void expect_store(uint64_t value, unsigned size) const
    {
        EXPECT_EQ(1, m_faults);
        EXPECT_EQ(0, m_refused);
        EXPECT_EQ(size, m_store.size);
        EXPECT_EQ(value, m_store.value);
    }

    static sigjmp_buf            m_jump;
    static emu_insn_store_t      m_store;
    static volatile int          m_faults;
    static volatile int          m_refused;
    static volatile int          m_ret;
    static volatile bool         m_no_vec; /* As in a frame of valgrind */
    void                         *m_page;
    struct sigaction             m_saved;
};

sigjmp_buf       test_emu_insn::m_jump;
emu_insn_store_t test_emu_insn::m_store;
volatile int     test_emu_insn::m_faults;
volatile int     test_emu_insn::m_refused;
volatile int     test_emu_insn::m_ret;
volatile bool    test_emu_insn::m_no_vec;


UCS_TEST_F(test_emu_insn, mov_register)
{
    asm volatile("movq %0, (%1)" : : "r"(EMU_INSN_VALUE), "r"(m_page)
                 : "memory");
    expect_store(EMU_INSN_VALUE, 8);
}

UCS_TEST_F(test_emu_insn, mov_high_register)
{
    asm volatile("movq %0, %%r13\n\tmovq %%r13, 0x20(%1)"
                 : : "r"(EMU_INSN_VALUE), "r"(m_page) : "memory", "r13");
    expect_store(EMU_INSN_VALUE, 8);
}

UCS_TEST_F(test_emu_insn, mov_immediate)
{
    asm volatile("movq $-2, (%0)" : : "r"(m_page) : "memory");
    expect_store(-2ul, 8);
}

UCS_TEST_F(test_emu_insn, mov_32_bits)
{
    asm volatile("movl %0, (%1)" : : "r"(0x12345678), "r"(m_page) : "memory");
    expect_store(0x12345678, 4);
}

UCS_TEST_F(test_emu_insn, mov_16_bits)
{
    asm volatile("movw %w0, (%1)" : : "r"(0x12345678), "r"(m_page) : "memory");
    expect_store(0x5678, 2);
}

UCS_TEST_F(test_emu_insn, mov_8_bits)
{
    asm volatile("movb %%al, (%1)" : : "a"(0x12345678), "r"(m_page)
                 : "memory");
    expect_store(0x78, 1);
}

UCS_TEST_F(test_emu_insn, mov_second_byte)
{
    asm volatile("movb %%dh, (%1)" : : "d"(0x12345678), "b"(m_page)
                 : "memory");
    expect_store(0x56, 1);
}

UCS_TEST_F(test_emu_insn, mov_low_byte_of_rsi)
{
    asm volatile("movb %%sil, (%1)" : : "S"(0x12345678), "r"(m_page)
                 : "memory");
    expect_store(0x78, 1);
}

UCS_TEST_F(test_emu_insn, movnti)
{
    asm volatile("movnti %0, (%1)" : : "r"(EMU_INSN_VALUE), "r"(m_page)
                 : "memory");
    expect_store(EMU_INSN_VALUE, 8);
}

/* GCC's __builtin_cpu_supports() knows it since version 11 */
static bool has_movbe()
{
    unsigned eax, ebx, ecx, edx;

    return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_MOVBE);
}

UCS_TEST_SKIP_COND_F(test_emu_insn, movbe, !has_movbe())
{
    asm volatile("movbe %0, (%1)" : : "r"(EMU_INSN_VALUE), "r"(m_page)
                 : "memory");
    expect_store(__builtin_bswap64(EMU_INSN_VALUE), 8);
}

UCS_TEST_SKIP_COND_F(test_emu_insn, movbe_32, !has_movbe())
{
    asm volatile("movbe %0, (%1)" : : "r"(0x12345678), "r"(m_page)
                 : "memory");
    expect_store(0x78563412, 4);
}

UCS_TEST_F(test_emu_insn, sse)
{
    asm volatile("movq %0, %%xmm9\n\tmovups %%xmm9, (%1)"
                 : : "r"(EMU_INSN_VALUE), "r"(m_page) : "memory", "xmm9");
    expect_store(EMU_INSN_VALUE, 16);
}

UCS_TEST_SKIP_COND_F(test_emu_insn, avx, !__builtin_cpu_supports("avx"))
{
    asm volatile("vmovq %0, %%xmm5\n\tvmovdqu %%ymm5, (%1)"
                 : : "r"(EMU_INSN_VALUE), "r"(m_page) : "memory", "xmm5");
    expect_store(EMU_INSN_VALUE, 32);
}

UCS_TEST_SKIP_COND_F(test_emu_insn, avx512, !__builtin_cpu_supports("avx512f"))
{
    asm volatile("vmovq %0, %%xmm17\n\tvmovdqu64 %%zmm17, (%1)"
                 : : "r"(EMU_INSN_VALUE), "r"(m_page) : "memory");
    expect_store(EMU_INSN_VALUE, 64);
}

/* Zeros instead of the stored value would be an unknown queue pair */
/* The whole rest of it is one store, as the fault comes at its first byte */
UCS_TEST_F(test_emu_insn, string_instructions)
{
    uint64_t from[8] = {EMU_INSN_VALUE};
    void *rsi, *rdi;
    size_t rcx;

#define COPY(_insn, _count) \
    m_faults = 0; \
    rsi      = from; \
    rdi      = m_page; \
    rcx      = _count; \
    asm volatile(_insn : "+S"(rsi), "+D"(rdi), "+c"(rcx) : : "memory")

    COPY("rep movsq", 8);
    expect_store(EMU_INSN_VALUE, sizeof(from));
    EXPECT_EQ(0u, rcx);
    EXPECT_EQ(&from[8], rsi);
    EXPECT_EQ((char*)m_page + sizeof(from), rdi);

    COPY("rep movsb", 3);
    expect_store(EMU_INSN_VALUE & 0xffffff, 3);
    EXPECT_EQ(0u, rcx);
    EXPECT_EQ((char*)m_page + 3, rdi);

    COPY("movsl", 7);
    expect_store(EMU_INSN_VALUE & 0xffffffff, 4);
    EXPECT_EQ(7u, rcx);
    EXPECT_EQ((char*)from + 4, rsi);

    COPY("rep movsq", 0);
    EXPECT_EQ(0, m_faults);

    /* Backwards: nobody rings like that */
    if (sigsetjmp(m_jump, 1) == 0) {
        COPY("std\n\tmovsq\n\tcld", 1);
    }
    asm volatile("cld");
    EXPECT_EQ(1, m_refused);
#undef COPY
}

UCS_TEST_F(test_emu_insn, vector_register_is_not_in_the_frame)
{
    m_no_vec = true;
    if (sigsetjmp(m_jump, 1) == 0) {
        asm volatile("movq %0, %%xmm9\n\tmovups %%xmm9, (%1)"
                     : : "r"(EMU_INSN_VALUE), "r"(m_page) : "memory", "xmm9");
    }
    EXPECT_EQ(1, m_refused);
    EXPECT_EQ(EMU_INSN_NO_VALUE, m_ret);

    asm volatile("movq %0, (%1)" : : "r"(EMU_INSN_VALUE), "r"(m_page)
                 : "memory");
    EXPECT_EQ(0, m_ret);
    EXPECT_EQ(EMU_INSN_VALUE, m_store.value);
}

UCS_TEST_F(test_emu_insn, same_address_again)
{
    uint64_t value;

    for (value = 1; value < 100; ++value) {
        asm volatile("movq %0, (%1)" : : "r"(value), "r"(m_page) : "memory");
        ASSERT_EQ(value, m_store.value);
    }
    EXPECT_EQ(99, m_faults);
}

/* An address may contain another instruction later: the cached result of the first must
 * not be used for the second */
UCS_TEST_F(test_emu_insn, code_changes)
{
    static const uint8_t rsi[] = {0x48, 0x89, 0x37, 0xc3}; /* mov %rsi,(%rdi) */
    static const uint8_t rdx[] = {0x48, 0x89, 0x17, 0xc3}; /* mov %rdx,(%rdi) */
    typedef void (*func_t)(void*, uint64_t, uint64_t);
    void *code;

    code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(MAP_FAILED, code);

    memcpy(code, rsi, sizeof(rsi));
    reinterpret_cast<func_t>(code)(m_page, 1, 2);
    EXPECT_EQ(1ul, m_store.value);

    memcpy(code, rdx, sizeof(rdx));
    reinterpret_cast<func_t>(code)(m_page, 1, 2);
    EXPECT_EQ(2ul, m_store.value);
    munmap(code, 4096);
}

/* The decoder must not read after the instruction, into an unmapped page */
UCS_TEST_F(test_emu_insn, end_of_mapping)
{
    static const uint8_t code[] = {0x48, 0x89, 0x37, 0xc3};
    typedef void (*func_t)(void*, uint64_t);
    uint8_t *page, *start;

    page = reinterpret_cast<uint8_t*>(mmap(NULL, 8192,
                                           PROT_READ | PROT_WRITE | PROT_EXEC,
                                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(MAP_FAILED, reinterpret_cast<void*>(page));
    ASSERT_EQ(0, munmap(page + 4096, 4096));

    start = page + 4096 - sizeof(code);
    memcpy(start, code, sizeof(code));
    reinterpret_cast<func_t>(start)(m_page, 5);
    expect_store(5, 8);
    munmap(page, 4096);
}

UCS_TEST_F(test_emu_insn, not_a_move)
{
    if (sigsetjmp(m_jump, 1) == 0) {
        asm volatile("addq %0, (%1)" : : "r"(1ul), "r"(m_page) : "memory");
    }
    EXPECT_EQ(1, m_refused);

    if (sigsetjmp(m_jump, 1) == 0) {
        asm volatile("lock xaddq %0, (%1)" : : "r"(1ul), "r"(m_page)
                     : "memory");
    }
    EXPECT_EQ(2, m_refused);
}

/* What continues after a store, for copies of several */
class test_emu_insn_next : public test_emu_insn {
protected:
    virtual void init()
    {
        struct sigaction act = {};

        test_emu_insn::init();
        act.sa_sigaction = handler_next;
        act.sa_flags     = SA_SIGINFO | SA_NODEFER;
        ASSERT_EQ(0, sigaction(SIGSEGV, &act, NULL));
        m_count = 0;
    }

    static void handler_next(int signum, siginfo_t *info, void *context)
    {
        ucontext_t *uc = reinterpret_cast<ucontext_t*>(context);
        emu_insn_store_t next;

        handler(signum, info, context);
        while ((m_count < MAX_NEXT) &&
               (emu_insn_decode_next(uc, &m_store, &m_addr[m_count],
                                     &next) == 0)) {
            m_size[m_count++] = next.size;
            emu_insn_skip(uc, &next);
        }
    }

    static const unsigned MAX_NEXT = 8;
    static uintptr_t      m_addr[MAX_NEXT];
    static unsigned       m_size[MAX_NEXT];
    static unsigned       m_count;
};

const unsigned test_emu_insn_next::MAX_NEXT;
uintptr_t      test_emu_insn_next::m_addr[MAX_NEXT];
unsigned       test_emu_insn_next::m_size[MAX_NEXT];
unsigned       test_emu_insn_next::m_count;


UCS_TEST_F(test_emu_insn_next, stores_of_a_copy)
{
    uintptr_t page = reinterpret_cast<uintptr_t>(m_page);

    /* .balign: all in one page of code */
    asm volatile(".balign 64\n\t"
                 "movups %%xmm0, (%0)\n\t"
                 "movups %%xmm1, 0x10(%0)\n\t"
                 "movups %%xmm2, -0x20(%0,%1)\n\t"
                 "movq   %1, -0x10(%0,%1,2)\n\t"
                 "nop"
                 : : "r"(m_page), "r"(0x40ul) : "memory");
    EXPECT_EQ(1, m_faults);
    ASSERT_EQ(3u, m_count);
    EXPECT_EQ(page + 0x10, m_addr[0]);
    EXPECT_EQ(page + 0x20, m_addr[1]);
    EXPECT_EQ(page + 0x70, m_addr[2]);
    EXPECT_EQ(16u, m_size[1]);
    EXPECT_EQ(8u, m_size[2]);
}

UCS_TEST_F(test_emu_insn_next, nothing_else_is_taken_for_a_store)
{
    uint64_t value = 7, loaded = 0;

    /* Many times: the cache also has instructions that do not store */
    for (int i = 0; i < 5; ++i) {
        asm volatile("movq %1, (%2)\n\t"
                     "movq (%3), %0\n\t"
                     : "=&r"(loaded) : "r"(1ul), "r"(m_page), "r"(&value)
                     : "memory");
        EXPECT_EQ(0u, m_count);
        EXPECT_EQ(7ul, loaded);
    }
    EXPECT_EQ(5, m_faults);
}
