#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# rc_varuna_check: good NICs pass all checks. Each quirk makes its own check fail, and
# no other one. Bad input gives clear messages.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_fabric.sh"

check_program=$RCV_PREFIX/bin/rc_varuna_check

server_options=()

# server_start [OPTION...]: starts the server on host 1
server_start() {
    next_port
    timeout 600 "$emu" exec -n "$fabric" 1 -- "$check_program" --bind 127.0.0.1 \
        -p $port "${server_options[@]}" "$@" server >server.log 2>&1 &
    server=$!
    await_listener $port $server
}

# emu_command ARGUMENT...: prints a shell command for --cut and similar options
emu_command() {
    echo "env -u LD_PRELOAD $emu $1 -n $fabric ${*:2} >/dev/null"
}

# run_check STATUS [OPTION...]: runs the client on host 0, which must end with STATUS
run_check() {
    local want=$1 status=0
    shift
    server_start
    timeout 600 "$emu" exec -n "$fabric" 0 -- "$check_program" -p $port --quick "$@" \
        127.0.0.1 >out 2>err </dev/null || status=$?
    wait $server || fail "the server failed: $(cat server.log)"
    [ $status -eq "$want" ] ||
        fail "status $status instead of $want: $(grep -E 'FAILED|warning|untested' out) $(cat err)"
}

# result STATUS CHECK [PATTERN]: checks a line of the output
result() {
    grep -qE "^$2 +$1 .*${3:-}" out || fail "no \"$1\" of $2: $(grep "^$2" out)"
    # An explanation and advice follow a failure
    case $1 in
    FAILED | warning) grep -qE '^  .{20}' < <(grep -A 1 "^$2: ." out) || fail "$2 is not explained" ;;
    esac
}

# no_other_fails CHECK...: checks that no other check failed
no_other_fails() {
    local names
    names=$(awk '$2 == "FAILED" { print $1 }' out | sort -u | grep -vxF "$(printf '%s\n' "$@")") || true
    [ -z "$names" ] || fail "these failed, too: $names"
}

# quirk_found QUIRKS CHECK CHECKS RESULT [PATTERN]: runs only CHECKS with these quirks,
# and verifies the result of CHECK
quirk_found() {
    local status=3
    [ "$4" != FAILED ] || status=1
    fabric_up --quirk "$1"
    run_check $status --only "$3" "${options[@]}"
    result "$4" "$2" "${5:-}"
    check "$emu" quirk -n "$fabric" list --check >quirks
}

options=()

cut_options() {
    options=(--cut "$(emu_command link "${1:-0:1}" "${2:-down}")"
             --restore "$(emu_command link "${1:-0:1}" up)")
}

test_kind_nics_pass() {
    fabric_up
    cut_options
    run_check 0 "${options[@]}" --kill "$(emu_command nic 0:1 kill)"
    # That commands are slow may be due to this machine
    ! grep -qE '^[a-z0-9-]+ +(warning|untested|FAILED)' < <(grep -vE '^commands +warning' out) ||
        fail "$(cat out)"
    grep -q 'can be trusted' out || fail "$(tail -n 1 out)"
    # Each check has a result
    for name in port mlx5 dct bond ucx-device ucx-build ooo-sl-mask memlock files relaxed-ordering dmabuf \
        flush last-wqe cq-arm commands links planes mtu pkey grh gids psn order order-forced order-strong fence-err fence-reset \
        psn-memory fused-post cut-psn cut-status port-event loopback addresses dead-commands \
        dead-writes; do
        grep -qE "^$name " out || fail "$name has not run"
    done
}

# The server runs none of its own checks then
test_only_on_the_server() {
    server_options=(--only psn)
    fabric_up
    run_check 3 --only psn
    result ok psn
}

# A cut without a port event here: PSN and memory agree nevertheless
test_silent_cut() {
    fabric_up
    cut_options 0:1 silent
    run_check 3 --only cut-psn "${options[@]}"
    result ok cut-psn
    result ok cut-status 'retry counter exceeded'
}

test_json() {
    fabric_up --quirk psn-lost
    run_check 1 --json --only psn,port
    python3 -c '
import json, sys
d = json.load(open("out"))
assert d["trusted"] is False
bad = [r for r in d["results"] if r["status"] == "failed"]
assert bad and all(r["check"] == "psn" and r["advice"] and r["means"] for r in bad)
assert {r["host"] for r in d["results"]} == {"client", "server"}' || fail "$(cat out)"
}

test_nobody_cuts() {
    fabric_up
    run_check 3 --only cut-psn,dead-commands
    result untested cut-psn
    result untested dead-writes
}

# Ports of hosts have other MTUs, or one host has the option. Other checks work nevertheless
test_mtu_differs() {
    fabric_up --mtu 1:0=2048
    run_check 1 --only mtu,psn,links
    result FAILED mtu 'path MTU 4096 here, 2048 there'
    [ "$(grep -cE '^mtu +ok .*path MTU 4096 on both sides' out)" -eq 1 ] || fail "$(cat out)"
    no_other_fails mtu
    UCX_IB_PATH_MTU=2048 run_check 3 --only mtu
    result ok mtu 'path MTU 2048 on both sides'
    fabric_up --quirk no-mlx5dv --mtu 1=1024
    run_check 3 --only mtu,links
    result note mtu 'path MTU 4096 here, 1024 there'
    no_other_fails
}

test_psn_lost() { quirk_found psn-lost psn psn FAILED 'after ERR.*lost'; no_other_fails psn; }
test_psn_stale() { quirk_found psn-stale psn psn FAILED 'after ERR.*stale'; }
test_psn_always_stale() { quirk_found psn-stale:1 psn psn FAILED 'in RTS.*stale'; }
test_ooo() {
    quirk_found ooo:8:2ms:50 order ooo-sl-mask,order FAILED
    result warning ooo-sl-mask
    # Both ways to have order work, and what the context says is what happens
    result ok order-forced ' 0 of .*dp_ordering 0, forced'
    result ok order-strong ' 0 of .*dp_ordering 1, not forced'
    no_other_fails order
}
test_ooo_all() { quirk_found ooo-all:8:2ms:50 ooo-sl-mask ooo-sl-mask,order FAILED 0xffff; }
test_late_write() { quirk_found late-write:1s fence-err fence-err FAILED; no_other_fails fence-err; }
test_no_last_wqe() { quirk_found no-last-wqe last-wqe last-wqe warning; }
test_late_last_wqe() { quirk_found late-last-wqe:100ms last-wqe last-wqe ok 'after [1-9][0-9][0-9]'; }
test_late_flush() { quirk_found late-flush:60s flush flush FAILED ' 0 of '; no_other_fails flush; }
test_blind_arm() { quirk_found blind-arm cq-arm cq-arm note 'no event'; no_other_fails cq-arm; }
test_same_gid() { quirk_found same-gid gids gids,links warning; result ok links; }
test_miswired() { quirk_found 1=miswired links links FAILED 'wrong cabling'; }
test_roce() { quirk_found roce port port,links,ooo-sl-mask ok RoCE; result ok links; result note ooo-sl-mask ' "order" decides'; }
# UCX takes the P_Key of which a port is a full member. Two limited members are unreachable
test_limited_pkey() {
    quirk_found limited-pkey pkey pkey,port,links ok 'P_Key 0x8001, at index 1'
    result ok links
    result ok port '2 P_Keys'
    UCX_IB_PKEY=0x7fff quirk_found limited-pkey pkey pkey,links FAILED 'two limited members'
    result FAILED links
}
test_pkeys_differ() {
    quirk_found 0=limited-pkey pkey pkey,links FAILED '0x8001 here, 0xffff there: two partitions'
    result FAILED links
}

# The GRH that an option asks for arrives
test_grh() {
    fabric_up
    UCX_IB_IS_GLOBAL=y run_check 3 --only grh,links,psn
    result ok grh 'packets have a GRH'
    result ok links
    no_other_fails
}

# Without the objects of DEVX that UCX is told not to make, all is as with verbs
test_ucx_without_devx_objects() {
    fabric_up
    UCX_IB_MLX5_DEVX_OBJECTS=dct run_check 3 --only port,psn,order,flush,last-wqe
    ! grep -qE '^(dct|order-strong)|DEVX: 8|by DEVX' out || fail "$(cat out)"
    result ok order
    no_other_fails
}

test_another_ucx() {
    local libdir
    libdir=$(sed -n 's/^S\["UCX_LIBDIR"\]="\(.*\)"$/\1/p' "$RCV_BUILD/config.status")
    mkdir -p ucx/ucx
    cp "$libdir"/libuc[mpst].so.0 ucx
    cp "$libdir"/ucx/libuct_ib*.so.0 ucx/ucx
    check objcopy --dump-section .note.gnu.build-id=note ucx/libuct.so.0 unused
    printf '\xa5\x5a' | dd of=note bs=1 seek=$(($(stat -c %s note) - 2)) conv=notrunc 2>dd.log
    check objcopy --update-section .note.gnu.build-id=note ucx/libuct.so.0
    fabric_up
    LD_LIBRARY_PATH=$PWD/ucx run_check 1 --only ucx-build
    result FAILED ucx-build "$PWD/ucx/libuct.so.0 has build-id [0-9a-f]+, and rc_varuna was built"
}

test_bond() {
    local quirk=bond
    options=()
    fabric_up --links 4 --quirk $quirk
    run_check 3 --only port
    result warning bond 'one link'
    result ok mlx5
}
test_bond_without_dc() {
    fabric_up --links 4 --quirk bond:10ms:0
    run_check 3 --only port
    result warning mlx5 'lag_dct.*lanes over rc_verbs'
}
test_no_mlx5dv() { quirk_found no-mlx5dv mlx5 port warning 'lanes over rc_verbs'; }
test_no_devx() {
    fabric_up --no-devx
    run_check 3 --only port,psn,ooo-sl-mask
    result untested mlx5
    result warning ooo-sl-mask
}
test_fixed_port() { cut_options; quirk_found 0=fixed-port port-event cut-psn warning 'is active'; }
test_no_route() { cut_options; quirk_found 0=no-route cut-status cut-psn note 'local QP operation error'; }
test_gid_moves() { cut_options; quirk_found 0:1=gid-moves addresses cut-psn FAILED; }
test_gid_moves_on_roce() {
    cut_options
    quirk_found roce,gid-moves addresses cut-psn FAILED 'GID index 3 became'
}
test_slow_cmd() {
    options=(--kill "$(emu_command nic 0:1 kill --silent)")
    quirk_found 0=slow-cmd dead-commands dead-commands warning ' ([2-9]|[1-9][0-9]+)[.0-9]* s'
}
test_fatal_writes() {
    options=(--kill "$(emu_command nic 0:1 kill)")
    quirk_found 0=fatal-writes:10s dead-writes dead-commands warning 'still writes'
}
test_fatal_writes_with_lies() {
    options=(--kill "$(emu_command nic 0:1 kill)")
    quirk_found 0=fatal-writes:10s:1 dead-writes dead-commands warning 'still writes.*reports that ERR'
}

# Each quirk of the emulator has one of the tests above
test_every_quirk_has_a_test() {
    local quirk quirks tested
    tested=$(declare -f | sed -nE 's/.*(quirk_found|quirk=|--quirk) ?([a-z0-9:,=-]+).*/\2/p' |
        tr ',' '\n' | sed 's/.*=//; s/:.*//' | sort -u)
    fabric_up
    quirks=$("$emu" quirk -n "$fabric" list --json |
        python3 -c 'import json, sys; print(*[q["name"] for q in json.load(sys.stdin)])')
    [ "$(wc -w <<<"$quirks")" -ge 15 ] || fail "the emulator has only the quirks $quirks"
    for quirk in $quirks; do
        case $quirk in
        same-key | dead-sl) continue ;; # The plugin handles them: test_keys, test_hardware
        esac
        grep -qxF -e "$quirk" <<<"$tested" || fail "no test of the quirk $quirk: $tested"
    done
}

# Bad input
test_wrong_command_line() {
    fails 2 'expected "server"' "$check_program"
    fails 2 'expected "server"' "$check_program" a b
    fails 2 'not "nonsense". Choose from port .*psn' "$check_program" --only psn,nonsense,port server
    fails 2 'not ""' "$check_program" --only psn, server
    fails 2 'number below' "$check_program" --link x server
    fails 2 'TCP port' "$check_program" -p 0 server
    fails 0 '^rc_varuna_check [0-9]' "$check_program" --version
    fails 0 'Exit status' "$check_program" --help
}

test_no_devices() {
    # Without the emulator; a real device has another name
    fails 1 'no RDMA device called nothing_0|ports in "nothing_0" exist' \
        "$check_program" -d nothing_0 server
}

test_unknown_host() {
    fabric_up
    fails 1 'no.such.host.invalid port 18520: ' "$emu" exec -n "$fabric" 0 -- \
        "$check_program" no.such.host.invalid
    fails 1 'cannot connect to 127.0.0.1 port 9: ' "$emu" exec -n "$fabric" 0 -- \
        "$check_program" -p 9 127.0.0.1
}

# stranger PYTHON: runs a server that answers a hello with these bytes; head() makes a
# header
stranger() {
    python3 -c '
import socket, struct, sys
s = socket.socket(); s.bind(("127.0.0.1", int(sys.argv[1]))); s.listen(1)
def head(version=2, type=0, length=0, error=0, magic=0x72637663):
    return struct.pack("=IHHIi", magic, version, type, length, error)
c, _ = s.accept(); c.recv(65536)
c.sendall(eval(sys.argv[2])); c.shutdown(socket.SHUT_WR)
try:
    c.recv(65536)
except ConnectionError:
    pass' "$port" "$1" &
    await_listener $port $!
}

test_strange_servers() {
    local answer pattern
    fabric_up
    while IFS='|' read -r pattern answer; do
        next_port
        stranger "$answer"
        fails 1 "$pattern" timeout 300 "$emu" exec -n "$fabric" 0 -- \
            "$check_program" -p $port 127.0.0.1
    done <<'END'
has version 7 of the protocol|head(version=7)
is not rc_varuna_check|b"HTTP/1.1 400 Bad Request\r\n\r\n"
sent a wrong message|head(length=1 << 30)
sent a wrong message|head(type=99)
answer is wrong|head(type=1)
closed the connection|head(length=712)
closed the connection|b""
ports are invalid|head(length=712) + b"\xff" * 712
END
    wait
}

# strange_client PYTHON PATTERN: a client sends these bytes; the server must exit with a
# message that matches
strange_client() {
    local status=0
    server_start
    python3 -c '
import socket, struct, sys
c = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
def head(version=2, type=0, length=0, error=0):
    return struct.pack("=IHHIi", 0x72637663, version, type, length, error)
c.sendall(eval(sys.argv[2])); c.shutdown(socket.SHUT_WR); c.recv(65536)' "$port" "$1"
    wait $server || status=$?
    [ $status -eq 1 ] && grep -q "$2" server.log ||
        fail "status $status, $(cat server.log), instead of $2"
}

test_strange_clients() {
    fabric_up
    strange_client 'head(version=0)' 'version 0 of the protocol'
    strange_client 'head(type=2, length=5) + b"abcde"' 'wrong request'
    strange_client 'head(length=712) + b"\xff" * 712' "client's ports are invalid"
    # A request before a hello or before a queue pair is refused, and the server
    # continues
    strange_client 'head(type=2, length=20) + b"\xff" * 20 + head(type=6, length=16) + b"\xff" * 16 + head(version=3)' \
        'version 3'
}

test_killed_server() {
    fabric_up
    server_start
    # The client waits until the server is dead
    timeout 600 "$emu" exec -n "$fabric" 0 -- "$check_program" -p $port \
        --only cut-psn --cut "touch $PWD/half; while [ -e $PWD/half ]; do sleep 0.1; done" \
        --restore true 127.0.0.1 >out 2>err </dev/null &
    client=$!
    for ((i = 0; i < 600; ++i)); do
        [ ! -e half ] || break
        pause 0.1
    done
    kill -9 "$(program_of $server)"
    rm half
    status=0
    wait $client || status=$?
    [ $status -eq 1 ] || fail "status $status: $(cat out err)"
    grep -qE 'the other host' err || fail "$(cat err)"
    wait $server || true
    fabric_down --force
}

run_tests 4
