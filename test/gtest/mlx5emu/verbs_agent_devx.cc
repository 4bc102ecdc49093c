/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The agent's commands over DEVX. Mailboxes come as hexadecimal digits, "-" for none,
 * and are copied to memory of exactly their size, so that an address sanitizer detects
 * accesses after their end. The device's answer is printed unchanged:
 *
 *     ok ERRNO OBJECT [BYTE]...
 */

#include "verbs_agent.h"

#include <errno.h>
#include <string.h>

#include <memory>

namespace agent {

static std::vector<mlx5dv_devx_obj*>           objs;
static std::vector<mlx5dv_devx_umem*>          umems;
static std::vector<mlx5dv_devx_uar*>           uars;
static std::vector<mlx5dv_devx_event_channel*> channels;

/* A command's mailboxes: words[index] bytes of output, then the input */
class mailboxes {
public:
    mailboxes(const words_t &words, size_t index) :
        in_size(0), out_size(number(words, index)),
        out(new uint8_t[out_size]())
    {
        const std::string &hex = words.at(index + 1);

        if (hex != "-") {
            in_size = hex.size() / 2;
        }
        in.reset(new uint8_t[in_size]);
        for (size_t i = 0; i < in_size; ++i) {
            in[i] = strtoul(hex.substr(2 * i, 2).c_str(), NULL, 16);
        }
    }

    numbers_t answer(int error, uint64_t object) const
    {
        numbers_t result = {(uint64_t)error, object};

        result.insert(result.end(), &out[0], &out[0] + out_size);
        return result;
    }

    size_t                     in_size, out_size;
    std::unique_ptr<uint8_t[]> in, out;
};

/* devx_open LINK -> context, number of its protection domain */
numbers_t cmd_devx_open(const words_t &words)
{
    std::string name        = "mlx5_" + std::to_string(number(words, 1));
    mlx5dv_context_attr dv  = {};
    mlx5dv_obj obj          = {};
    mlx5dv_pd pd            = {};
    context c               = {};
    ibv_device **list;

    list = ibv_get_device_list(NULL);
    check(list != NULL, "ibv_get_device_list");
    dv.flags = MLX5DV_CONTEXT_FLAGS_DEVX;
    for (int i = 0; list[i] != NULL; ++i) {
        if (name == ibv_get_device_name(list[i])) {
            c.ibv = mlx5dv_open_device(list[i], &dv);
        }
    }
    ibv_free_device_list(list);
    check(c.ibv != NULL, "mlx5dv_open_device");

    c.pd = ibv_alloc_pd(c.ibv);
    check(c.pd != NULL, "ibv_alloc_pd");
    c.channel = ibv_create_comp_channel(c.ibv);
    check(c.channel != NULL, "ibv_create_comp_channel");
    obj.pd.in  = c.pd;
    obj.pd.out = &pd;
    errno      = mlx5dv_init_obj(&obj, MLX5DV_OBJ_PD);
    check(errno == 0, "mlx5dv_init_obj of a protection domain");
    contexts.push_back(c);
    return {contexts.size() - 1, pd.pdn};
}

/* devx_nums CQ SRQ|-1 -> CQN, SRQN: of objects that verbs made */
numbers_t cmd_devx_nums(const words_t &words)
{
    mlx5dv_obj obj = {};
    mlx5dv_cq cq   = {};
    mlx5dv_srq srq = {};

    obj.cq.in  = item(cqs, words, 1);
    obj.cq.out = &cq;
    errno      = mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ);
    check(errno == 0, "mlx5dv_init_obj of a CQ");
    if (words.at(2) != "-1") {
        srq.comp_mask = MLX5DV_SRQ_MASK_SRQN;
        obj.srq.in    = item(srqs, words, 2);
        obj.srq.out   = &srq;
        errno         = mlx5dv_init_obj(&obj, MLX5DV_OBJ_SRQ);
        check(errno == 0, "mlx5dv_init_obj of an SRQ");
    }
    return {cq.cqn, srq.srqn};
}

/* devx_umem CONTEXT MEMORY OFFSET LENGTH -> umem, its number */
numbers_t cmd_devx_umem(const words_t &words)
{
    context &c = item(contexts, words, 1);
    memory &m  = item(memories, words, 2);
    mlx5dv_devx_umem *umem;

    umem = mlx5dv_devx_umem_reg(c.ibv, m.addr + number(words, 3),
                                number(words, 4), IBV_ACCESS_LOCAL_WRITE);
    check(umem != NULL, "mlx5dv_devx_umem_reg");
    umems.push_back(umem);
    return {umems.size() - 1, umem->umem_id};
}

/* devx_umem_dereg UMEM */
numbers_t cmd_devx_umem_dereg(const words_t &words)
{
    errno = mlx5dv_devx_umem_dereg(item(umems, words, 1));
    check(errno == 0, "mlx5dv_devx_umem_dereg");
    return {};
}

/* devx_uar CONTEXT -> UAR, its page */
numbers_t cmd_devx_uar(const words_t &words)
{
    mlx5dv_devx_uar *uar;

    uar = mlx5dv_devx_alloc_uar(item(contexts, words, 1).ibv,
                                MLX5_IB_UAPI_UAR_ALLOC_TYPE_NC);
    check(uar != NULL, "mlx5dv_devx_alloc_uar");
    uars.push_back(uar);
    return {uars.size() - 1, uar->page_id};
}

/* devx_eqn CONTEXT VECTOR -> number of the event queue */
numbers_t cmd_devx_eqn(const words_t &words)
{
    uint32_t eqn;

    errno = mlx5dv_devx_query_eqn(item(contexts, words, 1).ibv,
                                  number(words, 2), &eqn);
    check(errno == 0, "mlx5dv_devx_query_eqn");
    return {eqn};
}

/* devx_general CONTEXT OUT_SIZE IN */
numbers_t cmd_devx_general(const words_t &words)
{
    mailboxes box(words, 2);
    int ret;

    ret = mlx5dv_devx_general_cmd(item(contexts, words, 1).ibv, box.in.get(),
                                  box.in_size, box.out.get(), box.out_size);
    return box.answer(ret, 0);
}

/* devx_create CONTEXT OUT_SIZE IN */
numbers_t cmd_devx_create(const words_t &words)
{
    mailboxes box(words, 2);
    mlx5dv_devx_obj *obj;

    errno = 0;
    obj   = mlx5dv_devx_obj_create(item(contexts, words, 1).ibv, box.in.get(),
                                   box.in_size, box.out.get(), box.out_size);
    if (obj == NULL) {
        return box.answer((errno != 0) ? errno : -1, UINT64_MAX);
    }
    objs.push_back(obj);
    return box.answer(0, objs.size() - 1);
}

/* devx_modify OBJECT OUT_SIZE IN, devx_query ... */
numbers_t cmd_devx_obj(const words_t &words)
{
    mailboxes box(words, 2);

    return box.answer(((words[0] == "devx_modify") ?
                       mlx5dv_devx_obj_modify : mlx5dv_devx_obj_query)
                      (item(objs, words, 1), box.in.get(), box.in_size,
                       box.out.get(), box.out_size), number(words, 1));
}

/* devx_qp_modify QP OUT_SIZE IN, devx_qp_query ...: of a QP that verbs made */
numbers_t cmd_devx_qp(const words_t &words)
{
    mailboxes box(words, 2);

    return box.answer(((words[0] == "devx_qp_modify") ?
                       mlx5dv_devx_qp_modify : mlx5dv_devx_qp_query)
                      (item(qps, words, 1).ibv, box.in.get(), box.in_size,
                       box.out.get(), box.out_size), number(words, 1));
}

/* devx_destroy OBJECT */
numbers_t cmd_devx_destroy(const words_t &words)
{
    errno = mlx5dv_devx_obj_destroy(item(objs, words, 1));
    check(errno == 0, "mlx5dv_devx_obj_destroy");
    return {};
}

/* devx_nulls: handles that are none -> errors of each call */
numbers_t cmd_devx_nulls(const words_t &words)
{
    ibv_context *ibv = item(contexts, words, 1).ibv;
    uint32_t box[68] = {};
    numbers_t result;

    result.push_back(mlx5dv_devx_obj_destroy(NULL));
    result.push_back(mlx5dv_devx_obj_modify(NULL, box, sizeof(box), box,
                                            sizeof(box)));
    result.push_back(mlx5dv_devx_obj_query(NULL, box, sizeof(box), box,
                                           sizeof(box)));
    result.push_back(mlx5dv_devx_qp_modify(NULL, box, sizeof(box), box,
                                           sizeof(box)));
    result.push_back(mlx5dv_devx_qp_query(NULL, box, sizeof(box), box,
                                          sizeof(box)));
    result.push_back(mlx5dv_devx_general_cmd(NULL, box, sizeof(box), box,
                                             sizeof(box)));
    result.push_back(mlx5dv_devx_general_cmd(ibv, NULL, sizeof(box), box,
                                             sizeof(box)));
    result.push_back(mlx5dv_devx_general_cmd(ibv, box, sizeof(box), NULL,
                                             sizeof(box)));
    result.push_back(mlx5dv_devx_umem_dereg(NULL));
    result.push_back((mlx5dv_devx_umem_reg(ibv, box, 0, 0) == NULL) ? errno :
                                                                      0);
    result.push_back((mlx5dv_devx_umem_reg(NULL, box, 8, 0) == NULL) ? errno :
                                                                       0);
    result.push_back(mlx5dv_devx_query_eqn(ibv, 0, NULL));
    result.push_back(mlx5dv_devx_query_eqn(NULL, 0, box));
    mlx5dv_devx_destroy_event_channel(NULL);
    mlx5dv_devx_free_uar(NULL);
    return result;
}

/* devx_channel CONTEXT -> channel */
numbers_t cmd_devx_channel(const words_t &words)
{
    mlx5dv_devx_event_channel *channel;

    channel = mlx5dv_devx_create_event_channel(
            item(contexts, words, 1).ibv,
            MLX5_IB_UAPI_DEVX_CR_EV_CH_FLAGS_OMIT_DATA);
    check(channel != NULL, "mlx5dv_devx_create_event_channel");
    channels.push_back(channel);
    return {channels.size() - 1};
}

/* devx_subscribe CHANNEL OBJECT EVENT COOKIE */
numbers_t cmd_devx_subscribe(const words_t &words)
{
    uint16_t event = number(words, 3);

    errno = mlx5dv_devx_subscribe_devx_event(item(channels, words, 1),
                                             item(objs, words, 2),
                                             sizeof(event), &event,
                                             number(words, 4));
    check(errno == 0, "mlx5dv_devx_subscribe_devx_event");
    return {};
}

/* devx_event CHANNEL TIMEOUT_MS -> nothing, or: cookie */
numbers_t cmd_devx_event(const words_t &words)
{
    mlx5dv_devx_event_channel *channel = item(channels, words, 1);
    mlx5dv_devx_async_event_hdr event  = {};

    if (!wait_fd(channel->fd, number(words, 2))) {
        return {};
    }
    check(mlx5dv_devx_get_event(channel, &event, sizeof(event)) >= 0,
          "mlx5dv_devx_get_event");
    return {event.cookie};
}

/* bytes MEMORY OFFSET HEX */
numbers_t cmd_bytes(const words_t &words)
{
    memory &m              = item(memories, words, 1);
    const std::string &hex = words.at(3);
    uint64_t offset        = number(words, 2);

    check(offset + hex.size() / 2 <= m.size, "out of the memory's bounds");
    for (size_t i = 0; i < hex.size() / 2; ++i) {
        m.addr[offset + i] = strtoul(hex.substr(2 * i, 2).c_str(), NULL, 16);
    }
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return {};
}

/* peek MEMORY OFFSET LENGTH -> bytes */
numbers_t cmd_peek(const words_t &words)
{
    memory &m = item(memories, words, 1);
    numbers_t result;

    check(number(words, 2) + number(words, 3) <= m.size,
          "out of the memory's bounds");
    for (size_t i = 0; i < number(words, 3); ++i) {
        result.push_back(((volatile uint8_t*)m.addr)[number(words, 2) + i]);
    }
    return result;
}

/* devx_ring UAR OFFSET VALUE: a doorbell, in host byte order */
numbers_t cmd_devx_ring(const words_t &words)
{
    mlx5dv_devx_uar *uar = item(uars, words, 1);

    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    *(volatile uint64_t*)((char*)uar->base_addr + number(words, 2)) =
            htobe64(number(words, 3));
    return {};
}

} /* namespace agent */
