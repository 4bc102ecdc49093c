#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Another build of the UCX version that the plugin was built for: it refuses to work with
# libraries that have another build-id or none, or that reveal other sizes, and UCX's other
# transports work. UCX_RC_VARUNA_UCX_CHECK overrides that. The builds are changed copies of
# the installed libraries.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_fabric.sh"

plugin=$RCV_PREFIX/lib/ucx/libuct_varuna.so.0
preload=$RCV_PREFIX/lib/ucx/librc_varuna_preload.so
ucx_lib=$(ldd "$(command -v ucx_info)" |
          awk '/libuct\.so/ {print $3; exit}' | xargs -r readlink -f | xargs -r dirname)
# Those that the plugin knows the insides of
libs=(libucs.so.0 libuct.so.0 ucx/libuct_ib.so.0)
[ ! -e "$ucx_lib/ucx/libuct_ib_mlx5.so.0" ] || libs+=(ucx/libuct_ib_mlx5.so.0)
ib=${libs[-1]} # with the classes of mlx5

# runtime: copies the installed UCX to ./lib, which programs use from now on
runtime() {
    rm -rf lib
    mkdir -p lib/ucx
    cp -L "$ucx_lib"/libuc[mpst]*.so.0 lib/
    cp -L "$ucx_lib"/ucx/*.so.0 lib/ucx/
    export LD_LIBRARY_PATH=$PWD/lib
}

# build_id FILE
build_id() {
    readelf -n "$1" 2>/dev/null | sed -n 's/^ *Build ID: *//p'
}

# another_build LIB: gives it another build-id
another_build() {
    check objcopy --dump-section .note.gnu.build-id=note "lib/$1" unused
    printf '\xa5\x5a' | dd of=note bs=1 seek=$(($(stat -c %s note) - 2)) conv=notrunc 2>/dev/null
    check objcopy --update-section .note.gnu.build-id=note "lib/$1"
    [ "$(build_id "lib/$1")" != "$(build_id "$ucx_lib/$1")" ] || fail "$1 has the same build-id"
}

# without_build_id LIB: the loader gets an empty segment of notes
without_build_id() {
    check objcopy --remove-section .note.gnu.build-id "lib/$1"
    [ -z "$(build_id "lib/$1")" ] || fail "$1 still has a build-id"
}

# grow LIB SYMBOL OFFSET: adds 8 to the size at OFFSET in the object, in the file. There is
# no carry: the lowest byte is less than 248, or becomes less by it
grow() {
    local file=lib/$1 address type offset start length byte

    address=$(nm -D --defined-only "$file" | awk -v name="$2" '$3 == name { print $1 }')
    [ -n "$address" ] || fail "$1 has no $2"
    address=$((16#$address + $3))
    while read -r type offset start _ length _; do
        [ "$type" = LOAD ] && ((address >= start && address < start + length)) || continue
        offset=$((offset + address - start))
        byte=$(od -An -tu1 -j $offset -N 1 "$file")
        printf "\\x$(printf %x $(((byte + 8) % 256)))" |
            dd of="$file" bs=1 seek=$offset conv=notrunc 2>/dev/null
        return
    done < <(readelf -lW "$file")
    fail "$2 is not in the file $1"
}

# info [VARIABLE=VALUE]...: runs ucx_info with the plugin (./plugin, if there is one), into
# ./out
info() {
    local launcher=("$run")

    [ ! -d plugin ] || launcher+=(-l "plugin/${plugin##*/}")
    env "$@" "$emu" exec -n "$fabric" 0 -- "${launcher[@]}" ucx_info -d >out.all 2>&1 ||
        fail "ucx_info has failed: $(tail -n 20 out.all)"
    # Newer series of UCX need the kernel's routes, which some kernels do not offer
    grep -vE ' (netlink|sock)\.c:' out.all >out
}

# lines PATTERN: prints how many lines of ./out match
lines() {
    grep -cE -e "$1" out || true
}

# refuses PATTERN [VARIABLE=VALUE]...: one warning that matches, no device of rc_varuna, and
# all other transports
refuses() {
    local pattern=$1 transport ep
    shift
    info "$@"
    [ "$(lines 'WARN .*rc_varuna is not available')" -eq 1 ] ||
        fail "not one warning: $(grep -v '^#' out)"
    [ "$(lines "WARN .*built for UCX .*$pattern.*UCX_RC_VARUNA_UCX_CHECK=version")" -eq 1 ] ||
        fail "\"$pattern\" is not in the warning: $(grep WARN out)"
    [ "$(lines '^#.*varuna')" -eq 0 ] || fail "it has devices: $(grep '^#.*varuna' out)"
    for transport in tcp self rc_verbs; do
        [ "$(lines "Transport: $transport\$")" -ge 1 ] || fail "there is no $transport"
    done

    ep=$(UCX_TLS=tcp,self env "$@" "$emu" exec -n "$fabric" 0 -- "$run" \
             ucx_info -ep -u t 2>&1) || fail "no endpoint: $ep"
    grep -q 'self/' <<<"$ep" || fail "the endpoint uses no transport: $ep"
}

# accepts [VARIABLE=VALUE]...: no message, and both devices
accepts() {
    info "$@"
    [ "$(lines 'WARN|ERROR')" -eq 0 ] || fail "a message: $(grep -E 'WARN|ERROR' out)"
    [ "$(lines 'Device: varuna_mlx5_[01]:1')" -eq 2 ] || fail "no devices: $(cat out)"
}

# overridden: with the option the plugin takes what it refuses
overridden() {
    accepts UCX_RC_VARUNA_UCX_CHECK=version
    accepts UCX_RC_VARUNA_UCX_CHECK=off
}

test_same_build() {
    fabric_up --hosts 1
    accepts
    runtime
    accepts
    accepts UCX_RC_VARUNA_UCX_CHECK=strict
}

test_another_build() {
    local lib
    fabric_up --hosts 1
    for lib in "${libs[@]}"; do
        runtime
        another_build "$lib"
        refuses "build-id $(build_id "$ucx_lib/$lib"), but found .*${lib##*/}.* with build-id \
$(build_id "lib/$lib")"
        overridden
    done
}

test_library_without_a_build_id() {
    local lib
    fabric_up --hosts 1
    for lib in "${libs[@]}"; do
        runtime
        without_build_id "$lib"
        refuses "build-id $(build_id "$ucx_lib/$lib"), but found .*${lib##*/}.* with none"
        overridden
    done
}

# tells_eight_more WHAT
tells_eight_more() {
    local sizes
    sizes=$(sed -nE "s/.*with ([0-9]+) bytes of $1, but found ([0-9]+) bytes.*/\2 - \1/p" out)
    [ $((sizes)) -eq 8 ] || fail "$1: $sizes"
}

# The second member of a class, and that of the options in a transport
test_other_sizes() {
    fabric_up --hosts 1
    runtime
    grow libuct.so.0 uct_base_iface_t_class 8
    refuses 'bytes of uct_base_iface_t'
    tells_eight_more uct_base_iface_t
    overridden

    runtime
    grow ucx/libuct_ib.so.0 uct_ib_iface_t_class 8
    refuses 'bytes of uct_ib_iface_t'
    tells_eight_more uct_ib_iface_t
    overridden

    runtime
    grow "$ib" uct_dc_mlx5_ep_t_class 8
    refuses 'bytes of uct_dc_mlx5_ep_t'
    tells_eight_more uct_dc_mlx5_ep_t
    overridden

    runtime
    grow "$ib" uct_dc_mlx5_tl 56
    refuses "bytes of dc_mlx5's options"
    tells_eight_more "dc_mlx5's options"
    overridden
}

# A plugin that was built for libraries without build-ids: only sizes are left
test_sizes_decide_without_build_ids() {
    local lib id zeros

    mkdir plugin
    cp "$plugin" "$preload" plugin/
    for lib in "${libs[@]}"; do
        id=$(build_id "$ucx_lib/$lib")
        # shellcheck disable=SC2001
        zeros=$(sed 's/./\\x00/g' <<<"$id")
        LC_ALL=C sed -i "s/$id/$zeros/g" plugin/*
        ! grep -q "$id" plugin/* || fail "the plugin still knows $id"
    done
    fabric_up --hosts 1
    runtime
    for lib in "${libs[@]}"; do
        another_build "$lib"
    done
    accepts
    grow ucx/libuct_ib.so.0 uct_rc_iface_t_class 8
    info
    [ "$(lines 'WARN .*not available: .* bytes of uct_rc_iface_t, but')" -eq 1 ] ||
        fail "no warning: $(grep -v '^#' out)"
    [ "$(lines '^#.*varuna')" -eq 0 ] || fail "it is not refused: $(grep varuna out)"
}

test_other_values_count_as_strict() {
    local message='WARN .*UCX_RC_VARUNA_UCX_CHECK=stirct is none of strict, version and off'
    fabric_up --hosts 1
    runtime
    accepts UCX_RC_VARUNA_UCX_CHECK=STRICT
    info UCX_RC_VARUNA_UCX_CHECK=stirct
    [ "$(lines "$message")" -eq 1 ] || fail "no message: $(grep -v '^#' out)"
    [ "$(lines 'WARN|ERROR')" -eq 1 ] || fail "more messages: $(grep WARN out)"
    [ "$(lines 'Device: varuna_mlx5_[01]:1')" -eq 2 ] || fail "no devices: $(cat out)"
    another_build ucx/libuct_ib.so.0
    refuses 'found' UCX_RC_VARUNA_UCX_CHECK=stirct
    [ "$(lines "$message")" -eq 1 ] || fail "no message: $(grep -v '^#' out)"
}

# On hosts without NICs libuct_ib is not used: no check, no message
test_another_build_without_a_nic() {
    [ -z "$(ucx_info -d | grep rc_verbs)" ] || return 0 # this machine has one
    runtime
    another_build ucx/libuct_ib.so.0
    "$run" ucx_info -d >out 2>&1 || fail "ucx_info has failed: $(cat out)"
    [ "$(lines 'WARN|varuna')" -eq 0 ] || fail "a message: $(grep -E 'WARN|varuna' out)"
}

# contrib/build.sh and contrib/deb.sh notice an update of UCX
test_update_is_noticed() {
    runtime
    prog=test
    . "$top/contrib/common.sh"
    build_dir=$PWD/build
    mkdir -p build/ucx-config
    echo "S[\"UCX_LIBDIR\"]=\"$PWD/lib\"" >build/config.status
    cp "$RCV_BUILD/ucx-config/config.h" build/ucx-config/
    ! ucx_has_changed || fail "the same build counts as a change"
    another_build ucx/libuct_ib.so.0
    ucx_has_changed || fail "another build counts as the same"
}

run_tests
