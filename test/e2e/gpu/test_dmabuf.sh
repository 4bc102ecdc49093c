#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Memory of devices, registered by dmabufs, for which memory files stand (lib/ft_device.h):
# the sweep, chaos, dead NICs, both modes of the log, programs of UCP, and leaks. Needs UCX 1.18 or later:
#
#     contrib/test_ucx.sh PREFIX SRC test_dmabuf
#
# What is for a device reaches memory late (the emulator's late-write), and later than what
# is for the host.

export TMPDIR=/dev/shm # dmabufs of files exist there alone
. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_jobs.sh"

# The CPU executes no atomics on such memory
export UCX_RC_VARUNA_ATOMIC_MODE=native RC_VARUNA_TEST_DEVICE=server
export UCX_RC_VARUNA_RETURN_DELAY=inf
# The responder's NIC is a thread that may be without a CPU for longer than its fence may take:
# then RC has no evidence, which the sweep does not accept
of_rc=UCX_RC_VARUNA_PACKET_LIFETIME=1s

# sweep OPTIONS...
sweep() {
    drive ft_sweep "$@"
    grep -q '^swept: [1-9]' out || fail "no fault fired"
}

test_rc_fails() {
    local log
    for log in all fallback; do
        export UCX_RC_VARUNA_LOG=$log "${of_rc?}"
        sweep -p rc -s put_zcopy,put_bcopy,get_zcopy,am_zcopy,flush,mixed0 -t 7
    done
}

# A put from such memory is left to the policy if only its data can tell: it is repeated
test_buffers_of_devices() {
    RC_VARUNA_TEST_DEVICE=all sweep -p dc -s put_zcopy -t 9
    export "${of_rc?}"
    RC_VARUNA_TEST_DEVICE=all sweep -p rc -s put_zcopy,get_zcopy,am_zcopy,mixed3 -t 7
}

test_dc_fails() {
    sweep -p dc -s put_zcopy,get_zcopy,flush -t 7
}

# The traffic goes back to the first link: what the other one has written comes first
test_writes_are_late() {
    export UCX_RC_VARUNA_RETURN_DELAY=10ms "${of_rc?}"
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
}

# ucp LOG ARGUMENT...: ucx_perftest whose memory is a device's, and whose link is cut
ucp() {
    local server log=$1
    shift
    next_port
    export UCX_TLS=rc_varuna UCX_RC_VARUNA_LOG=$log
    fabric_up
    fault packet type=rc link=0 nth=300 down=1:0
    FT_DEVICES=server.devices timeout 300 "$emu" exec -n "$fabric" 0 -- ./launch ucx_perftest -p "$port" "$@" \
        >server.log 2>&1 &
    server=$!
    await_listener "$port" $server
    FT_DEVICES=client.devices timeout 300 "$emu" exec -n "$fabric" 1 -- ./launch ucx_perftest \
        -p "$port" localhost "$@" >client.log 2>&1 || fail "$*: $(tail -n 4 client.log)"
    wait "$server" || fail "$*: the server: $(tail -n 4 server.log)"
    faults_fired
    grep -q 'rc_varuna: switched' client.log server.log || fail "$*: nothing was switched"
    [ -s server.devices ] && [ -s client.devices ] || fail "$*: no memory was a device's"
    ! grep -E ' (ERROR|FATAL) |ibv_dealloc_pd|Assertion' client.log server.log |
        grep -vE ' (netlink|sock)\.c:' || fail "$*: errors were logged"
    [ "$(regions)" = 0 ] || fail "$*: $(regions) regions are left"
    rm -f ./*.devices
}

test_ucp_programs() {
    local src include
    src=$(sed -n 's/^S\["UCX_SRC"\]="\(.*\)"$/\1/p' "$RCV_BUILD/config.status")
    include=$(dirname "$(dirname "$(command -v ucx_info)")")/include
    check gcc -shared -fPIC -Wall -Wextra -Werror -D_GNU_SOURCE -I"$src/src" -I"$include" \
        -o device.so "$top/test/e2e/gpu/device.c" -ldl
    cat >launch <<END
#!/bin/sh
exec "$run" sh -c 'LD_PRELOAD=$PWD/device.so:\$LD_PRELOAD exec "\$@"' sh "\$@"
END
    chmod +x launch
    ucp all -t ucp_put_bw -s 65536 -n 500
    ucp fallback -t ucp_get -s 65536 -n 500
    ucp fallback -t ucp_put_lat -s 4096 -n 1000
    UCX_RNDV_SCHEME=put_zcopy UCX_RNDV_THRESH=1000 ucp all -t tag_bw -s 65536 -n 500
    UCX_RNDV_SCHEME=get_zcopy UCX_RNDV_THRESH=1000 ucp all -t tag_lat -s 65536 -n 300
}

run_tests
