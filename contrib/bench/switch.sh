#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# usage: contrib/bench/switch.sh [-h]
#
# Instructions of a switch to another link, with 1 endpoint and with 4,096, by callgrind:
# from the failure of the link until the first endpoint has posted again, and until the
# last one has. The endpoints are idle and their lanes are fakes (test_varuna_switch.cc);
# only code of the plugin is counted. Fails if the first one costs more than 1.1 times
# as much because there are others, or all of them more than the same number of single ones.

set -euo pipefail
prog=switch
. "$(dirname "${BASH_SOURCE[0]}")/../common.sh"

case ${1:-} in
-h | --help) usage; exit 0 ;;
?*) usage >&2; exit 2 ;;
esac
[ -n "$(command -v valgrind)" ] || die "valgrind is missing: apt-get install valgrind"
if [ -z "${RCV_BUILD:-}" ]; then
    ensure_built
    RCV_BUILD=$build_dir
fi
make -s -C "$RCV_BUILD/test/gtest" gtest_varuna >/dev/null
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset "${!UCX_@}"

timeout 300 valgrind --tool=callgrind "--toggle-collect=switch_measured_*" \
    --dump-after=switch_phase_ended "--callgrind-out-file=$dir/profile" \
    "$RCV_BUILD/test/gtest/gtest_varuna" --gtest_filter='test_varuna_switch_cost.*' \
    >"$dir/log" 2>&1 || die "gtest_varuna failed: $(tail -n 20 "$dir/log")"
grep -q 'PASSED.* 2 tests' "$dir/log" || die "not two tests: $(tail -n 20 "$dir/log")"

# of NUMBER: instructions of the plugin's files in a profile. Of the format, see
# callgrind_objects.awk; "fi" and "fe" are the files of inlined code
of() {
    awk '
        function is_ours(text, id) {
            id = text
            sub(/\).*/, ")", id)
            if (text ~ /\) /)
                files[id] = text
            return files[id] ~ /src\/uct\/ib\/varuna\//
        }
        /^f[lie]=/  { ours = is_ours(substr($0, 4)); next }
        /^cf[il]=/  { is_ours(substr($0, 5)); next }
        /^calls=/   { called = 1; next }
        /^[-+*0-9]/ { if (!called && ours) sum += $2; called = 0 }
        END         { print sum + 0 }' "$dir/profile.$1"
}

one=$(of 1)
first=$(of 3)
all=$((first + $(of 4)))
printf '%-12s %12s %12s\n' endpoints first all
printf '%-12s %12d %12d\n' 1 "$one" "$one"
printf '%-12s %12d %12d\n' 4096 "$first" "$all"
[ "$one" -gt 0 ] || die "nothing was counted"
[ $((first * 10)) -le $((one * 11)) ] || die "the first endpoint pays for the others"
[ "$all" -le $((one * 4096)) ] || die "4,096 endpoints cost more than 4,096 times one"
