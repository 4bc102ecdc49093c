#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# The judge is judged: traces with one thing wrong each must be refused, and
# right ones accepted. Run by "make check", and by contrib/test.sh.

set -u
shopt -s lastpipe # expect counts, at the end of a pipe
check=${1:-./demo_trace_check}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
passed=0
failed=0
base=$((0x700000000000))

# word EP SEQ INDEX: the contents of a put, as demo_word.h has them
word() {
    printf '0x%016x' $(((0xa7 << 56) | ($1 << 48) | ($2 << 17) | $3))
}

# entry SEQ ADDR LENGTH DATA [DUP PARTIAL LAST] [QPN] [OP]
entry() {
    printf '{"seq": %d, "op": "%s", "addr": %d, "length": %d, "data": "%s",' \
        "$1" "${9:-write}" "$2" "$3" "$4"
    printf ' "qpn": %d, "src_qpn": 7, "dup": %d, "partial": %d, "last": %d}\n' \
        "${8:-1}" "${5:-0}" "${6:-0}" "${7:-0}"
}

# expect STATUS NAME [TEXT]: judges the trace on stdin
expect() {
    local output status=0
    output=$("$check" "$dir/ledger" 2>&1) || status=$?
    if [ "$status" -eq "$1" ] && [[ $output == *"${3:-}"* ]]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $2: status $status instead of $1, or no '${3:-}' in:"
        echo "$output"
    fi
}

# Endpoint 0: two small puts into one slot, then a big one; endpoint 1: one
{
    echo "area $base 1048576"
    echo "put 0 1 $base 8"
    echo "put 0 2 $base 8"
    echo "put 0 3 $((base + 4096)) 8192"
    echo "put 1 1 $((base + 64)) 8"
} >"$dir/ledger"
big=$((base + 4096))

one() { entry "$1" "$base" 8 "$(word 0 1 0)"; }
two() { entry "$1" "$base" 8 "$(word 0 2 0)"; }
three() { entry "$1" "$big" 8192 "$(word 0 3 0)"; }
other() { entry "$1" $((base + 64)) 8 "$(word 1 1 0)" 0 0 0 3; }

{ one 1; other 2; two 3; three 4; } | expect 0 "as posted" "executed=4"
{ one 1; two 2; three 3; other 4
  entry 5 4096 8 0x1 0 0 0 1 send
  entry 6 $((base - 8)) 8 0x2; } | expect 0 "other memory is not looked at"
{ one 1; two 2; three 3; other 4
  entry 5 "$base" 8 "$(word 0 2 0)" 1; } | expect 0 "a duplicate was \
suppressed" "suppressed=1"
{ one 1; two 2
  entry 3 "$big" 4096 "$(word 0 3 0)"
  entry 4 $((big + 4096)) 4096 "$(word 0 3 512)"; other 5; } |
    expect 0 "cut by UCX into two messages" "messages=5"
{ one 1; two 2
  entry 3 "$big" 4096 "$(word 0 3 0)" 0 1
  other 4
  entry 5 $((big + 4096)) 4096 "$(word 0 3 512)" 0 0 1; } |
    expect 0 "one message, packet by packet, with one between" "messages=4"
{ one 1; two 2
  entry 3 "$big" 4096 "$(word 0 3 0)" 0 1
  entry 4 "$big" 8192 "$(word 0 3 0)" 0 0 0 2; other 5; } |
    expect 0 "cut in the middle and repeated elsewhere" "cut=1"

{ one 1; two 2; other 3; } | expect 1 "one is lost" "never executed"
{ one 1; two 2; two 3; three 4; other 5; } | expect 1 "one ran twice" "again"
{ one 1; two 2; one 3; three 4; other 5; } |
    expect 1 "an old one ran again behind its successor" "again"
{ two 1; one 2; three 3; other 4; } | expect 1 "two are swapped" "was the next"
{ one 1; two 2; three 4; other 5; } | expect 1 "the trace has a gap" "missing"
{ one 1; two 2; three 3; other 4; echo '{"lost": 5}'; } |
    expect 1 "the trace was overwritten" "too short"
{ one 1; two 2; three 3; other 4
  entry 5 "$base" 8 0xdead; } | expect 1 "foreign data" "no put"
{ one 1; two 2; three 3; other 4
  entry 5 $((base + 128)) 8 "$(word 0 2 0)"; } | expect 1 "a wrong place" \
"wrong place"
{ one 1; two 2; three 3; other 4
  entry 5 "$base" 8 "$(word 0 9 0)"; } | expect 1 "never posted" "no put"
{ one 1; two 2; other 3
  entry 4 $((big + 4096)) 4096 "$(word 0 3 512)"; } | expect 1 "half of it is \
lost" "lacks bytes"
{ one 1; two 2; other 3
  entry 4 "$big" 4096 "$(word 0 3 0)" 0 1; } | expect 1 "cut and not repeated" \
"never executed"
{ one 1; two 2; other 3
  entry 4 "$big" 4096 "$(word 0 3 0)" 0 1
  entry 5 "$big" 8192 "$(word 0 3 0)" 0 0 0 2
  entry 6 $((big + 4096)) 4096 "$(word 0 3 512)" 0 0 1; } |
    expect 1 "its rest comes after the repetition" "written again"
{ one 1; two 2; other 3
  entry 4 $((big + 4096)) 4096 "$(word 0 3 512)" 0 0 1; } |
    expect 1 "an end without a beginning" "without its beginning"
: | expect 1 "an empty trace"
echo "nonsense" | expect 2 "no JSON" "no JSON object"
echo '{"seq": 1}' | expect 2 "a field is missing" "'op'"
echo "put 0 1 1 1" >"$dir/ledger"
one 1 | expect 2 "no ledger" "no ledger"

echo "test_demo_trace_check: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
