/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Mode extended: requests of an atomic, whose memory was used before.
 */
#include "test_varuna_recovery.h"

extern "C" {
#include <uct/ib/varuna/requester/extended/varuna_amo_ext.h>
}

class test_varuna_amo_ext : public test_varuna_recovery {
protected:
    static constexpr uint64_t TOKEN = 0x70ce;
    static constexpr int      JUNK  = 0xa5;

    virtual void init()
    {
        static ucs_mpool_ops_t ops = {ucs_mpool_chunk_malloc, ucs_mpool_chunk_free,
                                      [](ucs_mpool_t *mp, void *obj, void *chunk) {
                                          memset(obj, JUNK, sizeof(uct_varuna_amo_ext_t));
                                      }};
        uint64_t mark = uct_varuna_mark(1, UCT_VARUNA_MARK_PENDING);
        uct_varuna_ep_ext_t *ext;

        test_varuna_recovery::init();
        ASSERT_UCS_OK(uct_varuna_compat_mpool_init(&host->requester()->pools.amos,
                                                   sizeof(uct_varuna_amo_ext_t), 64, &ops,
                                                   "amo"));
        host->requester()->amo = &uct_varuna_amo_extended_ops;
        uct_varuna_amo_extended_ops.init(ep);
        ext                   = uct_varuna_ep_ext(ep);
        ext->home.nic         = 0;
        ext->arena.read.rkey  = (uct_rkey_t)&rkey;
        ext->arena.mark.rkey  = (uct_rkey_t)&rkey;
        ext->arena.write.rkey = (uct_rkey_t)&rkey;
        uct_varuna_slots_init(&ext->slots, 0, 1, &mark, ucs_get_time());
        rkey.token            = TOKEN;
    }

    virtual void cleanup()
    {
        ep->remote.logs_addr = 0;
        ep->ask.retry.tries  = 0; /* Nothing to close */
        uct_varuna_ep_t_delete(&ep->super.super);
        ucs_mpool_cleanup(&host->requester()->pools.amos, 1);
        host->requester()->amo = &amo_ops();
        ep                     = create();
        test_varuna_recovery::cleanup();
    }

    ucs_status_t start(uct_atomic_op_t op)
    {
        uct_varuna_amo_args_t args = {};

        args.type        = UCT_VARUNA_REQ_CSWAP;
        args.op          = op;
        args.width       = sizeof(uint64_t);
        args.compare     = 5;
        args.value       = 6;
        args.remote_addr = TARGET;
        args.rkey        = (uct_rkey_t)&rkey;
        args.result      = &result;
        args.comp        = &m_comp;
        return uct_varuna_amo_start(ep, &args);
    }

    uint64_t result = 0;
};

/* Its key is a copy: what is not copied is taken from nowhere */
UCS_TEST_F(test_varuna_amo_ext, request_has_the_whole_key) {
    const uct_varuna_req_t *req;

    open_rc(100);
    ASSERT_EQ(UCS_INPROGRESS, start(UCT_ATOMIC_OP_ADD));
    ASSERT_EQ(1u, ep->hot.num_reqs);
    req = ep->hot.reqs.tail;
    ASSERT_EQ(UCT_VARUNA_REQ_GET_BCOPY, (int)req->type);
    EXPECT_EQ(UCT_VARUNA_DEVICE_HOST, (int)req->device);
    EXPECT_EQ(TOKEN, req->user.token);
}
