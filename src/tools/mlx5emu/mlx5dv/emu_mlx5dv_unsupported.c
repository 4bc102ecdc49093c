/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED. See LICENSE for terms (BSD-3-Clause). */

/*
 * The direct verbs which the emulated NIC doesn't have. Each fails with
 * EOPNOTSUPP; without them a program would reach the real library, which takes
 * the emulator's objects for its own.
 *
 * None looks at its arguments, so none declares them: mlx5dv.h is left out on
 * purpose.
 */

#include "../verbs/emu_refuse.h"

#include <stddef.h>

/* Functions which return zero or a value of errno */
#define EMU_MLX5DV_NO_INT(_name) \
    int _name(void); \
    int _name(void) \
    { \
        return emu_refuse(#_name, NULL); \
    }

/* Functions which return a new object */
#define EMU_MLX5DV_NO_OBJ(_name) \
    void *_name(void); \
    void *_name(void) \
    { \
        return emu_refuse_object(#_name, NULL); \
    }

/* Functions which release an object that can't exist */
#define EMU_MLX5DV_NO_VOID(_name) \
    void _name(void); \
    void _name(void) \
    { \
    }

EMU_MLX5DV_NO_INT(_mlx5dv_mkey_check)
EMU_MLX5DV_NO_INT(_mlx5dv_query_port)
EMU_MLX5DV_NO_INT(mlx5dv_crypto_login)
EMU_MLX5DV_NO_INT(mlx5dv_crypto_login_destroy)
EMU_MLX5DV_NO_INT(mlx5dv_crypto_login_query)
EMU_MLX5DV_NO_INT(mlx5dv_crypto_login_query_state)
EMU_MLX5DV_NO_INT(mlx5dv_crypto_logout)
EMU_MLX5DV_NO_INT(mlx5dv_dci_stream_id_reset)
EMU_MLX5DV_NO_INT(mlx5dv_dek_destroy)
EMU_MLX5DV_NO_INT(mlx5dv_dek_query)
EMU_MLX5DV_NO_INT(mlx5dv_destroy_flow_matcher)
EMU_MLX5DV_NO_INT(mlx5dv_destroy_mkey)
EMU_MLX5DV_NO_INT(mlx5dv_destroy_steering_anchor)
EMU_MLX5DV_NO_INT(mlx5dv_devx_cq_modify)
EMU_MLX5DV_NO_INT(mlx5dv_devx_cq_query)
EMU_MLX5DV_NO_INT(mlx5dv_devx_destroy_eq)
EMU_MLX5DV_NO_INT(mlx5dv_devx_free_msi_vector)
EMU_MLX5DV_NO_INT(mlx5dv_devx_get_async_cmd_comp)
EMU_MLX5DV_NO_INT(mlx5dv_devx_ind_tbl_modify)
EMU_MLX5DV_NO_INT(mlx5dv_devx_ind_tbl_query)
EMU_MLX5DV_NO_INT(mlx5dv_devx_obj_query_async)
EMU_MLX5DV_NO_INT(mlx5dv_devx_srq_modify)
EMU_MLX5DV_NO_INT(mlx5dv_devx_srq_query)
EMU_MLX5DV_NO_INT(mlx5dv_devx_subscribe_devx_event_fd)
EMU_MLX5DV_NO_INT(mlx5dv_devx_wq_modify)
EMU_MLX5DV_NO_INT(mlx5dv_devx_wq_query)
EMU_MLX5DV_NO_INT(mlx5dv_dr_action_destroy)
EMU_MLX5DV_NO_INT(mlx5dv_dr_action_modify_aso)
EMU_MLX5DV_NO_INT(mlx5dv_dr_action_modify_flow_meter)
EMU_MLX5DV_NO_INT(mlx5dv_dr_aso_other_domain_link)
EMU_MLX5DV_NO_INT(mlx5dv_dr_aso_other_domain_unlink)
EMU_MLX5DV_NO_INT(mlx5dv_dr_domain_destroy)
EMU_MLX5DV_NO_INT(mlx5dv_dr_domain_sync)
EMU_MLX5DV_NO_INT(mlx5dv_dr_matcher_destroy)
EMU_MLX5DV_NO_INT(mlx5dv_dr_matcher_set_layout)
EMU_MLX5DV_NO_INT(mlx5dv_dr_rule_destroy)
EMU_MLX5DV_NO_INT(mlx5dv_dr_table_destroy)
EMU_MLX5DV_NO_INT(mlx5dv_dump_dr_domain)
EMU_MLX5DV_NO_INT(mlx5dv_dump_dr_matcher)
EMU_MLX5DV_NO_INT(mlx5dv_dump_dr_rule)
EMU_MLX5DV_NO_INT(mlx5dv_dump_dr_table)
EMU_MLX5DV_NO_INT(mlx5dv_get_clock_info)
EMU_MLX5DV_NO_INT(mlx5dv_map_ah_to_qp)
EMU_MLX5DV_NO_INT(mlx5dv_modify_qp_lag_port)
EMU_MLX5DV_NO_INT(mlx5dv_modify_qp_sched_elem)
EMU_MLX5DV_NO_INT(mlx5dv_modify_qp_udp_sport)
EMU_MLX5DV_NO_INT(mlx5dv_qp_cancel_posted_send_wrs)
EMU_MLX5DV_NO_INT(mlx5dv_query_qp_lag_port)
EMU_MLX5DV_NO_INT(mlx5dv_reserved_qpn_alloc)
EMU_MLX5DV_NO_INT(mlx5dv_reserved_qpn_dealloc)
EMU_MLX5DV_NO_INT(mlx5dv_sched_leaf_destroy)
EMU_MLX5DV_NO_INT(mlx5dv_sched_leaf_modify)
EMU_MLX5DV_NO_INT(mlx5dv_sched_node_destroy)
EMU_MLX5DV_NO_INT(mlx5dv_sched_node_modify)
EMU_MLX5DV_NO_INT(mlx5dv_set_context_attr)
EMU_MLX5DV_NO_INT(mlx5dv_vfio_get_events_fd)
EMU_MLX5DV_NO_INT(mlx5dv_vfio_process_events)

EMU_MLX5DV_NO_OBJ(mlx5dv_alloc_dm)
EMU_MLX5DV_NO_OBJ(mlx5dv_alloc_var)
EMU_MLX5DV_NO_OBJ(mlx5dv_create_flow)
EMU_MLX5DV_NO_OBJ(mlx5dv_create_flow_action_esp)
EMU_MLX5DV_NO_OBJ(mlx5dv_create_flow_action_modify_header)
EMU_MLX5DV_NO_OBJ(mlx5dv_create_flow_action_packet_reformat)
EMU_MLX5DV_NO_OBJ(mlx5dv_create_flow_matcher)
EMU_MLX5DV_NO_OBJ(mlx5dv_create_mkey)
EMU_MLX5DV_NO_OBJ(mlx5dv_create_steering_anchor)
EMU_MLX5DV_NO_OBJ(mlx5dv_create_wq)
EMU_MLX5DV_NO_OBJ(mlx5dv_crypto_login_create)
EMU_MLX5DV_NO_OBJ(mlx5dv_dek_create)
EMU_MLX5DV_NO_OBJ(mlx5dv_devx_alloc_msi_vector)
EMU_MLX5DV_NO_OBJ(mlx5dv_devx_create_cmd_comp)
EMU_MLX5DV_NO_OBJ(mlx5dv_devx_create_eq)
EMU_MLX5DV_NO_OBJ(mlx5dv_dm_map_op_addr)
EMU_MLX5DV_NO_OBJ(mlx5dv_dr_action_create_aso)
EMU_MLX5DV_NO_OBJ(mlx5dv_dr_action_create_default_miss)
EMU_MLX5DV_NO_OBJ(mlx5dv_dr_action_create_dest_array)
EMU_MLX5DV_NO_OBJ(mlx5dv_dr_action_create_dest_devx_tir)
EMU_MLX5DV_NO_OBJ(mlx5dv_dr_action_create_dest_ib_port)
EMU_MLX5DV_NO_OBJ(mlx5dv_dr_action_create_dest_ibv_qp)
EMU_MLX5DV_NO_OBJ(mlx5dv_dr_action_create_dest_root_table)
EMU_MLX5DV_NO_OBJ(mlx5dv_dr_action_create_dest_table)
EMU_MLX5DV_NO_OBJ(mlx5dv_dr_action_create_dest_vport)
EMU_MLX5DV_NO_OBJ(mlx5dv_dr_action_create_drop)
EMU_MLX5DV_NO_OBJ(mlx5dv_dr_action_create_flow_counter)
EMU_MLX5DV_NO_OBJ(mlx5dv_dr_action_create_flow_meter)
EMU_MLX5DV_NO_OBJ(mlx5dv_dr_action_create_flow_sampler)
EMU_MLX5DV_NO_OBJ(mlx5dv_dr_action_create_modify_header)
EMU_MLX5DV_NO_OBJ(mlx5dv_dr_action_create_packet_reformat)
EMU_MLX5DV_NO_OBJ(mlx5dv_dr_action_create_pop_vlan)
EMU_MLX5DV_NO_OBJ(mlx5dv_dr_action_create_push_vlan)
EMU_MLX5DV_NO_OBJ(mlx5dv_dr_action_create_tag)
EMU_MLX5DV_NO_OBJ(mlx5dv_dr_domain_create)
EMU_MLX5DV_NO_OBJ(mlx5dv_dr_matcher_create)
EMU_MLX5DV_NO_OBJ(mlx5dv_dr_rule_create)
EMU_MLX5DV_NO_OBJ(mlx5dv_dr_table_create)
EMU_MLX5DV_NO_OBJ(mlx5dv_get_vfio_device_list)
EMU_MLX5DV_NO_OBJ(mlx5dv_pp_alloc)
EMU_MLX5DV_NO_OBJ(mlx5dv_qp_ex_from_ibv_qp_ex)
EMU_MLX5DV_NO_OBJ(mlx5dv_sched_leaf_create)
EMU_MLX5DV_NO_OBJ(mlx5dv_sched_node_create)

EMU_MLX5DV_NO_VOID(mlx5dv_devx_destroy_cmd_comp)
EMU_MLX5DV_NO_VOID(mlx5dv_dr_domain_allow_duplicate_rules)
EMU_MLX5DV_NO_VOID(mlx5dv_dr_domain_set_reclaim_device_memory)
EMU_MLX5DV_NO_VOID(mlx5dv_free_var)
EMU_MLX5DV_NO_VOID(mlx5dv_pp_free)
