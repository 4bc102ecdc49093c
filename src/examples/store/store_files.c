/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Files of a store's directory.
 */
#include "store_files.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>


static void store_file_path(char *path, const char *dir, const char *name, unsigned index,
                            const char *suffix)
{
    snprintf(path, PATH_MAX, "%s/%s.%u%s", dir, name, index, suffix);
}

int store_file_write(const char *dir, const char *name, unsigned index, const void *data,
                     size_t length)
{
    char path[PATH_MAX], part[PATH_MAX];
    FILE *file;
    int ret;

    store_file_path(path, dir, name, index, "");
    store_file_path(part, dir, name, index, ".part");
    file = fopen(part, "w");
    if (file == NULL) {
        perror(part);
        return -1;
    }

    ret = (fwrite(data, 1, length, file) == length) ? 0 : -1;
    if ((fclose(file) != 0) || (ret != 0) || (rename(part, path) != 0)) {
        perror(path);
        return -1;
    }

    return 0;
}

void *store_file_read(const char *dir, const char *name, unsigned index, size_t *length_p)
{
    char path[PATH_MAX];
    void *data = NULL;
    FILE *file;
    long length;

    store_file_path(path, dir, name, index, "");
    file = fopen(path, "r");
    if (file == NULL) {
        return NULL;
    }

    if ((fseek(file, 0, SEEK_END) == 0) && ((length = ftell(file)) >= 0)) {
        rewind(file);
        data = malloc(length + 1);
        if ((data != NULL) && (fread(data, 1, length, file) != (size_t)length)) {
            free(data);
            data = NULL;
        }
        *length_p = length;
    }

    fclose(file);
    return data;
}

int store_file_exists(const char *dir, const char *name)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return access(path, F_OK) == 0;
}

void *store_file_map(const char *dir, const char *name, unsigned index, size_t length)
{
    char path[PATH_MAX];
    void *data;
    int fd;

    store_file_path(path, dir, name, index, "");
    fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd < 0) {
        perror(path);
        return NULL;
    }

    data = (ftruncate(fd, length) == 0) ?
           mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    close(fd);
    if (data == MAP_FAILED) {
        perror(path);
        return NULL;
    }

    return data;
}
