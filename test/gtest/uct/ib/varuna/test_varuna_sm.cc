/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The transitions of a vQP: the effect of each event in each state.
 */
#include <common/test.h>

extern "C" {
#include <uct/ib/varuna/requester/varuna_sm.h>
}

#include <map>
#include <utility>

class test_varuna_sm : public ucs::test {
protected:
    static constexpr unsigned NONE = UCT_VARUNA_EP_STATE_LAST;

    static unsigned next(unsigned state, unsigned event)
    {
        return uct_varuna_sm_next((uct_varuna_ep_state_t)state,
                                  (uct_varuna_ep_event_t)event);
    }
};

UCS_TEST_F(test_varuna_sm, every_transition) {
    std::map<std::pair<unsigned, unsigned>, unsigned> expected = {
        {{UCT_VARUNA_EP_OPENING, UCT_VARUNA_EP_EVENT_OPENED},
         UCT_VARUNA_EP_BACKLOG},
        {{UCT_VARUNA_EP_ACTIVE, UCT_VARUNA_EP_EVENT_NEXT_READY},
         UCT_VARUNA_EP_SWAP},
        {{UCT_VARUNA_EP_ACTIVE, UCT_VARUNA_EP_EVENT_LANE_FAILED},
         UCT_VARUNA_EP_DRAIN},
        {{UCT_VARUNA_EP_SWAP, UCT_VARUNA_EP_EVENT_SWAPPED},
         UCT_VARUNA_EP_BACKLOG},
        {{UCT_VARUNA_EP_SWAP, UCT_VARUNA_EP_EVENT_LANE_FAILED},
         UCT_VARUNA_EP_DRAIN},
        {{UCT_VARUNA_EP_BACKLOG, UCT_VARUNA_EP_EVENT_POSTED},
         UCT_VARUNA_EP_ACTIVE},
        {{UCT_VARUNA_EP_BACKLOG, UCT_VARUNA_EP_EVENT_LANE_FAILED},
         UCT_VARUNA_EP_DRAIN},
        {{UCT_VARUNA_EP_DRAIN, UCT_VARUNA_EP_EVENT_AT_REST},
         UCT_VARUNA_EP_FENCE},
        /* A baseline decides without the responder */
        {{UCT_VARUNA_EP_DRAIN, UCT_VARUNA_EP_EVENT_DECIDED},
         UCT_VARUNA_EP_REPEAT},
        {{UCT_VARUNA_EP_FENCE, UCT_VARUNA_EP_EVENT_DECIDED},
         UCT_VARUNA_EP_REPEAT},
        {{UCT_VARUNA_EP_REPEAT, UCT_VARUNA_EP_EVENT_POSTED},
         UCT_VARUNA_EP_ACTIVE},
        {{UCT_VARUNA_EP_REPEAT, UCT_VARUNA_EP_EVENT_LANE_FAILED},
         UCT_VARUNA_EP_DRAIN}
    };
    unsigned state, event;

    for (state = 0; state < UCT_VARUNA_EP_FAILED; ++state) {
        expected[{state, UCT_VARUNA_EP_EVENT_FATAL}] = UCT_VARUNA_EP_FAILED;
    }

    for (state = 0; state < UCT_VARUNA_EP_STATE_LAST; ++state) {
        for (event = 0; event < UCT_VARUNA_EP_EVENT_LAST; ++event) {
            auto it = expected.find({state, event});

            EXPECT_EQ((it == expected.end()) ? +NONE : it->second,
                      next(state, event))
                    << "state " << uct_varuna_ep_state_names[state] << " event "
                    << event;
        }
    }
}

/* An error that arrives late does not begin a second recovery of the same lane. */
UCS_TEST_F(test_varuna_sm, late_errors_have_no_effect) {
    EXPECT_EQ(+NONE, next(UCT_VARUNA_EP_DRAIN, UCT_VARUNA_EP_EVENT_LANE_FAILED));
    EXPECT_EQ(+NONE, next(UCT_VARUNA_EP_FENCE, UCT_VARUNA_EP_EVENT_LANE_FAILED));
    EXPECT_EQ(+NONE, next(UCT_VARUNA_EP_OPENING,
                         UCT_VARUNA_EP_EVENT_LANE_FAILED));
}

/* Only a failure leads to REPEAT: neither the first post nor a planned change does. */
UCS_TEST_F(test_varuna_sm, repeat_follows_a_failure_only) {
    unsigned state, event;

    for (state = 0; state < UCT_VARUNA_EP_STATE_LAST; ++state) {
        for (event = 0; event < UCT_VARUNA_EP_EVENT_LAST; ++event) {
            if (next(state, event) == UCT_VARUNA_EP_REPEAT) {
                EXPECT_TRUE((state == UCT_VARUNA_EP_DRAIN) ||
                            (state == UCT_VARUNA_EP_FENCE));
            }
        }
    }
}
