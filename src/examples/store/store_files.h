/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The directory through which processes of a store find each other. "go", "stop" and "end"
 * are empty files that the user creates: clients begin, clients stop, replicas write their
 * memory and end.
 */
#ifndef STORE_FILES_H
#define STORE_FILES_H

#include <stddef.h>


/** Write a file that appears only when it is complete. @return 0, or -1 with the reason on
 *  stderr. */
int store_file_write(const char *dir, const char *name, unsigned index, const void *data,
                     size_t length);

/** @return The file's content, which the caller frees, and its length; or NULL if there
 *          is no such file. */
void *store_file_read(const char *dir, const char *name, unsigned index, size_t *length_p);

/** @return Whether the user has created the file. */
int store_file_exists(const char *dir, const char *name);

/** @return Memory that is the content of a new file of this length, or NULL with the reason
 *          on stderr. It remains in the file when the process dies. */
void *store_file_map(const char *dir, const char *name, unsigned index, size_t length);

#endif
