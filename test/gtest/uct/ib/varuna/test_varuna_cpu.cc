/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Atomics by the CPU: their effect on a word. Unmapped memory fails only the atomic,
 * with any other signal handlers.
 */
#include <common/test.h>

extern "C" {
#include <uct/ib/varuna/responder/cpu/varuna_cpu.h>
#include <uct/ib/varuna/responder/cpu/varuna_fault.h>
}

#include <dlfcn.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

class test_varuna_cpu : public ucs::test {
protected:
    virtual void init()
    {
        ucs::test::init();
        uct_varuna_fault_init();
    }

    static ucs_status_t run(unsigned op, unsigned width, volatile void *word,
                            uint64_t compare, uint64_t value, uint64_t *result_p)
    {
        uct_varuna_ctl_atomic_op_t request = {};

        request.addr    = (uintptr_t)word;
        request.op      = op;
        request.width   = width;
        request.compare = compare;
        request.value   = value;
        return uct_varuna_cpu_op(&request, result_p);
    }

    void expect(unsigned op, uint64_t before, uint64_t compare, uint64_t value,
                uint64_t after)
    {
        uint64_t word   = before;
        uint64_t result = 0;

        EXPECT_UCS_OK(run(op, 8, &word, compare, value, &result));
        EXPECT_EQ(before, result);
        EXPECT_EQ(after, word);

        /* Of 4 bytes; the other half stays as it is */
        word = (before & UINT32_MAX) | (7ul << 32);
        EXPECT_UCS_OK(run(op, 4, &word, compare, value, &result));
        EXPECT_EQ(before & UINT32_MAX, result);
        EXPECT_EQ((after & UINT32_MAX) | (7ul << 32), word);
    }

    static void *map(size_t size, int prot)
    {
        void *ptr = mmap(NULL, size, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        EXPECT_NE(MAP_FAILED, ptr);
        return ptr;
    }

    static void expect_fault(void *word)
    {
        uint64_t result = 5;

        for (unsigned op = 0; op < UCT_ATOMIC_OP_LAST; ++op) {
            EXPECT_EQ(UCS_ERR_INVALID_ADDR, run(op, 8, word, 0, 1, &result));
            EXPECT_EQ(UCS_ERR_INVALID_ADDR, run(op, 4, word, 0, 1, &result));
        }
        EXPECT_EQ(5u, result);
    }

    /* A child that dies of its own fault, not of ours. @return Its status */
    template<typename F> static int in_child(const F &func)
    {
        int status = 0;
        pid_t pid  = fork();

        if (pid == 0) {
            func();
            _exit(HasFailure() ? 46 : 0);
        }

        waitpid(pid, &status, 0);
        return status;
    }

    static void handler(int signum, siginfo_t *info, void *context)
    {
        _exit((HasFailure() || !is_expected) ? 46 : (signum == SIGSEGV) ? 42 : 43);
    }

    template<int N> static void handler_number(int signum, siginfo_t *info, void *context)
    {
        _exit((HasFailure() || !is_expected) ? 46 : (50 + N));
    }

    /* It goes to the program's handler */
    static void fault(void *page)
    {
        is_expected = true;
        *(volatile int*)page = 1;
    }

    /* As in a library: calls the previous handler */
    static void chain_handler(int signum, siginfo_t *info, void *context)
    {
        if (++num_chained > 10) {
            _exit(1); /* In a circle */
        }
        if (chained.sa_flags & SA_SIGINFO) {
            chained.sa_sigaction(signum, info, context);
        } else {
            _exit(44);
        }
    }

    static void set_handler(void (*func)(int, siginfo_t*, void*),
                            struct sigaction *old)
    {
        struct sigaction act;

        memset(&act, 0, sizeof(act));
        act.sa_sigaction = func;
        act.sa_flags     = SA_SIGINFO;
        sigaction(SIGSEGV, &act, old);
    }

    static bool is_expected;
    static struct sigaction chained;
    static unsigned num_chained;
};

bool test_varuna_cpu::is_expected;
struct sigaction test_varuna_cpu::chained;
unsigned test_varuna_cpu::num_chained;

UCS_TEST_F(test_varuna_cpu, operations) {
    expect(UCT_ATOMIC_OP_ADD, 0xfffffffffffffff0ul, 0, 0x20, 0x10);
    expect(UCT_ATOMIC_OP_AND, 0xf0f0f0f0f0f0f0f0ul, 0, 0x8181818181818181ul,
           0x8080808080808080ul);
    expect(UCT_ATOMIC_OP_OR, 0x80000000f0000001ul, 0, 0x0a0a0a0a0a0a0a0aul,
           0x8a0a0a0afa0a0a0bul);
    expect(UCT_ATOMIC_OP_XOR, 0x123456789abcdef0ul, 0, UINT64_MAX,
           0xedcba9876543210ful);
    expect(UCT_ATOMIC_OP_SWAP, 5, 0, 0x8877665594433221ul, 0x8877665594433221ul);
    expect(UCT_ATOMIC_OP_CSWAP, 7, 7, 8, 8);
    expect(UCT_ATOMIC_OP_CSWAP, 7, 6, 8, 7);
}

UCS_TEST_F(test_varuna_cpu, atomic_with_threads) {
    static const unsigned count = 100000;
    uint64_t word               = 0;

    std::thread other([&] {
        for (unsigned i = 0; i < count; ++i) {
            __atomic_fetch_add(&word, 1, __ATOMIC_SEQ_CST);
        }
    });
    for (unsigned i = 0; i < count; ++i) {
        uint64_t result;

        ASSERT_UCS_OK(run(UCT_ATOMIC_OP_ADD, 8, &word, 0, 1, &result));
    }
    other.join();
    EXPECT_EQ(2ul * count, word);
}

UCS_TEST_F(test_varuna_cpu, unmapped) {
    void *page = map(4096, PROT_READ | PROT_WRITE);

    munmap(page, 4096);
    expect_fault(page);
}

UCS_TEST_F(test_varuna_cpu, protected_memory) {
    void *page = map(4096, PROT_NONE);

    expect_fault(page);
    ASSERT_EQ(0, mprotect(page, 4096, PROT_READ));
    expect_fault(page);
    ASSERT_EQ(0, mprotect(page, 4096, PROT_READ | PROT_WRITE));
    uint64_t result;
    EXPECT_UCS_OK(run(UCT_ATOMIC_OP_ADD, 8, page, 0, 1, &result));
    munmap(page, 4096);
}

UCS_TEST_F(test_varuna_cpu, truncated_file) {
    char name[] = "/tmp/test_varuna_cpu.XXXXXX";
    int fd      = mkstemp(name);

    ASSERT_GE(fd, 0);
    unlink(name);
    ASSERT_EQ(0, ftruncate(fd, 4096));
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ASSERT_NE(MAP_FAILED, page);
    ASSERT_EQ(0, ftruncate(fd, 0));
    expect_fault(page); /* SIGBUS */
    munmap(page, 4096);
    close(fd);
}

/* Another thread repeatedly unmaps and maps the page */
UCS_TEST_F(test_varuna_cpu, protected_while_accessed) {
    uint64_t *page = (uint64_t*)map(4096, PROT_READ | PROT_WRITE);
    unsigned faults = 0, done = 0;
    volatile bool stop = false;

    std::thread other([&] {
        while (!stop) {
            mprotect(page, 4096, PROT_NONE);
            mprotect(page, 4096, PROT_READ | PROT_WRITE);
        }
    });
    while ((faults < 100) || (done < 100)) {
        uint64_t result;

        ++((run(UCT_ATOMIC_OP_ADD, 8, page, 0, 1, &result) == UCS_OK) ? done :
           faults);
    }
    stop = true;
    other.join();
    EXPECT_GE(faults, 100u);
    EXPECT_EQ(done, *page);
    munmap(page, 4096);
}

/* A fault that is not ours kills the process, as without the plugin */
UCS_TEST_F(test_varuna_cpu, other_faults_are_fatal) {
    int status = in_child([] {
        signal(SIGSEGV, SIG_DFL);
        uct_varuna_fault_init();
        *(volatile int*)sizeof(int) = 1;
    });

    EXPECT_TRUE(WIFSIGNALED(status) || (WEXITSTATUS(status) != 0)) << status;
}

/* A handler is set after ours, and knows nothing of ours: it gets all faults but ours */
UCS_TEST_F(test_varuna_cpu, handler_after_ours) {
    int status = in_child([] {
        void *page = map(4096, PROT_NONE);

        set_handler(handler, NULL);
        uct_varuna_fault_init();
        expect_fault(page);
        fault(page);
    });

    EXPECT_TRUE(WIFEXITED(status)) << status;
    EXPECT_EQ(42, WEXITSTATUS(status));
}

/* Its owner takes it away again: it is not called */
UCS_TEST_F(test_varuna_cpu, handler_after_ours_that_is_gone) {
    int status = in_child([] {
        void *page = map(4096, PROT_NONE);
        struct sigaction before;

        set_handler(handler, &before);
        uct_varuna_fault_init();
        sigaction(SIGSEGV, &before, NULL);
        uct_varuna_fault_init();
        expect_fault(page);
        fault(page);
    });

    EXPECT_FALSE(WIFEXITED(status) && (WEXITSTATUS(status) == 42)) << status;
    EXPECT_NE(0, status);
}

/* However many there are */
UCS_TEST_F(test_varuna_cpu, many_handlers_after_ours) {
    int status = in_child([] {
        static void (*const handlers[])(int, siginfo_t*, void*) = {
            handler_number<0>, handler_number<1>, handler_number<2>, handler_number<3>,
            handler_number<4>, handler_number<5>, handler_number<6>, handler_number<7>,
            handler_number<8>, handler_number<9>, handler_number<10>, handler_number<11>
        };
        void *page = map(4096, PROT_NONE);

        for (auto func : handlers) {
            set_handler(func, NULL);
            uct_varuna_fault_init();
            expect_fault(page);
        }
        fault(page);
    });

    EXPECT_TRUE(WIFEXITED(status)) << status;
    EXPECT_EQ(50 + 11, WEXITSTATUS(status));
}

/* ... and a look does not change the word */
UCS_TEST_F(test_varuna_cpu, memory_that_is_looked_at) {
    int status = in_child([] {
        uint64_t *page = (uint64_t*)map(4096, PROT_READ | PROT_WRITE);
        uint64_t result;

        set_handler(handler, NULL);
        uct_varuna_fault_init();
        for (uint64_t value : {0ul, UINT64_MAX, 0xfffff800ul, 0x8000000080000000ul}) {
            *page = value;
            if ((run(UCT_ATOMIC_OP_CSWAP, 8, page, value + 1, 5, &result) != UCS_OK) ||
                (result != value) || (*page != value)) {
                _exit(1);
            }
        }
    });

    EXPECT_EQ(0, status);
}

/* Whoever interrupts an access has faults of its own */
UCS_TEST_F(test_varuna_cpu, fault_at_another_address) {
    int status = in_child([] {
        static uint64_t word;

        signal(SIGSEGV, SIG_DFL);
        uct_varuna_fault_run((uintptr_t)&word, [](void*) {
            *(volatile int*)8 = 1;
        }, NULL);
        _exit(0);
    });

    EXPECT_NE(0, status);
}

/* A signal sent by a process is not a fault */
UCS_TEST_F(test_varuna_cpu, sent_signal_goes_to_the_handler_before) {
    int status = in_child([] {
        set_handler(handler, NULL);
        uct_varuna_fault_init();
        is_expected = true;
        raise(SIGSEGV);
    });

    EXPECT_EQ(42, WEXITSTATUS(status));
}

/* The program's handler was there before ours. Each test runs in a process of its own, in
 * which ours was not installed yet: this program, which is started again */
class test_varuna_cpu_before : public test_varuna_cpu {
protected:
    virtual void init()
    {
        ucs::test::init();
    }

    /* @return The exit status of a process that calls the function, 0 if it returns */
    template<typename F> int in_new_process(const F &func)
    {
        const ::testing::TestInfo *info =
                ::testing::UnitTest::GetInstance()->current_test_info();
        std::string filter = std::string("--gtest_filter=") + info->test_case_name() + "." +
                             info->name();
        int status         = 0;

        if (getenv(VARIABLE) != NULL) {
            func();
            _exit(HasFailure() ? 46 : 0);
        }

        pid_t pid = fork();
        if (pid == 0) {
            dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
            setenv(VARIABLE, "y", 1);
            execl("/proc/self/exe", "gtest_varuna", filter.c_str(), (char*)NULL);
            _exit(9);
        }

        EXPECT_EQ(pid, waitpid(pid, &status, 0));
        EXPECT_TRUE(WIFEXITED(status)) << status;
        return WEXITSTATUS(status);
    }

    /* As in a language runtime: a null check is over */
    static void null_check_handler(int signum, siginfo_t *info, void *context)
    {
        if ((uintptr_t)info->si_addr != 8) {
            _exit(41);
        }
        siglongjmp(jump, 1);
    }

    static void null_checks(unsigned count)
    {
        for (volatile unsigned i = 0; i < count; ++i) {
            if (sigsetjmp(jump, 1) == 0) {
                *(volatile int*)8 = 1;
                _exit(40);
            }
        }
    }

    static void run_null_checks(int flags)
    {
        void *page           = map(4096, PROT_NONE);
        struct sigaction act = {};
        stack_t stack        = {};

        stack.ss_sp   = map(65536, PROT_READ | PROT_WRITE);
        stack.ss_size = 65536;
        sigaltstack(&stack, NULL);
        act.sa_sigaction = null_check_handler;
        act.sa_flags     = SA_SIGINFO | flags;
        sigaction(SIGSEGV, &act, NULL);
        null_checks(3);
        uct_varuna_fault_init();
        null_checks(5);
        expect_fault(page);
        null_checks(5);
        uct_varuna_fault_init();
        expect_fault(page);
        null_checks(5);
    }

    static constexpr const char *VARIABLE = "TEST_VARUNA_CPU_NEW_PROCESS";
    static sigjmp_buf jump;
};

sigjmp_buf test_varuna_cpu_before::jump;

UCS_TEST_F(test_varuna_cpu_before, other_faults_go_to_it) {
    EXPECT_EQ(42, in_new_process([] {
        void *page = map(4096, PROT_NONE);

        set_handler(handler, NULL);
        uct_varuna_fault_init();
        expect_fault(page);
        fault(page);
    }));
}

/* Null checks of a runtime leave the handler by a jump, each time from the same place on the
 * stack */
UCS_TEST_F(test_varuna_cpu_before, it_jumps) {
    EXPECT_EQ(0, in_new_process([] {
        run_null_checks(0);
    }));
}

UCS_TEST_F(test_varuna_cpu_before, it_jumps_from_a_stack_of_its_own) {
    EXPECT_EQ(0, in_new_process([] {
        run_null_checks(SA_ONSTACK);
    }));
}

/* A handler after ours calls ours, which calls the one before */
UCS_TEST_F(test_varuna_cpu_before, handler_after_ours_calls_ours) {
    EXPECT_EQ(42, in_new_process([] {
        void *page = map(4096, PROT_NONE);

        set_handler(handler, NULL);
        uct_varuna_fault_init();
        set_handler(chain_handler, &chained);
        uct_varuna_fault_init();
        expect_fault(page);
        if (num_chained != 0) {
            _exit(3);
        }
        fault(page);
    }));
}

/* It is set again, and takes ours for the one before it: the fault goes from one to the other
 * and ends the process */
UCS_TEST_F(test_varuna_cpu_before, it_calls_ours) {
    EXPECT_EQ(7, in_new_process([] {
        int status = in_child([] {
            num_chained = 0;
            set_handler(chain_handler, &chained);
            uct_varuna_fault_init();
            set_handler(chain_handler, &chained);
            *(volatile int*)8 = 1;
        });

        _exit((WIFSIGNALED(status) && (WTERMSIG(status) == SIGSEGV)) ? 7 : 1);
    }));
}

/* It is called once, as the kernel would do */
UCS_TEST_F(test_varuna_cpu_before, it_is_called_once) {
    EXPECT_EQ(42, in_new_process([] {
        static unsigned num_calls;
        struct sigaction act = {};

        act.sa_flags     = SA_SIGINFO | SA_RESETHAND;
        act.sa_sigaction = [](int, siginfo_t*, void*) {
            struct sigaction now;

            sigaction(SIGSEGV, NULL, &now);
            _exit((++num_calls == 1) && (now.sa_handler == SIG_DFL) ? 42 : 1);
        };
        sigaction(SIGSEGV, &act, NULL);
        uct_varuna_fault_init();
        *(volatile int*)8 = 1;
    }));
}
