#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# contrib/eval.sh measures figures in miniature (with RC_VARUNA_LONG=1 all), which shows that
# all series are there; its figures mean nothing. It fails if a series is missing or constant.

. "$(dirname "${BASH_SOURCE[0]}")/../e2e/lib/tap.sh"

export RCV_BUILD RCV_PREFIX
eval_sh=$top/contrib/eval.sh
measured=$(mktemp -d) # By the first test, for the others
trap 'rm -rf "$measured"' EXIT

# figures: prints the names of the figures to measure. All of them take more than a minute
figures() {
    if [ -n "${RC_VARUNA_LONG:-}" ]; then
        "$eval_sh" --list | awk '{ print $1 }'
    else
        printf '%s\n' share repeat size threads cas scale
    fi
}

# the_report: a copy of one figure that was measured, of which a test spoils something. Names
# of these tests follow that of the test that measures
the_report() {
    [ -e "$measured/data/share.csv" ] ||
        check "$eval_sh" --miniature --figure share "$measured" >/dev/null 2>&1
    mkdir -p spoiled/data
    cp "$measured"/data/{share.csv,meta.json} spoiled/data/
}

test_figures_in_miniature() {
    local name some=()
    for name in $(figures); do
        some+=(--figure "$name")
    done
    timeout 600 "$eval_sh" --miniature "${some[@]}" "$measured" >out 2>&1 ||
        fail "$(grep -E 'wrong|error|Error' out)"
    sed 's/^/# /' out
    for name in $(figures); do
        check test -s "$measured/data/$name.csv"
        check test -s "$measured/plots/$name.svg"
        check test -s "$measured/plots/$name.png"
        check grep -q "(plots/$name.svg)" "$measured/report.md"
        check grep -q "id=\"$name\"" "$measured/report.html"
    done
    [ "$(grep -c '<img .*src="data:image/png;base64,' "$measured/report.html")" -eq \
      "$(figures | wc -l)" ] || fail "the page does not have all pictures"
}

test_series_is_missing() {
    the_report
    sed -i '/^share,"write, 4 KB"/d' spoiled/data/share.csv
    fails 1 'share: share, "write, 4 KB" is missing' "$eval_sh" --report spoiled
}

test_series_is_constant() {
    the_report
    sed -i -E '/^share,"CAS, 8 B"/s/[^,]*$/50/' spoiled/data/share.csv
    fails 1 'share: share, "CAS, 8 B" is constant: 50' "$eval_sh" --report spoiled
}

# If only the last put of a batch is signaled, nothing is known of a batch that was cut: baselines
# repeat whole batches
test_series_of_one_completion() {
    [ -e "$measured/data/repeat.csv" ] ||
        check "$eval_sh" --miniature --figure repeat "$measured" >/dev/null 2>&1
    awk -F, '/^"bytes repeated, one completion",resend(_cache)?,/ {
                 batches = $NF * 1e6 / (64 * 1024)
                 whole = int(batches + 0.5)
                 if ((whole == 0) || (batches - whole > 0.001) || (whole - batches > 0.001))
                     print $0 ": " batches " batches"
                 ++rows
             }
             END { if (rows != 2) print rows + 0 " rows" }' "$measured/data/repeat.csv" >wrong
    [ ! -s wrong ] || fail "$(cat wrong)"
}

# shares SHARE...: measures the figure as if cuts found these shares, one after the other, and
# prints the number of cuts of the last load, and what is wrong with its series
shares() {
    /usr/bin/python3 -B - "$top/contrib/eval" "$@" <<'EOF'
import sys
sys.path[:0] = [sys.argv[1], sys.argv[1] + '/figures']
import data, share, table
found = [float(word) for word in sys.argv[2:]]
last = list(share.LOADS)[-1]
cuts = []
def one(load, random):
    if not load.startswith(share.LOADS[last]):
        return random.pop()
    cuts.append(found[min(len(cuts), len(found) - 1)])
    return cuts[-1]
share.one = one
rows = data.Rows('share.csv')
share.measure('miniature', list(range(100)), rows)
rows.close()
print(len(cuts), *data.Data('share.csv').faults(table.find('share'), 'miniature'))
EOF
}

# Cuts that find the same share by chance are no constant
test_series_looks_constant() {
    local more
    more=$(sed -n 's/^MORE = //p' "$top/contrib/eval/figures/share.py")
    [ "$(shares 0 50)" = 2 ] || fail "two cuts that differ: $(shares 0 50)"
    [ "$(shares 0 0 0 50)" = 4 ] || fail "cut again: $(shares 0 0 0 50)"
    [ "$(shares 0)" = "$((2 + more)) share: share, \"write, 64 KB\" is constant: 0" ] ||
        fail "a constant: $(shares 0)"
}

test_series_is_unknown() {
    the_report
    sed -i '/^share,"write, 64 B"/s/64 B/63 B/' spoiled/data/share.csv
    fails 1 '"write, 63 B" is not declared' "$eval_sh" --report spoiled
}

test_usage() {
    "$eval_sh" --help >out || fail "--help fails"
    check grep -q -- '--figure NAME' out
    fails 2 'no figure "nothing"' "$eval_sh" --figure nothing "$PWD/none"
    fails 1 'unknown option' "$eval_sh" --all
    fails 1 'has no UCX with UCP_ERR_HANDLING_MODE_FAILOVER' "$eval_sh" --ucx-failover /usr
    fails 2 'has no data' "$eval_sh" --report "$PWD/none"
}

run_tests
