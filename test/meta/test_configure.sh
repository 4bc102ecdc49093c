#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# configure accepts a UCX source tree that matches the runtime, even if it is read-only
# and not configured, and refuses all others with the reason.

. "$(dirname "${BASH_SOURCE[0]}")/../e2e/lib/ft_fabric.sh"

ucx_src=$(sed -n 's/^--with-ucx-src=//p' "$RCV_BUILD/configure.args")

# fake_tree VERSION: creates the files that configure reads before it compiles
fake_tree() {
    local major minor patch file
    IFS=. read -r major minor patch <<<"$1"

    for file in src/uct/base/uct_iface.h src/ucs/type/class.h; do
        mkdir -p "tree/$(dirname "$file")"
        : >"tree/$file"
    done
    cat >tree/configure.ac <<EOF
define([ucx_ver_major], $major)
define([ucx_ver_minor], $minor)
define([ucx_ver_patch], $patch)
EOF
}

# mirror_tree: fills "tree" with the contents of the real one, without config.h
mirror_tree() {
    mkdir tree
    ln -s "$ucx_src"/* tree/
    rm -f tree/config.h
}

# Share the results about compiler and shell between all tests
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
(cd "$scratch" && "$top/configure" --cache-file="$scratch/cache" --no-create \
    --with-ucx-src="$ucx_src" >configure.log 2>&1) ||
    { tail -n 20 "$scratch/configure.log"; exit 1; }

# Nothing is built twice, so nothing must know which headers it depends on
configure() {
    mkdir -p build
    cp "$scratch/cache" cache
    (cd build && "$top/configure" --cache-file=../cache --disable-dependency-tracking "$@")
}

test_no_source_tree() {
    fails 1 'name its source tree by --with-ucx-src' configure
}

test_source_tree_does_not_exist() {
    fails 1 'there is no directory "/nowhere/at all"' \
        configure --with-ucx-src="/nowhere/at all"
}

test_source_tree_is_something_else() {
    mkdir tree
    fails 1 'is not a UCX source tree' configure --with-ucx-src="$PWD/tree"
}

test_source_tree_of_another_version() {
    fake_tree 1.12.9
    fails 1 'is UCX 1\.12\.9, but the installed UCX .* is ' \
        configure --with-ucx-src="$PWD/tree"
}

test_runtime_prefix_without_ucx() {
    fails 1 'there is no .*/bin/ucx_info' \
        configure --with-ucx="$PWD" --with-ucx-src="$ucx_src"
}

# fake_runtime VERSION: makes "old", an installed UCX that says that it is this version
fake_runtime() {
    mkdir -p old/bin
    printf '#!/bin/sh\necho "# Version %s"\n' "$1" >old/bin/ucx_info
    chmod +x old/bin/ucx_info
}

test_runtime_that_is_too_old() {
    local version
    for version in 1.9.0 1.12.1 1.13.0; do
        fake_runtime $version
        fails 1 "UCX ${version//./\\.}, .* is too old .* tried with 1\.13\.1, .* 1\.22\.0" \
            configure --with-ucx="$PWD/old" --with-ucx-src="$ucx_src"
    done
}

# It goes on to the libraries, which are missing
test_runtime_that_is_old_enough() {
    local version
    for version in 1.13.1 1.14.0 1.17.0 1.100.0; do
        fake_runtime $version
        fails 1 'does not name libucs\.so' \
            configure --with-ucx="$PWD/old" --with-ucx-src="$ucx_src"
    done
}

# moved_ucx: copies the installed UCX to the prefix ./moved
moved_ucx() {
    local lib
    lib=$(ldd "$(command -v ucx_info)" | awk '/libuct\.so/ && !n++ {print $3}')
    lib=$(dirname "$(readlink -f "$lib")")
    mkdir -p moved/bin moved/lib
    cp "$(command -v ucx_info)" moved/bin/
    cp -a "$lib"/libuc[mpst].so* "$lib"/ucx moved/lib/
    ln -s "$(dirname "$(dirname "$(command -v ucx_info)")")/include" moved/include
    # The cache knows the real one
    sed -i '/UCX_INFO/d' "$scratch/cache"
}

# Not with /usr's libraries, which the linker finds by itself
test_first_runtime_in_the_path() {
    moved_ucx
    export PATH=$PWD/moved/bin:$PATH
    check configure --no-create --with-ucx-src="$ucx_src" >log 2>&1
    check grep -q "libraries of the installed UCX... $PWD/moved/lib\$" log
    check grep -q "^UCX_LDFLAGS='-L$PWD/moved/lib " build/config.log
}

test_runtime_with_other_libraries() {
    moved_ucx
    rm -r moved/lib
    fails 1 "uses the libraries in /.*, which are not those of $PWD/moved: name the prefix" \
        configure --with-ucx="$PWD/moved" --with-ucx-src="$ucx_src"
    export PATH=$PWD/moved/bin:$PATH
    fails 1 "which are not those of $PWD/moved" configure --with-ucx-src="$ucx_src"
}

# Without its packages the emulator is left out, but not silently for developers, for whom
# warnings are errors
test_emulator_without_its_packages() {
    local without=(ac_cv_header_Zydis_Zydis_h=no --with-ucx-src="$ucx_src")
    check configure --no-create "${without[@]}" >log 2>&1
    check grep -q 'WARNING: the emulator is not built, because it needs libzydis-dev' log
    check grep -q 'emulator: *no, it needs libzydis-dev' log
    check grep -q "^BASE_CFLAGS='[^']*-Wall" build/config.log
    ! grep -q '^BASE_CFLAGS=.*-Werror' build/config.log || fail "warnings are errors for all"
    fails 1 'error: mlx5emu needs libzydis-dev' configure "${without[@]}" --enable-devel-mode
    check grep -q '^BASE_CFLAGS=.*-Werror' build/config.log
    fails 1 'error: mlx5emu needs libzydis-dev' configure "${without[@]}" --without-ucx
}

test_runtime_prefix_is_relative() {
    fails 1 'is not an absolute path' \
        configure --with-ucx=usr --with-ucx-src="$ucx_src"
}

# ucx_of_revision REVISION: makes "other", the installed UCX, which says that it was built
# from this commit
ucx_of_revision() {
    local prefix
    prefix=$(dirname "$(dirname "$(command -v ucx_info)")")
    mkdir -p other/bin bin
    ln -sfn "$prefix/include" "$prefix/lib" other/
    cat >other/bin/ucx_info <<EOF
#!/bin/sh
[ "\$1" = -v ] || exec "$prefix/bin/ucx_info" "\$@"
"$prefix/bin/ucx_info" -v | sed "s/^\(# Git branch.*revision\).*/\1 $1/"
EOF
    # configure finds the libraries by ldd, which wants a program
    cat >bin/ldd <<EOF
#!/bin/sh
exec $(PATH=/usr/bin:/bin command -v ldd) "$prefix/bin/ucx_info"
EOF
    chmod +x other/bin/ucx_info bin/ldd
    export PATH=$PWD/bin:$PATH
}

# commit_tree: makes the mirrored tree a clone, and prints its commit
commit_tree() {
    (cd tree && git init -q && git -c user.name=u -c user.email=u@localhost commit -q \
        --allow-empty -m tree && git rev-parse HEAD)
}

test_source_tree_of_another_commit() {
    local commit
    mirror_tree
    commit=$(commit_tree)
    ucx_of_revision 02432d3
    fails 1 "tree is of commit ${commit:0:7}, but .* was built from commit 02432d3" \
        configure --with-ucx="$PWD/other" --with-ucx-src="$PWD/tree"
    fails 0 "no, commit ${commit:0:7} instead of commit 02432d3" \
        configure --no-create --with-ucx="$PWD/other" --with-ucx-src="$PWD/tree" \
        --disable-revision-check
}

# In a clone, and in a release, which has a configure
test_source_tree_of_the_commit() {
    local commit
    mirror_tree
    commit=$(commit_tree)
    ucx_of_revision "${commit:0:7}"
    fails 0 "is the installed UCX's... yes, commit ${commit:0:7}" \
        configure --no-create --with-ucx="$PWD/other" --with-ucx-src="$PWD/tree"
    rm -rf tree/.git
    rm -f tree/configure
    printf '       SCM_VERSION=%s\n' "${commit:0:7}" >tree/configure
    fails 0 "is the installed UCX's... yes, commit ${commit:0:7}" \
        configure --no-create --with-ucx="$PWD/other" --with-ucx-src="$PWD/tree"
}

test_unknown_commit_is_a_warning() {
    mirror_tree
    rm -f tree/configure
    ucx_of_revision 02432d3
    fails 0 'WARNING: .* built from commit 02432d3, .*/tree does not tell what it is' \
        configure --no-create --with-ucx="$PWD/other" --with-ucx-src="$PWD/tree"
    ucx_of_revision 0000000
    fails 0 'WARNING: .*/other/bin/ucx_info. does not tell what it was built from' \
        configure --no-create --with-ucx="$PWD/other" --with-ucx-src="$PWD/tree"
}

test_libraries_without_build_ids() {
    printf '#!/bin/sh\n' >no-readelf
    chmod +x no-readelf
    # The cache knows the real one
    sed -i '/READELF/d' "$scratch/cache"
    fails 0 'WARNING: without a build-id of libucs libuct libuct_ib ' \
        configure --no-create --with-ucx-src="$ucx_src" READELF="$PWD/no-readelf"
    check grep -q '^#define RC_VARUNA_BUILD_ID_UCT ""$' build/ucx-config/config.h
}

test_source_tree_configured_with_stats() {
    mirror_tree
    { cat "$RCV_BUILD/ucx-config/config.h"; echo "#define ENABLE_STATS 1"; } \
        >tree/config.h
    fails 1 'only in the tree: +ENABLE_STATS 1' \
        configure --with-ucx-src="$PWD/tree"
}

test_source_tree_configured_without_assertions() {
    mirror_tree
    sed 's/ENABLE_ASSERT .*/ENABLE_ASSERT 0/' \
        "$RCV_BUILD/ucx-config/config.h" >tree/config.h
    if cmp -s tree/config.h "$RCV_BUILD/ucx-config/config.h"; then
        # The runtime has none, so add it to the tree
        echo "#define ENABLE_ASSERT 1" >>tree/config.h
    fi
    fails 1 'does not match the configuration of the installed UCX' \
        configure --with-ucx-src="$PWD/tree"
}

test_source_tree_configured_alike() {
    mirror_tree
    cp "$RCV_BUILD/ucx-config/config.h" tree/config.h
    check configure --no-create --with-ucx-src="$PWD/tree" >log
    check cmp build/ucx-config/config.h "$RCV_BUILD/ucx-config/config.h"
    check grep -q '^#define RC_VARUNA_BUILD_ID_UCT_IB "' build/ucx-config/config.h
}

# test_atomics has the plugin without these modes
test_without_extended_atomics() {
    check configure --no-create --with-ucx-src="$ucx_src" --disable-extended >log
    check grep -q '^S."HAVE_EXTENDED".="0"' build/config.status
    check grep -q '^S."HAVE_EXTENDED_TRUE".="#"' build/config.status
    check grep -q '^S."HAVE_EXTENDED".="1"' "$RCV_BUILD/config.status"
}

test_source_tree_unconfigured_and_read_only() {
    mirror_tree
    chmod a-w tree
    check configure --with-ucx-src="$PWD/tree" >log
    chmod u+w tree
    [ ! -e tree/config.h ] || fail "configure wrote to the source tree"
}

# The emulator can be built without UCX and its sources
test_emulator_without_ucx() {
    local emu=$PWD/inst/bin/mlx5emu
    check configure --without-ucx --prefix="$PWD/inst" >log
    check make -C build -j"$(nproc)" CFLAGS=-O0 install >make.log 2>&1
    (cd inst && find . ! -type d | sort) >installed
    check diff - installed <<'EOF'
./bin/mlx5emu
./lib/mlx5emu/libmlx5emu.la
./lib/mlx5emu/libmlx5emu.so
./share/man/man1/mlx5emu.1
EOF
    ! ldd inst/bin/mlx5emu inst/lib/mlx5emu/libmlx5emu.so |
        grep -E 'libuc|libibverbs|libmlx5\.' || fail "it is linked with these libraries"
    fabric_up --links 1
    "$emu" exec -n "$fabric" 1 -- ibv_devinfo >devices 2>&1 || fail "$(cat devices)"
    fabric_down
    grep -q 'hca_id:.*mlx5_0' devices || fail "no device: $(cat devices)"
}

test_neither_ucx_nor_emulator() {
    fails 1 'leaves only mlx5emu to be built' \
        configure --without-ucx --disable-mlx5emu
}

run_tests
