#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# rc_varuna(7) has all options with their defaults, as ucx_info -cf, and all counters.
# The table of TUNING.md has the same options, and ucx_info explains each option.

. "$(dirname "${BASH_SOURCE[0]}")/../e2e/lib/ft_fabric.sh"

page=$RCV_PREFIX/share/man/man7/rc_varuna.7

# options: prints NAME=DEFAULT for each option in the manual page
options() {
    sed -n 's/^\.BR \(UCX_RC_VARUNA_[A-Z_]*\) \(=.*\)/\1\2/p' "$page" |
        sed 's/\\//g'
}

# config [NAME=VALUE...]: prints rc_varuna's options from ucx_info, sorted
config() {
    env "$@" "$emu" exec -n "$fabric" 0 -- \
        "$run" ucx_info -c 2>/dev/null |
        grep '^UCX_RC_VARUNA_' | sort
}

# tuning_options: prints those of TUNING.md
tuning_options() {
    sed -n -e '1,/^## All options/d' \
        -e 's/^| `\([A-Z_]*\)` | \([^ |]*\) | .*/UCX_RC_VARUNA_\1=\2/p' \
        "$top/docs/TUNING.md"
}

# options_are_told_by FUNCTION: compares the options that FUNCTION prints with
# ucx_info's
options_are_told_by() {
    local defaults

    unset "${!UCX_@}"
    fabric_up --hosts 1
    mapfile -t defaults < <("$1")
    config >real
    check test "$(wc -l <real)" -gt 20

    # The names are the same
    printf '%s\n' "${defaults[@]%%=*}" | sort >told.names
    sed 's/=.*//' real >real.names
    diff told.names real.names || fail "the options differ"

    # Setting each option to its documented default changes nothing
    config "${defaults[@]}" >told
    diff told real || fail "the defaults differ"

    # Another value changes the output, so the check above can fail
    config "${defaults[@]}" UCX_RC_VARUNA_GIVE_UP=17s >other
    ! cmp -s other real || fail "UCX ignores values"
}

test_options() {
    [ -r "$page" ] || fail "there is no $page"
    options_are_told_by options
}

test_tuning() {
    options_are_told_by tuning_options
}

# ucx_info -cf has a sentence and the unit for each option, and none is deprecated
test_options_are_explained() {
    unset "${!UCX_@}"
    fabric_up --hosts 1
    "$RCV_PREFIX/bin/mlx5emu" exec -n "$fabric" 0 -- \
        "$RCV_PREFIX/bin/rc_varuna_run" ucx_info -cf >all 2>/dev/null
    awk '/^#/                { text = text $0 "\n"; next }
         /^UCX_RC_VARUNA_/   { ++options
                               if (text !~ /^#\n# [^\n]+\.?\n/ ||
                                   text !~ /\n# syntax: / ||
                                   tolower(text) ~ /deprecated/)
                                   print "not explained: " $0 }
         { text = "" }
         END { print options + 0 }' all >explained
    [ "$(cat explained)" = "$(config | wc -l)" ] || fail "$(cat explained)"
}

test_counters() {
    local name
    grep -ohE '(_VFS_LINK|_counter)\([a-z_]+\)' \
        "$top/src/uct/ib/varuna/iface/varuna_vfs.c" \
        "$top/src/uct/ib/varuna/requester/varuna_stat.h" | grep -v '(_name)' |
        sed 's/.*(//; s/)//' | sort -u >names
    check test "$(wc -l <names)" -ge 22
    while read -r name; do
        grep -qE "^\.(B|BR|RB).*[ (]$name( |\$)" "$page" ||
            fail "the counter $name is not in the manual page"
    done <names
}

test_pkg_config() {
    export PKG_CONFIG_PATH=$RCV_PREFIX/lib/pkgconfig
    cat >program.c <<'END'
#include <rc_varuna.h>
int main(void) { return 0; }
END
    # shellcheck disable=SC2046
    check gcc -o program program.c $(pkg-config --cflags --libs rc_varuna)
    check ./program
}

run_tests
