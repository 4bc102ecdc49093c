/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Mode native: where the NIC's values go.
 */
#include "test_varuna_recovery.h"

extern "C" {
#include <uct/ib/varuna/requester/amo/varuna_amo_priv.h>
}

class test_varuna_amo_native : public test_varuna_recovery {
protected:
    ucs_status_t cswap(unsigned width)
    {
        uct_varuna_amo_args_t args = {};

        comp.func        = [](uct_completion_t*) {};
        comp.count       = 1;
        comp.status      = UCS_OK;
        args.type        = UCT_VARUNA_REQ_CSWAP;
        args.op          = UCT_ATOMIC_OP_CSWAP;
        args.width       = width;
        args.compare     = 1;
        args.value       = 2;
        args.remote_addr = TARGET;
        args.rkey        = (uct_rkey_t)&rkey;
        args.result      = &result;
        args.comp        = &comp;
        return uct_varuna_amo_native_start(ep, &args);
    }

    static std::string word(uint64_t value)
    {
        return std::string((const char*)&value, sizeof(value));
    }

    static constexpr uint64_t MINE = 0x1111111111111111ul;

    uct_completion_t comp;
    uint64_t         result = MINE;
};

UCS_TEST_F(test_varuna_amo_native, user_gets_the_value) {
    open();
    ASSERT_EQ(UCS_INPROGRESS, cswap(sizeof(uint64_t)));
    EXPECT_EQ(MINE, result);
    lane(0).complete(word(7));
    EXPECT_EQ(0, comp.count);
    EXPECT_EQ(7u, result);
}

UCS_TEST_F(test_varuna_amo_native, half_a_word) {
    open();
    ASSERT_EQ(UCS_INPROGRESS, cswap(sizeof(uint32_t)));
    lane(0).complete(word(7));
    EXPECT_EQ((MINE & ~(uint64_t)UINT32_MAX) | 7, result);
}

/* The answer arrives when the user has its memory back */
UCS_TEST_F(test_varuna_amo_native, endpoint_is_destroyed_first) {
    open();
    ASSERT_EQ(UCS_INPROGRESS, cswap(sizeof(uint64_t)));
    lane(0).is_drained   = false;
    ep->remote.logs_addr = 0;
    ep->ask.retry.tries  = 0; /* Nothing to close */
    uct_varuna_ep_t_delete(&ep->super.super);
    EXPECT_EQ(0, comp.count);
    EXPECT_EQ(UCS_ERR_CANCELED, comp.status);
    lane(0).complete(word(7));
    EXPECT_EQ(MINE, result);
    lane(0).is_drained = true;
    uct_varuna_graves_progress(host->iface());
    EXPECT_EQ(0u, lane(0).eps.size());
    ep = create();
}
