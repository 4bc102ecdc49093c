/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Preloaded into a job by test_shortage.sh: NICs that run out of something. While the file
 * $FT_SHORT/WHAT.DEVICE exists, where WHAT is "qp", "mr" or "ah", the device creates no
 * queue pair, memory region or address handle (ENOMEM). A number in the file is the length of
 * the only regions that are refused. Each refusal adds a byte to $FT_SHORT/WHAT.DEVICE.refused.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#undef ibv_reg_mr

#define SHORT_CREATE_QP  0x500 /* Opcode of a command of mlx5 */

#define SHORT_NEXT(_function) \
    static __typeof__(&(_function)) next; \
    if (next == NULL) { \
        *(void**)&next = dlsym(RTLD_NEXT, #_function); \
    }


static void short_count(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);

    if ((fd < 0) || (write(fd, ".", 1) != 1)) {
        perror(path);
        abort();
    }
    close(fd);
}

static int short_is_meant(const char *path, size_t length)
{
    FILE *file = fopen(path, "r");
    size_t only;
    int is_meant;

    if (file == NULL) {
        return 0;
    }

    is_meant = (fscanf(file, "%zu", &only) != 1) || (only == length);
    fclose(file);
    return is_meant;
}

static int short_of(const char *what, struct ibv_context *context, size_t length)
{
    const char *dir = getenv("FT_SHORT");
    char path[512];

    if ((dir == NULL) || (dir[0] == '\0')) {
        return 0;
    }

    snprintf(path, sizeof(path), "%s/%s.%s", dir, what,
             ibv_get_device_name(context->device));
    if (!short_is_meant(path, length)) {
        return 0;
    }

    strncat(path, ".refused", sizeof(path) - strlen(path) - 1);
    short_count(path);
    errno = ENOMEM;
    return 1;
}

struct mlx5dv_devx_obj *
mlx5dv_devx_obj_create(struct ibv_context *context, const void *in, size_t in_len, void *out,
                       size_t out_len)
{
    const unsigned char *opcode = in;
    SHORT_NEXT(mlx5dv_devx_obj_create)

    return ((((opcode[0] << 8) | opcode[1]) == SHORT_CREATE_QP) && short_of("qp", context, 0)) ?
           NULL : next(context, in, in_len, out, out_len);
}

struct ibv_qp *mlx5dv_create_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
                                struct mlx5dv_qp_init_attr *mlx5_attr)
{
    SHORT_NEXT(mlx5dv_create_qp)

    return short_of("qp", context, 0) ? NULL : next(context, attr, mlx5_attr);
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    SHORT_NEXT(ibv_create_qp)

    return short_of("qp", pd->context, 0) ? NULL : next(pd, attr);
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
    SHORT_NEXT(ibv_reg_mr)

    return short_of("mr", pd->context, length) ? NULL : next(pd, addr, length, access);
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                                unsigned access)
{
    SHORT_NEXT(ibv_reg_mr_iova2)

    return short_of("mr", pd->context, length) ? NULL : next(pd, addr, length, iova, access);
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    SHORT_NEXT(ibv_create_ah)

    return short_of("ah", pd->context, 0) ? NULL : next(pd, attr);
}
