# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# For tests on an emulated fabric, which source it: the fabric, its faults
# and counters, and functions that wait for a program's output. Tests wait for events,
# never for a fixed time.

declare -F run_tests >/dev/null || . "$(dirname "${BASH_SOURCE[0]}")/tap.sh"
. "$top/test/packet_lifetime.sh"

emu=$RCV_PREFIX/bin/mlx5emu
run=$RCV_PREFIX/bin/rc_varuna_run
apps=$RCV_BUILD/test/e2e
# How names of NICs begin
case ",${RC_VARUNA_QUIRK:-}," in
*,no-mlx5dv,*) nics=verbs ;;
*) nics=mlx5 ;;
esac
# run_test appends the number of the test
fabric=$(basename "$0" .sh | sed 's/^test_//')-$BASHPID

# with_quirks [QUIRK]: prints these quirks, and which NICs the test runs on
with_quirks() {
    local also=
    [ $nics = mlx5 ] || also=no-mlx5dv
    echo "$also${also:+${1:+,}}${1:-}"
}

# ucx_defaults: removes all options of UCX except for those that an emulated fabric
# needs
ucx_defaults() {
    unset "${!UCX_@}"
    . "$top/test/packet_lifetime.sh"
}

# fabric_up [OPTION...]: creates the fabric of this test, with two hosts of two links
# unless the options of "mlx5emu up" differ. It is removed when a test ends, or creates the
# next one.
fabric_up() {
    end_test
    check "$emu" up -n "$fabric" --hosts 2 --links 2 \
        ${RC_VARUNA_QUIRK:+--quirk "$RC_VARUNA_QUIRK"} ${RC_VARUNA_TIME:-} "$@"
    trap fabric_abandon EXIT
    fabric_is_up=yes
}
fabric_is_up=

# fabric_down [OPTION...]: fails if a program is still using it, unless --force is given, or if
# one has rung for a queue pair in RESET, which no document allows
fabric_down() {
    "$emu" status -n "$fabric" >status.down 2>&1 || true
    ! grep doorbells_in_reset status.down || fail "a doorbell was rung in RESET"
    check "$emu" down -n "$fabric" "$@"
    trap - EXIT
    fabric_is_up= stop=
}

# end_test: what a test that has not failed ends with, unless it has done so: $stop, which ends
# the jobs that were started, and fabric_down
stop=
end_test() {
    $stop
    [ -z "$fabric_is_up" ] || fabric_down
}

fabric_abandon() {
    jobs_kill
    "$emu" down -n "$fabric" --force >/dev/null 2>&1
    fabric_is_up= stop=
}

# jobs_kill: ends all processes that this shell has started
jobs_kill() {
    local pid
    for pid in $(jobs -p); do
        kill "$pid" 2>/dev/null || true
    done
}

# link HOST:LINK STATE
link() {
    check "$emu" link -n "$fabric" "$@"
}

# fault RULE...
fault() {
    check "$emu" fault add -n "$fabric" "$@" >/dev/null
}

# faults_fired: fails unless all faults have fired
faults_fired() {
    "$emu" fault list -n "$fabric" --check >faults.log 2>&1 ||
        fail "a fault did not fire: $(cat faults.log)"
}

# have_faults_fired: whether all faults have fired
have_faults_fired() {
    "$emu" fault list -n "$fabric" --check >faults.log 2>&1
}

# await_faults: waits until all faults have fired
await_faults() {
    comes have_faults_fired || fail "a fault did not fire: $(cat faults.log)"
}

# fabric_sum COUNTER: the sum of all its values in "mlx5emu status --json"
fabric_sum() {
    "$emu" status -n "$fabric" --json |
        awk -v name="\"$1\":" '$1 == name { sum += $2 } END { print sum + 0 }'
}

# has_rnr_waits: a process has waited for a peer's receive buffers
has_rnr_waits() {
    [ "$(fabric_sum rnr_waits)" -gt 0 ]
}

# has_lines FILE PATTERN [COUNT]: COUNT lines (1) of the file match
has_lines() {
    local count
    if [ "${3:-1}" -eq 1 ]; then
        grep -aqsE -e "$2" "$1"
        return
    fi
    count=$(grep -acE -e "$2" "$1" 2>/dev/null) || true
    [ "${count:-0}" -ge "${3:-1}" ]
}

# await SECONDS FILE PATTERN [COUNT]: waits until COUNT lines (1) of the file match. The
# seconds, or $safety if that is more, only end a hang
await() {
    local safety=$(($1 > safety ? $1 : safety))
    comes has_lines "${@:2}" ||
        fail "\"$3\" is not in $2 after $safety s: $(grep -av DEBUG "$2" | tail -n 5)"
}

# program_of PID: the program under timeout, mlx5emu exec and the launcher
program_of() {
    pgrep -P "$1" | while read -r child; do
        program_of "$child"
    done | grep . || echo "$1"
}

# nic_gives_up TIMEOUT RETRIES: sets when the NIC gives up sending a packet
nic_gives_up() {
    export UCX_RC_MLX5_TIMEOUT=$1 UCX_RC_MLX5_RETRY_COUNT=$2
    export UCX_DC_MLX5_TIMEOUT=$1 UCX_DC_MLX5_RETRY_COUNT=$2
    export UCX_RC_VERBS_TIMEOUT=$1 UCX_RC_VERBS_RETRY_COUNT=$2
}
