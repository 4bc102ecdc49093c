#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# usage: contrib/demo.sh [-r RATE] [-s SEED] [-k] [-l LAUNCHER]
#
# Builds everything, and shows a UCX program that survives the loss of links. Between
# two emulated hosts with two links each, a program over plain UCP (src/tools/demo)
# puts, gets and sends messages: first over rc_varuna, while links are cut and return;
# then the same over UCX's own rc_mlx5, which fails at the first cut.
#
#   -r RATE  operations per second (4000)
#   -s SEED  seed of the load (1)
#   -k       keep the logs even without an error
#   -l LAUNCHER
#            rc_varuna_run of another build of the plugin
#
# The exit status is 0 only if the contents of memory and messages, the completions, and
# the emulator's trace show that each operation was executed exactly once; and if each RC
# lane that failed needed no fence or was stopped by RESET, so that no switch waited for the packet lifetime.
# How long the job paused, and why, is only printed.
#
# RCV_PREFIX and RCV_BUILD: where it is installed, and its build directory. Then nothing
# is built.

set -euo pipefail
prog=demo
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
. "$top/contrib/demo_switches.sh"

rate=4000
seed=1
keep=no
launcher=
[ "${1:-}" != --help ] || set -- -h
while getopts r:s:kl:h opt; do
    case $opt in
    r) rate=$OPTARG ;;
    s) seed=$OPTARG ;;
    k) keep=yes ;;
    l) launcher=$OPTARG ;;
    h) usage; exit 0 ;;
    *) exit 2 ;;
    esac
done
[ $OPTIND -gt $# ] || die "unexpected \"${!OPTIND}\" (-h shows the usage)"

load_seconds=15
trace_entries=2000000

# By default UCX considers a silent link dead after seven retries of about a second.
# Here it is 4 x 67 ms, in both runs.
unset "${!UCX_@}"
export UCX_LOG_LEVEL=info
export UCX_RC_MLX5_TIMEOUT=60ms UCX_RC_MLX5_RETRY_COUNT=3
export UCX_DC_MLX5_TIMEOUT=60ms UCX_DC_MLX5_RETRY_COUNT=3
# An emulated NIC is a thread, which does not hang if it gets no CPU
export UCX_RC_VARUNA_DRAIN_TIMEOUT=60s

if [ -z "${RCV_PREFIX:-}" ]; then
    ensure_built
    RCV_PREFIX=$prefix RCV_BUILD=$build_dir
fi
emu=$RCV_PREFIX/bin/mlx5emu
launcher=${launcher:-$RCV_PREFIX/bin/rc_varuna_run}
program=$RCV_BUILD/src/tools/demo/varuna_demo
judge=$RCV_BUILD/src/tools/demo/demo_trace_check
dir=$(mktemp -d)
fabric=
server=
client=
failures=()

# failed WORDS...: records a reason why the demo fails
failed() {
    failures+=("$*")
}

end_processes() {
    local pid
    for pid in $client $server; do
        kill "$pid" 2>/dev/null || true
    done
    [ -z "$client$server" ] || wait $client $server 2>/dev/null || true
    client=
    server=
}

# Removes everything, even after an error
cleanup() {
    end_processes
    [ -z "$fabric" ] || "$emu" down -n "$fabric" || true
    fabric=
    [ "$keep" = yes ] || rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# field KEY FILE: prints a field of the line "summary: ..." or "trace: ..." of a file
field() {
    sed -nE "s/^(summary|trace): (.* )?$1=(\"([^\"]*)\"|([^ ]*)).*/\4\5/p" \
        "$2" 2>/dev/null | tail -n 1
}

# show: prints the lines of a log that a user wants to see
show() {
    sed -unE -e '/^summary:/d' \
        -e 's/.*(rc_varuna: switched .*)/            \1/p;t' \
        -e '/^\[[0-9]+\.[0-9]+\]/{/ (ERROR|FATAL) /p;d}' -e p
}

# start_job NAME TRANSPORT [LAUNCHER]: creates a fabric, and starts the server on host 0
# and the client on host 1; returns when the load has started
start_job() {
    local name=$1 i
    export UCX_TLS=$2
    shift 2

    fabric=demo-$$-$name
    "$emu" up -n "$fabric" --hosts 2 --links 2 --trace $trace_entries
    "$emu" exec -n "$fabric" 0 -- "$@" "$program" server -p 0 \
        -P "$dir/$name.port" -g 12 >"$dir/$name.server.log" 2>&1 &
    server=$!
    for ((i = 0; i < 1200; ++i)); do
        [ ! -s "$dir/$name.port" ] || break
        kill -0 $server 2>/dev/null || break
        pause 0.1
    done
    if [ ! -s "$dir/$name.port" ]; then
        cat "$dir/$name.server.log" >&2
        die "the server did not start"
    fi

    log=$dir/$name.client.log
    : >"$log"
    "$emu" exec -n "$fabric" 1 -- "$@" "$program" client 127.0.0.1 \
        -p "$(cat "$dir/$name.port")" -t $load_seconds -r "$rate" -s "$seed" \
        -g 12 -l "$dir/$name.ledger" -S "$dir/$name.summary" >"$log" 2>&1 &
    client=$!
    tail -n +1 -s 0.1 -f --pid=$client "$log" 2>/dev/null | show &
    viewer=$!
    while ! grep -qs '^client: ' "$log" && kill -0 $client 2>/dev/null; do
        pause 0.02
    done
    started=$(date +%s%N)
}

# at SECONDS TEXT: waits for this time of the load, and prints TEXT; fails if the client
# has ended before
at() {
    local when=$((started + (${1%.*} * 10 + ${1#*.}) * 100000000))
    while (($(date +%s%N) < when)) && kill -0 $client 2>/dev/null; do
        pause 0.05
    done
    kill -0 $client 2>/dev/null || return 1
    echo "   >>> $1 s  $2"
}

# rule RULE...: adds a fault, which must fire
rule() {
    "$emu" fault add -n "$fabric" "$@" >/dev/null
}

# await_rules: waits until all rules have fired, or the client has ended
await_rules() {
    until "$emu" fault list -n "$fabric" --check >"$dir/faults.log" 2>&1; do
        kill -0 $client 2>/dev/null || return 0
        pause 0.01
    done
}

# rules_fired: fails the demo if a rule did not fire, and removes all rules
rules_fired() {
    "$emu" fault list -n "$fabric" --check >"$dir/faults.log" 2>&1 ||
        failed "a fault did not fire: $(tr '\n' ';' <"$dir/faults.log")"
    "$emu" fault clear -n "$fabric" >/dev/null
}

link() {
    "$emu" link -n "$fabric" "$@"
}

# The same for both jobs. It ends when a job fails.
cut_links() {
    at 2.0 "the primary link is cut: acknowledgements are lost, then a port \
event" || return 0
    rule ack link=0 count=all drop
    await_rules
    link 1:0 down
    rules_fired

    at 5.0 "the primary link returns" || return 0
    link 1:0 up

    at 7.0 "the other link is cut, with a port event" || return 0
    link 1:1 down

    at 9.0 "the other link returns" || return 0
    link 1:1 up

    at 10.0 "the primary link falls silent in the middle of a large put: no \
event" || return 0
    rule packet op=write size=64k- link=0 pkt=middle silent=1:0
    await_rules
    at 12.0 "the primary link returns, and the other one, which is in use, \
is cut" || { rules_fired; return 0; }
    rules_fired
    link 1:0 up
    link 1:1 down
}

# finish_job NAME: sets client_status and server_status
finish_job() {
    client_status=0
    server_status=0
    wait $client || client_status=$?
    client=
    wait $server || server_status=$?
    server=
    wait $viewer || true
}

end_fabric() {
    "$emu" down -n "$fabric"
    fabric=
}

# check_fences: sets rc_lanes and rc_waited, and fails the demo if a switch has waited.
# All NICs live, and only links fail, so each RC lane can be stopped.
check_fences() {
    local logs=("$dir/varuna.client.log" "$dir/varuna.server.log")
    rc_lanes=$(rc_fences all "${logs[@]}" | wc -l)
    rc_waited=$(rc_fences waited "${logs[@]}" | wc -l)
    [ "$rc_waited" -eq 0 ] ||
        failed "rc_varuna: $rc_waited of $rc_lanes switches from RC between living NICs" \
               "waited for the packet lifetime instead of a RESET" \
               "(fence=$(rc_fences waited "${logs[@]}" | sort -u | paste -sd ,))"
}

run_varuna() {
    echo
    echo "=== Over rc_varuna: two hosts, two links, a put-get-message job ==="
    start_job varuna rc_varuna "$launcher"
    cut_links
    finish_job
    [ $client_status -eq 0 ] ||
        failed "rc_varuna: the client ended with status $client_status"
    [ $server_status -eq 0 ] ||
        failed "rc_varuna: the server ended with status $server_status:" \
               "$(grep "^varuna_demo: " "$dir/varuna.server.log" | tail -n 1)"
    switches=$(grep -c 'rc_varuna: switched' "$log" || true)
    [ "$switches" -ge 2 ] ||
        failed "rc_varuna: it did not log a switch of links"
    check_fences

    say "comparing the puts with what the emulator executed"
    # The judge prints errors; an incomplete trace is an error
    "$emu" trace -n "$fabric" --json 2>"$dir/trace.err" |
        "$judge" "$dir/varuna.ledger" 0 >"$dir/varuna.trace" 2>&1 ||
        failed "rc_varuna: the trace is wrong:" \
               "$(cat "$dir/varuna.trace" "$dir/trace.err" | head -n 1)"
    end_fabric
}

run_plain() {
    echo
    echo "=== The same over UCX's rc_mlx5 ==="
    start_job plain rc_x
    cut_links
    finish_job
    [ $client_status -ne 0 ] ||
        failed "rc_mlx5 survived, so the links were not cut"
    end_fabric
}

# row NAME VARUNA PLAIN: prints a row of the table
row() {
    printf '  %-28s %-34s %s\n' "$@"
}

total_ops() {
    field completed "$dir/$1.summary"
}

# msec USEC: prints microseconds as milliseconds
msec() {
    printf '%d.%d ms' $(($1 / 1000)) $(($1 % 1000 / 100))
}

# sec USEC: prints microseconds as seconds
sec() {
    printf '%d.%d s' $(($1 / 1000000)) $(($1 % 1000000 / 100000))
}

# pause_rows: prints what the longest pause of rc_varuna's job consisted of
pause_rows() {
    local v=$dir/varuna.summary count detect drain fence repeat rest
    row "longest pause" \
        "$(msec "$(field pause_us "$v")"), $(sec "$(field pause_at_us "$v")") after the start" \
        "for ever"
    read -r count detect drain fence repeat rest < <(
        pause_parts "$(field pause_start "$v")" "$(field pause_us "$v")" \
            "$dir/varuna.client.log") || return 0
    if [ "$count" -gt 0 ]; then
        row "  switches in it" "$count; the decisive one took:"
    else
        row "  switches in it" "none; the slowest switch took:"
    fi
    row "    detection" "$(msec "$detect")"
    row "    drain" "$(msec "$drain")"
    row "    fence" "$(msec "$fence")"
    row "    repeat" "$(msec "$repeat")"
    [ "$count" -eq 0 ] || row "  the rest of the pause" "$(msec "$rest")"
}

summary() {
    local v=$dir/varuna.summary p=$dir/plain.summary t=$dir/varuna.trace
    local c=$dir/varuna.client.log bytes
    bytes=$(($(field puts_bytes "$v") + $(field gets_bytes "$v") + \
             $(field readbacks_bytes "$v") + $(field messages_bytes "$v")))

    echo
    echo "=== Summary ==="
    echo
    row "" rc_varuna rc_mlx5
    row "operations completed" \
        "$(($(field completed "$v") - $(field failed "$v"))) of $(field posted "$v")" \
        "$(($(field completed "$p") - $(field failed "$p"))) of $(field posted "$p")"
    row "  puts, gets, messages" \
        "$(field puts "$v"), $(($(field gets "$v") + $(field readbacks "$v"))), $(field messages "$v")"
    row "  megabytes" $((bytes / 1000000))
    row "completed with an error" "$(field failed "$v")" "$(field failed "$p")"
    row "completed twice" "$(field doubled "$v")" "$(field doubled "$p")"
    row "endpoints switched" "$switches times" never
    row "  executed, though in flight" "$(switch_sum executed "$c") (not repeated)"
    row "  lost in flight" "$(switch_sum lost "$c")"
    row "  repeated" "$(switch_sum repeated "$c")"
    row "  ambiguous" "$(switch_sum ambiguous "$c")"
    row "RC lanes left without a wait" "$((rc_lanes - rc_waited)) of $rc_lanes, of both hosts"
    pause_rows
    row "contents of memory" \
        "$(field slots "$v") slots, $(field bad_slots "$v") wrong" unknown
    row "gets compared" "$(field bad_gets "$v") wrong" \
        "$(field bad_gets "$p") wrong"
    row "messages in order, once" \
        "$(field received "$v") of $(field messages "$v")" unknown
    row "puts executed, by the trace" \
        "$(field executed "$t") of $(field puts "$t"), $(field errors "$t") errors"
    row "  suppressed duplicates" "$(field suppressed "$t")"
    row "  cut in the middle, repeated" "$(field cut "$t")"
    row "the job" \
        "$([ "$(field ok "$v")" = 1 ] && echo finished || echo FAILED)" \
        "died: $(field error "$p")"
    echo
}

run_varuna
run_plain
[ ! -s "$dir/varuna.summary" ] || [ ! -s "$dir/plain.summary" ] || summary

if [ ${#failures[@]} -gt 0 ]; then
    keep=yes
    for failure in "${failures[@]}"; do
        say "FAILED: $failure"
    done
    say "logs are in $dir"
    exit 1
fi
[ "$keep" = no ] || say "logs are in $dir"
say "each operation was executed exactly once, and completed once"
