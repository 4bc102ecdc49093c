/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED. See LICENSE for terms (BSD-3-Clause). */

/*
 * Protection domains, thread domains and memory regions. Called by programs,
 * directly and through the operations of verbs_context.
 */

#include "emu_verbs.h"
#include "../core/emu_pin.h"

#include <stdlib.h>


struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    emu_vpd_t *vpd;
    int ret;

    if ((context == NULL) || !emu_vctx_is_mine(context)) {
        return emu_verbs_fail(EINVAL);
    }

    vpd = calloc(1, sizeof(*vpd));
    if (vpd == NULL) {
        return emu_verbs_fail(ENOMEM);
    }

    ret = emu_pd_alloc(emu_vctx(context)->ctx, &vpd->pd);
    if (ret != 0) {
        free(vpd);
        return emu_verbs_fail(ret);
    }

    vpd->ibv.context = context;
    vpd->ibv.handle  = vpd->pd->index;
    return &vpd->ibv;
}

struct ibv_pd *emu_vpd_alloc_parent(struct ibv_context *context,
                                    struct ibv_parent_domain_init_attr *attr)
{
    emu_vpd_t *vpd;

    if ((context == NULL) || (attr == NULL) || (attr->pd == NULL) ||
        (attr->pd->context != context) ||
        (emu_vpd(attr->pd)->parent != NULL)) {
        return emu_verbs_fail(EINVAL);
    }

    if (attr->comp_mask & ~IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT) {
        return emu_refuse_object("ibv_alloc_parent_domain", "allocators are");
    }

    vpd = calloc(1, sizeof(*vpd));
    if (vpd == NULL) {
        return emu_verbs_fail(ENOMEM);
    }

    vpd->ibv    = *attr->pd;
    vpd->pd     = emu_vpd(attr->pd)->pd;
    vpd->parent = emu_vpd(attr->pd);
    __atomic_add_fetch(&vpd->parent->refs, 1, __ATOMIC_RELAXED);
    return &vpd->ibv;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
    emu_vpd_t *vpd;
    int ret;

    if (pd == NULL) {
        return emu_verbs_error(EINVAL);
    }

    vpd = emu_vpd(pd);
    if (vpd->parent != NULL) {
        __atomic_sub_fetch(&vpd->parent->refs, 1, __ATOMIC_RELAXED);
    } else if (__atomic_load_n(&vpd->refs, __ATOMIC_RELAXED) != 0) {
        return emu_verbs_error(EBUSY);
    } else if (emu_vctx_is_mine(pd->context)) {
        (void)emu_vctx_command(pd->context);
        ret = emu_pd_free(vpd->pd);
        if (ret != 0) {
            return emu_verbs_error(ret);
        }
    }

    free(vpd);
    return 0;
}

struct ibv_td *emu_vtd_alloc(struct ibv_context *context,
                             struct ibv_td_init_attr *attr)
{
    struct ibv_td *td;

    if ((context == NULL) || (attr == NULL) || (attr->comp_mask != 0)) {
        return emu_verbs_fail(EINVAL);
    }

    td = calloc(1, sizeof(*td));
    if (td == NULL) {
        return emu_verbs_fail(ENOMEM);
    }

    td->context = context;
    return td;
}

int emu_vtd_dealloc(struct ibv_td *td)
{
    free(td);
    return 0;
}

/* Optional flags may be ignored, by their definition. Others, unless they are modelled,
 * are refused. */
static int emu_vmr_access(const char *func, unsigned access, unsigned *access_p)
{
    access &= ~IBV_ACCESS_OPTIONAL_RANGE;
    if (access & (IBV_ACCESS_ON_DEMAND | IBV_ACCESS_ZERO_BASED |
                  IBV_ACCESS_MW_BIND | IBV_ACCESS_HUGETLB)) {
        return emu_refuse(func, "on-demand paging, memory windows, zero-based and"
                          " huge-page regions are");
    }

    *access_p = access;
    return 0;
}

/* Arguments are checked first, as in the kernel */
static int emu_vmr_pin(uint64_t addr, uint64_t length, unsigned access)
{
    return (emu_mr_access_is_valid(access) && (addr + length >= addr)) ?
           emu_pin(addr, length, access) : -EINVAL;
}

static void emu_vmr_init_public(emu_vmr_t *vmr)
{
    vmr->ibv.handle = vmr->mr->key >> 8;
    vmr->ibv.lkey   = vmr->mr->key;
    vmr->ibv.rkey   = vmr->mr->key;
}

/* The memory is pinned, or is that of a dmabuf */
static emu_vmr_t *emu_vmr_create(struct ibv_pd *pd, uint64_t addr, size_t length,
                                 uint64_t iova, unsigned access,
                                 const emu_dmabuf_t *dmabuf)
{
    emu_vmr_t *vmr = calloc(1, sizeof(*vmr));
    int ret;

    if (vmr == NULL) {
        return emu_verbs_fail(ENOMEM);
    }

    ret = emu_mr_reg(emu_vpd(pd)->pd, addr, length, iova, access, dmabuf->device,
                     &vmr->mr);
    if (ret != 0) {
        free(vmr);
        return emu_verbs_fail(ret);
    }

    vmr->ibv.context = pd->context;
    vmr->ibv.pd      = pd;
    vmr->ibv.length  = length;
    vmr->dmabuf      = *dmabuf;
    emu_vmr_init_public(vmr);
    return vmr;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length,
                                uint64_t iova, unsigned int access)
{
    static const emu_dmabuf_t none;
    emu_vmr_t *vmr;
    int ret;

    if ((pd == NULL) || !emu_vctx_is_mine(pd->context)) {
        return emu_verbs_fail(EINVAL);
    }

    ret = emu_vmr_access(__func__, access, &access);
    if (ret != 0) {
        return emu_verbs_fail(ret);
    }

    ret = emu_vmr_pin((uintptr_t)addr, length, access);
    if (ret != 0) {
        return emu_verbs_fail(ret);
    }

    vmr = emu_vmr_create(pd, (uintptr_t)addr, length, iova, access, &none);
    if (vmr == NULL) {
        return NULL;
    }

    vmr->ibv.addr = addr;
    return &vmr->ibv;
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length,
                               uint64_t iova, int access)
{
    return ibv_reg_mr_iova2(pd, addr, length, iova, access);
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
                          int access)
{
    return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, access);
}

/* Linux, UVERBS_METHOD_REG_DMABUF_MR */
#define EMU_DMABUF_ACCESS \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | \
     IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_RELAXED_ORDERING)

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset,
                                 size_t length, uint64_t iova, int fd,
                                 int access)
{
    emu_dmabuf_t dmabuf;
    emu_vmr_t *vmr;
    int ret;

    if ((pd == NULL) || !emu_vctx_is_mine(pd->context) || (length == 0) ||
        (access & ~EMU_DMABUF_ACCESS) || !emu_mr_access_is_valid(access) ||
        ((offset ^ iova) & (EMU_PAGE - 1))) {
        return emu_verbs_fail(EINVAL);
    }

    ret = emu_dmabuf_map(fd, offset, length, &dmabuf);
    if (ret != 0) {
        return emu_verbs_fail(ret);
    }

    vmr = emu_vmr_create(pd, dmabuf.addr, length, iova, access, &dmabuf);
    if (vmr == NULL) {
        emu_dmabuf_unmap(&dmabuf);
        return NULL;
    }

    vmr->ibv.addr = (void*)(uintptr_t)offset; /* As rdma-core's: an offset */
    return &vmr->ibv;
}

/* Pages that were pinned for reading only are pinned again, to be written */
static int emu_vmr_repin(const emu_mr_t *mr, unsigned access)
{
    return (emu_pin_is_writable(mr->access) || !emu_pin_is_writable(access)) ? 0 :
           emu_vmr_pin(mr->addr, mr->length, access);
}

/* Other memory is another region, with another key: mlx5's kernel driver makes one where
 * the NIC cannot change entity sizes by work requests, and this one says so. PD and
 * rights change in place. */
static int emu_vmr_rereg(emu_vmr_t *vmr, int flags, struct ibv_pd *pd, uint64_t addr,
                         uint64_t length, unsigned access)
{
    emu_mr_t *mr = vmr->mr;
    int ret;

    if (!(flags & IBV_REREG_MR_CHANGE_ACCESS)) {
        access = mr->access;
    }

    ret = emu_vmr_access("ibv_rereg_mr", access, &access);
    if (ret != 0) {
        return ret;
    }

    if (!(flags & IBV_REREG_MR_CHANGE_TRANSLATION)) {
        ret = emu_vmr_repin(mr, access);
        if (ret != 0) {
            return ret;
        }

        ret = emu_mr_change(mr, emu_vpd(pd)->pd, access);
        return (ret != -EBUSY) ? ret :
               emu_refuse("ibv_rereg_mr", "changing what memory keys refer to is");
    }

    ret = emu_vmr_pin(addr, length, access);
    if (ret == 0) {
        ret = emu_mr_reg(emu_vpd(pd)->pd, addr, length, addr, access, 0, &vmr->mr);
    }
    if (ret == 0) {
        emu_mr_dereg(mr);
        emu_dmabuf_unmap(&vmr->dmabuf);
        emu_vmr_init_public(vmr);
    }

    return ret;
}

int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr,
                 size_t length, int access)
{
    emu_vmr_t *vmr;
    int ret;

    if ((mr == NULL) || (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED) ||
        ((flags & IBV_REREG_MR_CHANGE_PD) && (pd == NULL)) ||
        ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) &&
         ((addr == NULL) || (length == 0))) ||
        (!(flags & IBV_REREG_MR_CHANGE_ACCESS) && (access != 0))) {
        emu_verbs_error(EINVAL);
        return IBV_REREG_MR_ERR_INPUT;
    }

    if (!(flags & IBV_REREG_MR_CHANGE_PD)) {
        pd = mr->pd;
    }

    if ((flags == 0) || (pd->context != mr->context) ||
        !emu_vctx_is_mine(mr->context)) {
        emu_verbs_error(EINVAL);
        return IBV_REREG_MR_ERR_CMD;
    }

    vmr = emu_container_of(mr, emu_vmr_t, ibv);
    ret = emu_vmr_rereg(vmr, flags, pd, (uintptr_t)addr, length, access);
    if (ret != 0) {
        emu_verbs_error(ret);
        return IBV_REREG_MR_ERR_CMD;
    }

    mr->pd = pd;
    if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
        mr->addr   = addr;
        mr->length = length;
    }

    return 0;
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
    emu_vmr_t *vmr;

    if (mr == NULL) {
        return emu_verbs_error(EINVAL);
    }

    vmr = emu_container_of(mr, emu_vmr_t, ibv);
    if (emu_vctx_is_mine(mr->context)) {
        (void)emu_vctx_command(mr->context);
        emu_mr_dereg(vmr->mr);
    }

    emu_dmabuf_unmap(&vmr->dmabuf);
    free(vmr);
    return 0;
}
