/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Reads the build-id of a mapped library from its notes. Calls nothing of UCX, because the
 * preloaded object has it, too (src/tools/rc_varuna_run/rc_varuna_preload.c).
 */
#include "varuna_build_id.h"

#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    uintptr_t             address;
    uct_varuna_build_id_t *found;
} uct_varuna_build_id_search_t;

/* The first bytes of a segment are in the file, the others are zero */
static int uct_varuna_build_id_is_mapped(const struct dl_phdr_info *info,
                                         uintptr_t address, size_t length)
{
    const ElfW(Phdr) *segment;
    uintptr_t offset;
    unsigned i;

    for (i = 0; i < info->dlpi_phnum; ++i) {
        segment = &info->dlpi_phdr[i];
        offset  = address - (info->dlpi_addr + segment->p_vaddr);
        if ((segment->p_type == PT_LOAD) && (offset < segment->p_memsz) &&
            (length <= segment->p_memsz - offset)) {
            return 1;
        }
    }
    return 0;
}

/* @return Whether the note is a build-id. */
static int uct_varuna_build_id_read(const ElfW(Nhdr) *note, const char *name,
                                    const uint8_t *bytes, char *build_id)
{
    unsigned i;

    if ((note->n_type != NT_GNU_BUILD_ID) || (note->n_namesz != sizeof(ELF_NOTE_GNU)) ||
        memcmp(name, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) ||
        (note->n_descsz > (UCT_VARUNA_BUILD_ID_MAX - 1) / 2)) {
        return 0;
    }

    for (i = 0; i < note->n_descsz; ++i) {
        snprintf(build_id + (2 * i), 3, "%02x", bytes[i]);
    }
    return 1;
}

static size_t uct_varuna_build_id_align(size_t offset, size_t align)
{
    return (offset + align - 1) / align * align;
}

/* A segment with notes, one after the other: a header, the name, the contents */
static void uct_varuna_build_id_search(const ElfW(Phdr) *segment, const char *notes,
                                       char *build_id)
{
    const size_t align = (segment->p_align == 8) ? 8 : 4;
    size_t contents, offset;
    const ElfW(Nhdr) *note;

    for (offset = 0; offset + sizeof(*note) <= segment->p_memsz;
         offset = uct_varuna_build_id_align(contents + note->n_descsz, align)) {
        note     = (const ElfW(Nhdr)*)(notes + offset);
        contents = uct_varuna_build_id_align(offset + sizeof(*note) + note->n_namesz, align);
        if ((contents + note->n_descsz > segment->p_memsz) ||
            uct_varuna_build_id_read(note, (const char*)(note + 1),
                                     (const uint8_t*)notes + contents, build_id)) {
            return;
        }
    }
}

/* Called for each library. @return Whether the search is over. */
static int
uct_varuna_build_id_visit(struct dl_phdr_info *info, size_t size, void *arg)
{
    uct_varuna_build_id_search_t *search = arg;
    const ElfW(Phdr) *segment;
    uintptr_t notes;
    unsigned i;

    (void)size;
    if (!uct_varuna_build_id_is_mapped(info, search->address, 1)) {
        return 0;
    }

    snprintf(search->found->path, sizeof(search->found->path), "%s",
             (info->dlpi_name[0] == '\0') ? "the program" : info->dlpi_name);
    for (i = 0; (i < info->dlpi_phnum) && (search->found->build_id[0] == '\0'); ++i) {
        segment = &info->dlpi_phdr[i];
        notes   = info->dlpi_addr + segment->p_vaddr;
        if ((segment->p_type == PT_NOTE) &&
            uct_varuna_build_id_is_mapped(info, notes, segment->p_memsz)) {
            uct_varuna_build_id_search(segment, (const char*)notes,
                                       search->found->build_id);
        }
    }
    return 1;
}

void uct_varuna_build_id_find(const void *address, uct_varuna_build_id_t *found_p)
{
    uct_varuna_build_id_search_t search = {
        .address = (uintptr_t)address,
        .found   = found_p
    };

    memset(found_p, 0, sizeof(*found_p));
    dl_iterate_phdr(uct_varuna_build_id_visit, &search);
}

int uct_varuna_build_id_equals(const uct_varuna_build_id_t *found, const char *build_id)
{
    return (build_id[0] == '\0') || !strcmp(found->build_id, build_id);
}
