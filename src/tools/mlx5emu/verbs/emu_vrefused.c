/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Verbs of a context which the emulated NIC doesn't have: memory windows, XRC, device
 * memory, flow steering, work queues, counters. Programs reach them by inline functions
 * of libibverbs, which fail with EOPNOTSUPP where a driver has none. These do so, too,
 * and explain it. Called by emu_vdevice.c.
 *
 * None looks at its arguments, so none declares them.
 */

#include "emu_verbs.h"

/* Functions which return zero or a value of errno */
#define EMU_VREFUSED_INT(_name) \
    static int emu_vrefused_##_name(void) \
    { \
        return emu_refuse("ibv_" #_name, NULL); \
    }

/* Functions which return a new object */
#define EMU_VREFUSED_OBJ(_name) \
    static void *emu_vrefused_##_name(void) \
    { \
        return emu_refuse_object("ibv_" #_name, NULL); \
    }

EMU_VREFUSED_INT(advise_mr)
EMU_VREFUSED_INT(modify_qp_rate_limit)
EMU_VREFUSED_INT(post_srq_ops)
EMU_VREFUSED_INT(query_rt_values_ex)

EMU_VREFUSED_OBJ(alloc_dm)
EMU_VREFUSED_OBJ(alloc_mw)
EMU_VREFUSED_OBJ(alloc_null_mr)
EMU_VREFUSED_OBJ(create_counters)
EMU_VREFUSED_OBJ(create_flow)
EMU_VREFUSED_OBJ(create_flow_action_esp)
EMU_VREFUSED_OBJ(create_rwq_ind_table)
EMU_VREFUSED_OBJ(create_wq)
EMU_VREFUSED_OBJ(open_qp)
EMU_VREFUSED_OBJ(open_xrcd)

/* The operation of the same name */
#define EMU_VREFUSED_SET(_ops, _name) \
    *(void**)&(_ops)->_name = (void*)emu_vrefused_##_name


/* Operations on objects that cannot exist stay NULL */
void emu_vrefused_init_ops(struct verbs_context *verbs)
{
    EMU_VREFUSED_SET(&verbs->context.ops, alloc_mw);

    EMU_VREFUSED_SET(verbs, advise_mr);
    EMU_VREFUSED_SET(verbs, alloc_dm);
    EMU_VREFUSED_SET(verbs, alloc_null_mr);
    EMU_VREFUSED_SET(verbs, create_counters);
    EMU_VREFUSED_SET(verbs, create_flow_action_esp);
    EMU_VREFUSED_SET(verbs, create_rwq_ind_table);
    EMU_VREFUSED_SET(verbs, create_wq);
    EMU_VREFUSED_SET(verbs, modify_qp_rate_limit);
    EMU_VREFUSED_SET(verbs, open_qp);
    EMU_VREFUSED_SET(verbs, open_xrcd);
    EMU_VREFUSED_SET(verbs, post_srq_ops);

    /* Where the names differ */
    *(void**)&verbs->ibv_create_flow = (void*)emu_vrefused_create_flow;
    *(void**)&verbs->query_rt_values = (void*)emu_vrefused_query_rt_values_ex;
}
