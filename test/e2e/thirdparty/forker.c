/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Preloaded into ucx_perftest by test_perftest.sh: a thread forks all the time, while
 * other threads post and links fail. Children run another program, or write to memory
 * and exit. Finally it prints the number of children and of failed ones.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>


#define FORKER_MEMORY (1 << 20)
#define FORKER_LEAST  3


static pthread_t forker_thread;
static volatile int forker_stop;
static unsigned forker_children, forker_failed;


static void forker_child(unsigned number)
{
    char *memory;

    if (number % 2) {
        execl("/bin/true", "true", NULL);
        _exit(2);
    }

    memory = malloc(FORKER_MEMORY);
    if (memory == NULL) {
        _exit(3);
    }
    memset(memory, number, FORKER_MEMORY);
    _exit(memory[FORKER_MEMORY / 2] != (char)number);
}

static void *forker_run(void *arg)
{
    static const struct timespec pause = {0, 3000000};
    int status;
    pid_t pid;

    /* A short test on a busy machine may end before the first child */
    while (!forker_stop || (forker_children < FORKER_LEAST)) {
        pid = fork();
        if (pid == 0) {
            forker_child(forker_children);
        }
        if ((pid < 0) || (waitpid(pid, &status, 0) != pid) || (status != 0)) {
            ++forker_failed;
        }
        ++forker_children;
        nanosleep(&pause, NULL);
    }
    return arg;
}

static int forker_is_wanted(void)
{
    char name[16] = "";
    FILE *file    = fopen("/proc/self/comm", "r");

    if (file != NULL) {
        if (fgets(name, sizeof(name), file) == NULL) {
            name[0] = '\0';
        }
        fclose(file);
    }
    return !strncmp(name, "ucx_perftest", 12);
}

__attribute__((constructor)) static void forker_begin(void)
{
    if (forker_is_wanted() &&
        pthread_create(&forker_thread, NULL, forker_run, NULL)) {
        abort();
    }
}

__attribute__((destructor)) static void forker_end(void)
{
    if (!forker_is_wanted()) {
        return;
    }
    forker_stop = 1;
    pthread_join(forker_thread, NULL);
    fprintf(stderr, "\nforker: %u children, %u failed\n", forker_children,
            forker_failed);
}
