#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Memory of devices, registered by dmabufs, for which memory files stand (lib/ft_device.h):
# the sweep, chaos, dead NICs, both modes of the log, and leaks. Needs UCX 1.18 or later:
#
#     contrib/test_ucx.sh PREFIX SRC test_dmabuf
#
# What is for a device reaches memory late (the emulator's late-write), and later than what
# is for the host.

export TMPDIR=/dev/shm # dmabufs of files exist there alone
. "$(dirname "${BASH_SOURCE[0]}")/../lib/tap.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_env.sh"
. "$top/test/e2e/lib/ft_jobs.sh"

# The CPU executes no atomics on such memory
export UCX_RC_VARUNA_ATOMIC_MODE=native RC_VARUNA_TEST_DEVICE=server
export UCX_RC_VARUNA_RETURN_DELAY=inf

# sweep OPTIONS...
sweep() {
    drive ft_sweep "$@"
    grep -q '^swept: [1-9]' out || fail "no fault fired"
}

test_rc_fails() {
    local log
    for log in all fallback; do
        UCX_RC_VARUNA_LOG=$log sweep -p rc -s put_zcopy,put_bcopy,get_zcopy,am_zcopy,flush,mixed0 -t 7
    done
}

# A put from such memory is left to the policy if only its data can tell: it is repeated
test_buffers_of_devices() {
    RC_VARUNA_TEST_DEVICE=all sweep -p rc -s put_zcopy,get_zcopy,am_zcopy,mixed3 -t 7
    RC_VARUNA_TEST_DEVICE=all sweep -p dc -s put_zcopy -t 9
}

test_dc_fails() {
    sweep -p dc -s put_zcopy,get_zcopy,flush -t 7
}

# The traffic goes back to the first link: what the other one has written comes first
test_writes_are_late() {
    export UCX_RC_VARUNA_RETURN_DELAY=10ms
    RC_VARUNA_QUIRK=late-write sweep -p rc -s put_zcopy,put_bcopy,fence -t 7
    RC_VARUNA_QUIRK=late-write sweep -p rc -s put_zcopy -f silent -n 3 -d silent -S return -L 3
}

# cut_behind_puts: the client puts words, which are acknowledged and on their way to the device
# for up to a minute, and loses its link. @return whether the lane was RC
cut_behind_puts() {
    local i
    fabric_up --quirk late-write:60s
    jobs_start
    ask client "warm 1"
    ask client "idle 0.1"
    for i in {1..20}; do
        ask client "warm $((100 + i))"
    done
    cp memory before
    link 1:0 down
    until grep -q 'rc_varuna: switched' client.log; do
        ask client "idle 0.02"
    done
    cp memory after
    jobs_stop
    fabric_down
    grep -q 'rc_varuna: switched .*was=rc' client.log
}

# The fence brings all there before the next lane is used: the deregistration at the end finds
# nothing left
test_fence_places_what_was_accepted() {
    until cut_behind_puts; do
        rm -f ./*.in ./*.out ./*.log memory
    done
    cmp after memory || fail "puts arrived after the switch"
    ! cmp -s before after || fail "no put was late"
}

test_nics_die() {
    sweep -p rc -s put_zcopy,get_zcopy -f kill,exec_remote_kill -n 2
}

test_chaos() {
    drive ft_chaos -s 1 -n 1 -T 5
    RC_VARUNA_TEST_DEVICE=all UCX_RC_VARUNA_LOG=fallback drive ft_chaos -k -s 2 -n 1 -T 5
}

# regions: the memory regions of the fabric
regions() {
    "$emu" status -n "$fabric" --json | awk -F'[:,]' '/"regions"/ { print $2 + 0; exit }'
}

test_nothing_leaks() {
    fabric_up
    RC_VARUNA_TEST_DEVICE=all jobs_start
    ask client "run 1 put_zcopy 0"
    link 1:0 down
    ask client "run 2 put_zcopy 0"
    jobs_stop
    [ "$(regions)" = 0 ] || fail "$(regions) regions are left: $("$emu" status -n "$fabric")"
    fabric_down
}

run_tests
