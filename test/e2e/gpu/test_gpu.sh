#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# ucx_perftest with the memory of a GPU: tags, puts and gets over rc_varuna, whose link is cut
# meanwhile, and over rc_mlx5 without a cut. Prints a table. Needs an NVIDIA GPU and
# a UCX with CUDA (configure --with-cuda --with-verbs --with-mlx5-dv --enable-mt):
#
#     contrib/test_ucx.sh PREFIX SRC test_gpu
#
# On real NICs: two hosts, and these options of ucx_perftest with "rc_varuna_run".

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_env.sh"

# perf TLS TEST SIZE [COUNT]: the MB/s of a run between two hosts
perf() {
    local server count=${4:-2000}
    next_port
    set -- "$1" -m cuda -t "$2" -s "$3" -n "$count" -w 10 -p "$port"
    UCX_TLS=$1,cuda_copy timeout 300 "$emu" exec -n "$fabric" 0 -- "$run" ucx_perftest "${@:2}" \
        >server.log 2>&1 &
    server=$!
    await_listener "$port" $server
    UCX_TLS=$1,cuda_copy timeout 300 "$emu" exec -n "$fabric" 1 -- "$run" ucx_perftest localhost \
        "${@:2}" >client.log 2>&1 || fail "$*: $(tail -n 4 client.log)"
    wait "$server" || fail "$*: the server: $(tail -n 4 server.log)"
    awk '/^Final:/ { print $(NF - 2) }' client.log
}

test_gpu_memory() {
    local what size rate
    [ -e /dev/nvidia0 ] || fail "there is no NVIDIA GPU"
    grep -q 'Transport: cuda_copy' < <(ucx_info -d) || fail "this UCX has no CUDA"
    echo "# test, bytes, rc_varuna with a cut (MB/s), rc_mlx5 (MB/s)"
    for what in tag_bw ucp_put_bw ucp_get; do
        for size in 65536 4194304; do
            fabric_up
            fault packet link=0 nth=1000 down=1:0
            rate=$(perf rc_varuna $what $size)
            faults_fired
            grep -q 'rc_varuna: switched' client.log server.log || fail "nothing was switched"
            fabric_up
            echo "# $what $size $rate $(perf rc_mlx5 $what $size)"
        done
    done
}

run_tests
