#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# rc_varuna_run: the installed one, and with stand-ins for other versions of UCX. Also
# the help of all commands and scripts.

. "$(dirname "${BASH_SOURCE[0]}")/../e2e/lib/tap.sh"

run=$RCV_PREFIX/bin/rc_varuna_run
plugin=$RCV_PREFIX/lib/ucx/libuct_varuna.so.0
preload=$RCV_PREFIX/lib/ucx/librc_varuna_preload.so
read -r major minor patch < <("$top/config/ucx_version.sh" installed ucx_info |
                              tr . ' ')

# fake_ucx MAJOR MINOR PATCH: makes ./lib/libucp.so.0 that reports this version
fake_ucx() {
    mkdir -p lib
    cat >ucp.c <<EOF
void ucp_get_version(unsigned *major, unsigned *minor, unsigned *patch)
{
    *major = $1;
    *minor = $2;
    *patch = $3;
}
EOF
    gcc -shared -fPIC -o lib/libucp.so.0 ucp.c
    export LD_LIBRARY_PATH=$PWD/lib
}

test_preloads() {
    fails 0 "^LD_PRELOAD=$preload\$" "$run" env
    fails 0 "^LD_PRELOAD=$preload\$" "$run" -p
    [ "$("$run" -p | wc -l)" -eq 1 ] || fail "$("$run" -p)"
}

test_keeps_what_is_preloaded() {
    export LD_PRELOAD=libm.so.6
    fails 0 "^LD_PRELOAD=libm.so.6:$preload\$" "$run" -p
    # But not ours of another installation
    cp "$preload" .
    export LD_PRELOAD="$PWD/${preload##*/} libm.so.6"
    fails 0 "^LD_PRELOAD=libm.so.6:$preload\$" "$run" -p
}

test_another_plugin() {
    cp "$plugin" other.so
    fails 0 "^LD_PRELOAD=$preload\$" "$run" -l other.so -p
    fails 0 "^RC_VARUNA_PLUGIN=$PWD/other.so\$" "$run" -l other.so env
    # What an outer one has set does not count
    fails 0 "^RC_VARUNA_PLUGIN=$plugin\$" "$run" -l other.so "$run" env
}

# own_ucx NAME [DIRECTORY]: makes ./program, which is linked with a UCX 1.7.5 of this name in
# ./DIRECTORY (own)
own_ucx() {
    local dir=${2:-own}
    mkdir -p "$dir"
    fake_ucx 1 7 5
    unset LD_LIBRARY_PATH
    gcc -shared -fPIC -Wl,-soname,"$1" -o "$dir/$1" ucp.c
    echo "void ucp_get_version(); int main() { unsigned v; ucp_get_version(&v, &v, &v); }" >main.c
    gcc -Wno-all -o program main.c -Wl,--no-as-needed "$PWD"/own/*.so.* "$PWD/$dir/$1" \
        -Wl,-rpath,"$PWD/$dir:$PWD/own"
}

test_judges_the_ucx_of_the_program() {
    own_ucx libucp.so.0
    fails 125 "built for UCX $major.$minor.$patch, and ./program uses 1.7.5, $PWD/own/libucp.so.0" \
        "$run" ./program
    fails 125 "and program uses 1.7.5" env PATH="$PWD:$PATH" "$run" program
    # A script may start anything
    printf '#!/bin/sh\n' >script
    chmod +x script
    fails 0 "the dynamic linker uses /.*/libucp.so.0, UCX $major.$minor.$patch" \
        "$run" -v ./script
    fails 0 "ucx_info uses /.*/libucp.so.0, UCX $major.$minor.$patch" "$run" -v ucx_info -v
    own_ucx libucp.so.0.1 second
    fails 0 "WARN ./program is linked with two UCX, $PWD/.*/libucp.so.0.* and $PWD/.*/libucp.so.0" \
        env UCX_RC_VARUNA_UCX_CHECK=off "$run" ./program
}

test_refuses_a_renamed_ucx() {
    own_ucx libucp-3f2a.so.0
    fails 125 "./program uses a UCX of its own, $PWD/own/libucp-3f2a.so.0" "$run" ./program
    fails 125 'UCX of its own' env UCX_RC_VARUNA_UCX_CHECK=off "$run" ./program
}

test_refuses_another_ucx() {
    fake_ucx 1 7 5
    fails 125 "built for UCX $major.$minor.$patch, and the dynamic linker uses 1.7.5" \
        "$run" true
    fails 125 'linker uses 1.7.5' env UCX_RC_VARUNA_UCX_CHECK=version "$run" true
    fails 0 '' env UCX_RC_VARUNA_UCX_CHECK=off "$run" -p
}

test_refuses_what_is_no_ucx() {
    mkdir lib
    echo "int nothing;" >ucp.c
    gcc -shared -fPIC -o lib/libucp.so.0 ucp.c
    export LD_LIBRARY_PATH=$PWD/lib
    fails 125 'cannot get the version of' "$run" true
}

test_plugin_is_missing() {
    fails 125 'no-such-plugin cannot be read: No such file' \
        "$run" -l no-such-plugin true
    fails 125 'is not a file' "$run" -l / true
}

test_plugin_path_that_cannot_be_expressed() {
    mkdir "a b"
    cp "$plugin" "a b/"
    fails 125 'has a space' "$run" -l "a b/libuct_varuna.so.0" true
}

test_command_is_missing() {
    fails 125 'no command was given' "$run"
    fails 127 'cannot run no-such-command' "$run" no-such-command
    fails 126 'cannot run /: ' "$run" /
    fails 125 '-p takes no command' "$run" -p true
    fails 125 'Usage' "$run" -Z
}

test_passes_arguments_and_status() {
    fails 7 '^-h x$' "$run" sh -c 'echo "$@"; exit 7' sh -h x
}

test_help_and_version() {
    local option

    for option in -h --help; do
        fails 0 'UCX_TLS=rc_varuna' "$run" $option
    done
    for option in -V --version; do
        fails 0 "for UCX $major.$minor.$patch" "$run" $option
    done
    fails 0 "^LD_PRELOAD=" "$run" --verbose --plugin "$plugin" --print
    fails 125 'Usage' "$run" --helpless
}

# helps COMMAND...: checks that it prints its usage on standard output with -h and
# --help, and does nothing else
helps() {
    local option

    for option in -h --help; do
        fails 0 '^[Uu]sage:' "$@" $option
        "$@" $option >/dev/null 2>complaints </dev/null
        [ ! -s complaints ] || fail "$* $option: $(cat complaints)"
    done
}

test_all_commands_help() {
    local emu=$RCV_PREFIX/bin/mlx5emu ctl=$RCV_PREFIX/bin/rc_varuna_ctl verb verbs
    local option version

    version=$("$run" -V | sed 's/,.*//; s/.* //')
    mapfile -t verbs < <("$emu" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p')
    check test ${#verbs[@]} -eq 9
    helps "$run"
    helps "$ctl"
    helps "$emu"
    for verb in "${verbs[@]}"; do
        helps "$emu" "$verb"
        fails 0 "^Usage: mlx5emu $verb " "$emu" help "$verb"
        fails 0 "^mlx5emu $version\$" "$emu" "$verb" --version
    done
    fails 2 'unknown verb "no-such-verb"' "$emu" help no-such-verb
    for option in -V --version; do
        fails 0 "^mlx5emu $version\$" "$emu" $option
        fails 0 "^rc_varuna_ctl $version\$" "$ctl" $option
    done
}

test_all_scripts_help() {
    local script scripts

    mapfile -t scripts < <(find "$top/contrib" -name '*.sh' -perm -u+x | sort)
    check test ${#scripts[@]} -ge 8
    for script in "${scripts[@]}"; do
        helps "$script"
    done
}

test_man_page() {
    local page=$RCV_PREFIX/share/man/man1/rc_varuna_run.1
    [ -s "$page" ] || fail "$page is not installed"
    # It has all options of the help
    for option in $("$run" -h | grep -oE '^  -.*' | grep -oE -e '--?[a-zA-Z]+\b'); do
        grep -qF -- "${option//-/\\-}" "$page" || fail "$option is not in $page"
    done
}

run_tests
