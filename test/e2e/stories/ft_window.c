/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Puts to overlapping places, all in flight at once, and a reader that polls the memory.
 * No word may ever show an older value after a newer one. Run by
 * test/e2e/stories/test_window.sh:
 *
 *     ft_window server PUT...   prints its address, polls until stdin ends, and prints
 *                               what is wrong
 *     ft_window client PUT...   reads the address from stdin, warms up, posts the puts
 *
 * PUT is OFFSET:VALUE: FT_SIZE bytes at the offset, a multiple of 8, with this value.
 */
#include "ft_uct.h"
#include "ft_clock.h"
#include "ft_vfs.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FT_SIZE      264   /* Only these puts have this size; fault rules select it */
#define FT_AREA      4096  /* Puts are here; the warm-up is after it */
#define FT_WORDS     (FT_AREA / sizeof(uint64_t))
#define FT_MAX_PUTS  32
#define FT_WARM_UP   120   /* Seconds until RC must be connected */
#define FT_POLLS     256   /* Of the memory, between two calls of progress */

typedef struct {
    size_t   offset;
    uint64_t value;
} ft_put_t;

/* What a word may show */
typedef struct {
    uint64_t values[FT_MAX_PUTS];
    unsigned num;
    unsigned next;     /* Values before this are old */
    uint64_t shown;
} ft_word_t;

static ft_put_t ft_puts[FT_MAX_PUTS];
static unsigned ft_num_puts;
static ft_word_t ft_words[FT_WORDS];


static void ft_parse(int argc, char **argv)
{
    unsigned long offset, value, i;
    ft_word_t *word;
    int n;

    for (n = 2; n < argc; ++n) {
        if ((sscanf(argv[n], "%lu:%lu", &offset, &value) != 2) || (offset % 8) ||
            (value == 0) || (offset + FT_SIZE > FT_AREA) ||
            (ft_num_puts == FT_MAX_PUTS)) {
            ft_die("wrong put: %s", argv[n]);
        }

        ft_puts[ft_num_puts].offset  = offset;
        ft_puts[ft_num_puts++].value = value;
        for (i = offset / 8; i < (offset + FT_SIZE) / 8; ++i) {
            word                      = &ft_words[i];
            word->values[word->num++] = value;
        }
    }
}

static void *ft_alloc(void)
{
    void *memory = mmap(NULL, FT_AREA * (FT_MAX_PUTS + 1), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED) {
        ft_die("out of memory");
    }

    return memory;
}

/* --- Server --- */

static void ft_look(unsigned index, uint64_t value)
{
    ft_word_t *word = &ft_words[index];
    unsigned i;

    if (value == word->shown) {
        return;
    }

    for (i = word->next; (i < word->num) && (word->values[i] != value); ++i) {
    }

    if (i >= word->num) {
        printf("ft: wrong: word %u shows %lu after %lu\n", index, (long)value,
               (long)word->shown);
    } else {
        word->next = i + 1;
    }

    word->shown = value;
}

static int ft_server(void)
{
    struct pollfd pfd         = {.fd = STDIN_FILENO, .events = POLLIN};
    volatile uint64_t *memory = ft_alloc();
    ft_uct_t uct;
    uct_mem_h memh;
    unsigned i, n;

    ft_uct_open(&uct, "rc_varuna");
    memh = ft_uct_reg(&uct, (void*)memory, 2 * FT_AREA);
    ft_uct_print_address(&uct, "ft: address", memh, (void*)memory);
    do {
        uct_worker_progress(uct.worker);
        for (n = 0; n < FT_POLLS; ++n) {
            for (i = 0; i < FT_WORDS; ++i) {
                if (ft_words[i].num > 0) {
                    ft_look(i, memory[i]);
                }
            }
        }
    } while (poll(&pfd, 1, 0) <= 0);

    for (i = 0; i < FT_WORDS; ++i) {
        if ((ft_words[i].num > 0) &&
            (memory[i] != ft_words[i].values[ft_words[i].num - 1])) {
            printf("ft: wrong: word %u contains %lu in the end\n", i, (long)memory[i]);
        }
    }

    printf("ft: end\n");
    uct_md_mem_dereg(uct.md, memh);
    ft_uct_close(&uct);
    return 0;
}

/* --- Client --- */

/* Never called, because one count is ours */
static void ft_put_done(uct_completion_t *comp)
{
    (void)comp;
}

static void ft_is_rc(const char *path, const char *text, void *arg)
{
    if (strstr(path, "/vqp/") && strstr(path, "/lane") && !strncmp(text, "rc ", 3)) {
        *(unsigned*)arg = 1;
    }
}

static ucs_status_t ft_post(ft_uct_t *uct, uct_ep_h ep, uct_iov_t *iov, uint64_t address,
                            uct_rkey_t rkey, uct_completion_t *comp)
{
    ucs_status_t status;

    do {
        status = uct_ep_put_zcopy(ep, iov, 1, address, rkey, comp);
        if (status == UCS_ERR_NO_RESOURCE) {
            uct_worker_progress(uct->worker);
        }
    } while ((status == UCS_ERR_NO_RESOURCE) && (uct->ep_errors == 0));

    if (status == UCS_INPROGRESS) {
        ++comp->count;
        status = UCS_OK;
    }

    return status;
}

static int ft_client(void)
{
    uct_completion_t comp = {.func = ft_put_done, .count = 1};
    char *memory          = ft_alloc();
    uct_iov_t iov         = {.buffer = memory + FT_AREA, .length = 8, .count = 1};
    ucs_status_t status = UCS_OK;
    ft_address_t server;
    uct_rkey_bundle_t rkey;
    ft_uct_t uct;
    uct_ep_h ep;
    double end;
    unsigned i, k, is_rc;

    ft_uct_open(&uct, "rc_varuna");
    iov.memh = ft_uct_reg(&uct, memory, FT_AREA * (FT_MAX_PUTS + 1));
    ft_uct_read_address(&uct, &server, &rkey);
    ep  = ft_uct_connect(&uct, &server);
    end = ft_now() + FT_WARM_UP;
    do {
        status = ft_post(&uct, ep, &iov, server.base + FT_AREA, rkey.rkey, &comp);
        while ((comp.count > 1) && (uct.ep_errors == 0)) {
            uct_worker_progress(uct.worker);
        }
        is_rc = 0;
        ft_vfs_read("/uct", ft_is_rc, &is_rc);
    } while (!is_rc && (ft_now() < end) && (status == UCS_OK));

    iov.length = FT_SIZE;
    for (i = 0; (i < ft_num_puts) && (status == UCS_OK); ++i) {
        iov.buffer = memory + (i * FT_AREA);
        for (k = 0; k < FT_SIZE / 8; ++k) {
            ((uint64_t*)iov.buffer)[k] = ft_puts[i].value;
        }
        status = ft_post(&uct, ep, &iov, server.base + ft_puts[i].offset, rkey.rkey,
                         &comp);
    }

    while ((comp.count > 1) && (comp.status == UCS_OK)) {
        uct_worker_progress(uct.worker);
    }

    printf("ft: puts %s\n", ucs_status_string((status == UCS_OK) ? comp.status : status));
    ft_uct_leave(&uct, ep, &rkey, iov.memh);
    return (status != UCS_OK) || (comp.status != UCS_OK);
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 2) {
        ft_parse(argc, argv);
        if (!strcmp(argv[1], "server")) {
            return ft_server();
        } else if (!strcmp(argv[1], "client")) {
            return ft_client();
        }
    }

    ft_die("usage: ft_window server|client OFFSET:VALUE...");
}
