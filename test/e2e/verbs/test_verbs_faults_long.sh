#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# All fault tests that NICs without direct verbs can pass. RC_VARUNA_SWEEP,
# RC_VARUNA_CHAOS and RC_VARUNA_FAILOVER make them longer, as on other NICs.

. "$(dirname "${BASH_SOURCE[0]}")/ft_verbs.sh"

test_failover() { on_verbs stories/test_failover; }
test_sweep() { on_verbs sweep/test_sweep; }
test_chaos() { on_verbs chaos/test_chaos; }
test_detectors() { on_verbs stories/test_detectors; }
test_peers() { on_verbs peers/test_peers; }
test_atomics() { on_verbs atomics/test_atomics; }
test_atomics_chaos() { on_verbs atomics/test_atomics_chaos; }
test_atomics_sweep() { on_verbs atomics/test_atomics_sweep; }
test_atomics_order() { on_verbs atomics/test_atomics_order; }

run_tests
