#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# The installed plugin: its registration with UCX, its devices with and without NICs,
# and UCX_RC_VARUNA_LINKS.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_fabric.sh"

plugin=$RCV_PREFIX/lib/ucx/libuct_varuna.so.0
preload=$RCV_PREFIX/lib/ucx/librc_varuna_preload.so
version=$("$top/config/ucx_version.sh" installed ucx_info)
ucx_lib=$(ldd "$(command -v ucx_info)" |
          awk '/libuct\.so/ {print $3; exit}' | xargs -r dirname)

# components_program: builds "./components [LIBRARY]...", which opens the libraries as
# UCX opens its modules, and prints UCX's components
components_program() {
    cat >components.c <<'EOF2'
#include <dlfcn.h>
#include <stdio.h>

int uct_query_components(char ***components_p, unsigned *num_components_p);

int main(int argc, char **argv)
{
    unsigned i, num_components;
    char **components;

    for (i = 1; i < (unsigned)argc; ++i) {
        if (dlopen(argv[i], RTLD_LAZY | RTLD_LOCAL) == NULL) {
            fprintf(stderr, "%s\n", dlerror());
            return 2;
        }
    }

    if (uct_query_components(&components, &num_components) != 0) {
        return 3;
    }

    for (i = 0; i < num_components; ++i) {
        printf("component %s\n", components[i]);
    }
    return 0;
}
EOF2
    gcc -o components components.c -L"$ucx_lib" -luct -lucs
}

# UCX opens its libraries for itself alone: what the plugin calls of them by name is not
# found. Usually that ends the process at the first call, here at once
test_no_symbol_is_missing() {
    LD_BIND_NOW=1 "$RCV_PREFIX/bin/rc_varuna_run" ucx_info -c >out 2>&1 ||
        fail "$(tail -n 1 out)"
    grep -q '^UCX_RC_VARUNA_' out || fail "the plugin was not opened"
}

# fake_runtime MAJOR MINOR PATCH: installs UCX's libuct and libucs, and a libucp that
# reports this version, or no libucp without arguments
fake_runtime() {
    mkdir lib
    cp -L "$ucx_lib"/libuct.so.0 "$ucx_lib"/libucs.so.0 "$ucx_lib"/libucm.so.0 \
        lib/
    export LD_LIBRARY_PATH=$PWD/lib
    [ $# -gt 0 ] || return 0
    cat >ucp.c <<EOF2
void ucp_get_version(unsigned *major, unsigned *minor, unsigned *patch)
{
    *major = $1;
    *minor = $2;
    *patch = $3;
}
EOF2
    gcc -shared -fPIC -o lib/libucp.so.0 ucp.c
}

# count_is NUMBER PATTERN COMMAND...: checks that NUMBER lines of the output match
count_is() {
    local want=$1 pattern=$2 out count
    shift 2
    out=$("$@" 2>&1) || fail "failed: $*: $out"
    count=$(grep -cE -e "$pattern" <<<"$out" || true)
    [ "$count" -eq "$want" ] ||
        fail "$count lines instead of $want match \"$pattern\":" \
             "$(tail -n 40 <<<"$out")"
}

# with_fabric LINKS: creates a fabric for this test
with_fabric() {
    fabric_up --hosts 1 --links "$1"
}

# info [VARIABLE=VALUE]...: runs ucx_info for rc_varuna on the fabric
info() {
    # Newer series of UCX need the kernel's routes, which some kernels do not offer
    env "$@" timeout 300 "$emu" exec -n "$fabric" 0 -- \
        "$run" ucx_info -d -t rc_varuna 2>&1 | grep -vE ' (netlink|sock)\.c:'
}

# links [VARIABLE=VALUE]...: prints the devices of rc_varuna, in one line
links() {
    info "$@" | sed -n 's/^# *Device: //p' | tr '\n' ' '
}

test_registers_by_preload() {
    components_program
    count_is 1 '^component varuna$' env LD_PRELOAD="$preload" ./components
    count_is 0 'rc_varuna' env LD_PRELOAD="$preload" ./components
}

test_registers_as_a_module() {
    components_program
    count_is 1 '^component varuna$' ./components "$plugin"
}

test_registers_once() {
    components_program
    cp "$plugin" copy.so
    count_is 1 '^component varuna$' \
        env LD_PRELOAD="$preload" ./components "$plugin" "$PWD/copy.so"
}

# What is preloaded brings nothing into a program without UCX, and its child has the plugin
test_preloads_nothing_but_itself() {
    local needed
    needed=$(readelf -d "$preload" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p')
    ! grep -vE '^lib(c|dl|asan|ubsan|tsan)\.so' <<<"$needed" || fail "it needs $needed"
    components_program
    cat >script <<'EOF2'
grep -E '/lib(uc|ibv|mlx)|varuna' /proc/$$/maps | sed 's/.* /mapped /' | sort -u
./components
EOF2
    count_is 1 '^mapped ' env LD_PRELOAD="$preload" sh script
    count_is 1 '^mapped .*/librc_varuna_preload.so$' env LD_PRELOAD="$preload" sh script
    count_is 1 '^component varuna$' env LD_PRELOAD="$preload" sh script
}

# renamed_ucx: copies the installed UCX to ./own as packages of Python do it: under other names,
# here of the same length
renamed_ucx() {
    local lib
    mkdir own
    for lib in ucm ucs uct; do
        LC_ALL=C sed 's/libuc\([mst]\)\.so\.0/libuc\1-3f.0/g' "$ucx_lib/lib$lib.so.0" >own/lib$lib-3f.0
    done
}

# opener_program: builds ./opener, which opens libraries for themselves alone and lets each
# print its components twice; and two such libraries, ./system.so and ./own.so, which are linked
# with a UCX each
opener_program() {
    cat >opener.c <<'EOF2'
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int i;

    for (i = 1; i < argc; ++i) {
        void *lib       = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
        int (*list)(void) = (lib == NULL) ? NULL : dlsym(lib, "list");
        if ((list == NULL) || (list() != 0) || (list() != 0)) {
            fprintf(stderr, "%s fails: %s\n", argv[i], dlerror());
            return 1;
        }
    }
    return 0;
}
EOF2
    cat >user.c <<'EOF2'
#include <stdio.h>

int uct_query_components(char ***components_p, unsigned *num_components_p);

int list(void)
{
    unsigned i, num_components;
    char **components;

    if ((signed char)uct_query_components(&components, &num_components) != 0) {
        return 1;
    }

    for (i = 0; i < num_components; ++i) {
        printf(NAME " %s\n", components[i]);
    }
    return 0;
}
EOF2
    gcc -o opener opener.c -ldl
    gcc -shared -fPIC -DNAME='"system"' -o system.so user.c -L"$ucx_lib" -luct \
        -Wl,-rpath,"$ucx_lib"
    gcc -shared -fPIC -DNAME='"own"' -o own.so user.c -Lown -l:libuct-3f.0 \
        -Wl,-rpath,"$PWD/own" -Wl,--allow-shlib-undefined
    export LD_LIBRARY_PATH=$PWD/own${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
}

# It works as it does alone, also if its build-id is right, and no other UCX is loaded for it
test_ucx_with_another_name() {
    local opener=(env LD_PRELOAD="$preload" ./opener)
    renamed_ucx
    opener_program
    count_is 2 '^own self$' ./opener ./own.so
    count_is 2 '^own self$' "${opener[@]}" ./own.so
    count_is 0 'varuna$' "${opener[@]}" ./own.so
    count_is 1 'WARN .*not available in .*/own/libuct-3f.0: it is linked with libuct.so.0' \
        "${opener[@]}" ./own.so
    # Its own modules may need a libuct of the usual name
    count_is 0 'calling init: .*libuct_varuna|=libuct\.so.* needed by .*varuna' \
        env LD_DEBUG=files "${opener[@]}" ./own.so
}

# Each caller gets the answer of its own one
test_two_ucx_in_a_process() {
    local opener=(env LD_PRELOAD="$preload" ./opener) order
    renamed_ucx
    opener_program
    for order in './own.so ./system.so' './system.so ./own.so'; do
        # shellcheck disable=SC2086 # two words
        "${opener[@]}" $order >out 2>&1 || fail "$(cat out)"
        count_is 2 '^own self$' cat out
        count_is 2 '^system self$' cat out
        count_is 0 '^own varuna$' cat out
        count_is 2 '^system varuna$' cat out
        count_is 1 'WARN .*not available in .*/own/libuct-3f.0' cat out
        count_is 1 'process has a second UCX: .*/libuct' cat out
    done
}

# Only ./components loads it; another program would log why the plugin is not available
test_refuses_another_runtime() {
    components_program
    fake_runtime 1 2 3
    count_is 0 '^component varuna$' ./components "$plugin"
    count_is 1 "ERROR .*built for UCX $version, .* is of UCX 1\.2\.3" \
        ./components "$plugin"
    count_is 1 '^component tcp$' ./components "$plugin"
    count_is 0 '^component varuna$' env UCX_RC_VARUNA_UCX_CHECK=version ./components "$plugin"
    count_is 1 '^component varuna$' env UCX_RC_VARUNA_UCX_CHECK=off ./components "$plugin"
    count_is 0 'ERROR|WARN' env UCX_RC_VARUNA_UCX_CHECK=off ./components "$plugin"
}

test_refuses_an_unknown_runtime() {
    components_program
    fake_runtime
    count_is 0 '^component varuna$' ./components "$plugin"
    count_is 1 "ERROR .*built for UCX $version, .* no libucp next to it" \
        ./components "$plugin"
}

# As many devices as rc_mlx5 has; none on most machines that run this test
test_no_message_without_nic() {
    local nics

    nics=$(ucx_info -d | grep -c 'Transport: rc_mlx5$' || true)
    count_is "$nics" 'Transport: rc_varuna$' "$run" ucx_info -d
    count_is 0 'ERROR|failed to open memory domain' "$run" ucx_info -d
    [ "$nics" -gt 0 ] || count_is 0 'WARN|varuna' "$run" ucx_info -d
}

test_options_are_documented() {
    count_is 1 '^UCX_RC_VARUNA_LINKS=all$' "$run" ucx_info -cf
    count_is 1 '^#  - all .*not named before' "$run" ucx_info -cf
}

test_one_device_per_link() {
    with_fabric 3
    [ "$(links)" = \
      "varuna_mlx5_0:1 varuna_mlx5_1:1 varuna_mlx5_2:1 " ] ||
        fail "$(info)"
    # The header, with the region's token, and a key for each link
    count_is 1 'remote key: 46 bytes' info
    count_is 0 'failed to open interface|ERROR|WARN' info
}

# The attributes of rc_mlx5 on the same link, with more overhead of the program for an
# operation, but not of the wire
test_speed_is_that_of_the_link() {
    fabric_up --hosts 1 --speeds edr,qdr
    "$emu" exec -n "$fabric" 0 -- ucx_info -d -t rc_mlx5 |
        grep -E 'Device:|bandwidth:|latency:|priority:|paths:' >inner
    info >outer
    grep -E 'Device:|bandwidth:|latency:|priority:|paths:' outer |
        sed 's/varuna_//' >ours
    check test "$(wc -l <inner)" -eq 10
    check cmp inner ours
    [ "$(grep bandwidth: inner | sort -u | wc -l)" = 2 ] ||
        fail "the links are alike: $(cat inner)"
    count_is 2 '^# *overhead: 70 nsec' cat outer
}

test_links_by_priority() {
    with_fabric 3
    [ "$(links UCX_RC_VARUNA_LINKS=mlx5_2,varuna_mlx5_0:1)" = \
      "varuna_mlx5_2:1 varuna_mlx5_0:1 " ] || fail "$(info)"
    [ "$(links UCX_RC_VARUNA_LINKS=mlx5_1:1,all)" = \
      "varuna_mlx5_1:1 varuna_mlx5_0:1 varuna_mlx5_2:1 " ] || fail "$(info)"
}

test_links_unknown_or_twice() {
    with_fabric 2
    count_is 1 "ERROR .*no port 'mlx5_7'.*\(there are: mlx5_0:1,mlx5_1:1\)" \
        info UCX_RC_VARUNA_LINKS=mlx5_7
    count_is 1 "ERROR .*'mlx5_0:1' names mlx5_0:1 a second time" \
        info UCX_RC_VARUNA_LINKS=mlx5_0,mlx5_0:1
}

# The others are used
test_links_missing() {
    with_fabric 2
    count_is 1 "WARN .*no port 'mlx5_7'.*\(there are: mlx5_0:1,mlx5_1:1\)" \
        info UCX_RC_VARUNA_LINKS=mlx5_1,mlx5_7,mlx5_0
    [ "$(links UCX_RC_VARUNA_LINKS=mlx5_1,mlx5_7,mlx5_0)" = \
      "varuna_mlx5_1:1 varuna_mlx5_0:1 " ] || fail "$(info)"
    printf 'primary mlx5_7\nbackup all\n' >links.conf
    [ "$(links UCX_RC_VARUNA_LINKS="file:$PWD/links.conf")" = \
      "varuna_mlx5_0:1 varuna_mlx5_1:1 " ] || fail "$(info)"
}

# A port that is down is a link, unless all are
test_links_down() {
    with_fabric 2
    link 0:0 down
    count_is 1 'DIAG .*only one link \(mlx5_1:1\) before the other ports come up' \
        info UCX_LOG_LEVEL=diag
    [ "$(links)" = "varuna_mlx5_0:1 varuna_mlx5_1:1 " ] || fail "$(info)"
    link 0:1 down
    [ "$(links)" = "" ] || fail "$(info)"
}

test_warns_of_a_single_link() {
    with_fabric 2
    count_is 1 'WARN .*only one link \(mlx5_1:1\)' \
        info UCX_RC_VARUNA_LINKS=mlx5_1
    [ "$(links UCX_RC_VARUNA_LINKS=mlx5_1)" = "varuna_mlx5_1:1 " ] ||
        fail "$(info)"
}

# UCP opens the memory domains of all transports, even unused ones
test_does_not_warn_whom_it_does_not_concern() {
    local out
    with_fabric 1
    out=$(UCX_TLS=tcp,self check "$emu" exec -n "$fabric" 0 -- "$run" \
        ucx_info -ep -u t 2>&1)
    grep -q 'only one link' <<<"$out" && fail "$out"
    grep -q 'tcp\|self' <<<"$out" || fail "nothing was opened: $out"
}

# UCX's parser accepts the word for all times
test_return_delay_is_a_time() {
    local out
    with_fabric 2
    [ "$(links UCX_RC_VARUNA_RETURN_DELAY=inf)" = "varuna_mlx5_0:1 varuna_mlx5_1:1 " ] ||
        fail "$(info)"
    out=$(info UCX_RC_VARUNA_RETURN_DELAY=auto)
    grep -q 'ERROR .*UCX_RC_VARUNA_RETURN_DELAY=auto: expected a time or inf' <<<"$out" ||
        fail "no error: $out"
}

# With the other policies endpoints share a DCI, and UCX has no error handling. Those of
# this UCX are in the option's syntax
test_dc_policies_without_error_handling() {
    local policy policies
    [ $nics = mlx5 ] || return 0
    with_fabric 2
    policies=$(ucx_info -cf | grep -B 4 '^UCX_DC_MLX5_TX_POLICY=' |
               sed -n 's/^# syntax: *\[\(.*\)\]$/\1/p' | tr '|' ' ')
    for policy in $policies; do
        case $policy in
        dcs | dcs_quota)
            [ "$(links UCX_DC_MLX5_TX_POLICY="$policy")" = \
                "varuna_mlx5_0:1 varuna_mlx5_1:1 " ] || fail "$policy is refused"
            count_is 0 'ERROR' info UCX_DC_MLX5_TX_POLICY="$policy"
            ;;
        *)
            count_is 2 "ERROR .*UCX_DC_MLX5_TX_POLICY=$policy is refused: .*dcs_quota" \
                info UCX_DC_MLX5_TX_POLICY="$policy"
            ;;
        esac
    done
    grep -qw rand <<<"$policies" || fail "policies of this UCX: $policies"
}

test_links_from_a_file() {
    with_fabric 4
    printf 'backup all\nprimary mlx5_2:1 # ours\ndisabled mlx5_0\nreturn 2s\n' \
        >links.conf
    [ "$(links UCX_RC_VARUNA_LINKS="file:$PWD/links.conf")" = \
        "varuna_mlx5_2:1 " ] || fail "$(info)"

    printf 'primary mlx5_1:1\nbakcup mlx5_2:1\n' >wrong.conf
    count_is 1 "ERROR .*wrong.conf:2: 'bakcup' is not a statement" \
        info UCX_RC_VARUNA_LINKS="file:$PWD/wrong.conf"
    printf 'primary mlx5_1:1\n\nbackup mlx5_7:1\n' >unknown.conf
    count_is 1 "WARN .*unknown.conf:3: there is no port 'mlx5_7:1'" \
        info UCX_RC_VARUNA_LINKS="file:$PWD/unknown.conf"
    count_is 1 'ERROR .*failed to open .*/none.conf' \
        info UCX_RC_VARUNA_LINKS="file:$PWD/none.conf"
    count_is 1 'ERROR .*must be the only entry' \
        info UCX_RC_VARUNA_LINKS="file:$PWD/links.conf,all"
}

run_tests
