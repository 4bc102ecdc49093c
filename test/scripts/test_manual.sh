#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# rc_varuna(7) is true: it has all options with their defaults, as ucx_info -cf, and
# all counters.

. "$(dirname "${BASH_SOURCE[0]}")/tap.sh"

page=$RCV_PREFIX/share/man/man7/rc_varuna.7
fabric=manual-$$

# options: NAME=DEFAULT, as the manual page has them
options() {
    sed -n 's/^\.BR \(UCX_RC_VARUNA_[A-Z_]*\) \(=.*\)/\1\2/p' "$page" |
        sed 's/\\//g'
}

# config [NAME=VALUE...]: what ucx_info tells of our options, sorted
config() {
    env "$@" "$RCV_PREFIX/bin/mlx5emu" exec -n "$fabric" 0 -- \
        "$RCV_PREFIX/bin/rc_varuna_run" ucx_info -c 2>/dev/null |
        grep '^UCX_RC_VARUNA_' | sort
}

test_options() {
    local defaults

    unset "${!UCX_@}"
    [ -r "$page" ] || fail "there is no $page"
    check "$RCV_PREFIX/bin/mlx5emu" up -n "$fabric" --hosts 1 --links 2
    trap '"$RCV_PREFIX/bin/mlx5emu" down -n "$fabric" --force >/dev/null 2>&1' \
        EXIT
    mapfile -t defaults < <(options)
    config >real
    check test "$(wc -l <real)" -gt 20

    # The names are the same
    printf '%s\n' "${defaults[@]%%=*}" | sort >told.names
    sed 's/=.*//' real >real.names
    diff told.names real.names || fail "the manual page has other options"

    # And what the page calls their defaults changes nothing
    config "${defaults[@]}" >told
    diff told real || fail "the manual page has other defaults"

    # A value that is no default does, or this would prove nothing
    config "${defaults[@]}" UCX_RC_VARUNA_GIVE_UP=17s >other
    ! cmp -s other real || fail "UCX does not take values"
}

test_counters() {
    local name
    grep -oE '_VFS_(COUNTER|AMO|LINK)\([a-z_]+\)' \
        "$top/src/uct/ib/varuna/varuna_vfs.c" | grep -v '(_name)' |
        sed 's/.*(//; s/)//' | sort -u >names
    check test "$(wc -l <names)" -gt 15
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
