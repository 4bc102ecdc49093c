# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Shared by the scripts of this directory, which source it after setting
# "prog". Progress goes to stderr, results to stdout.
#
# Environment:
#   RC_VARUNA_UCX        prefix of an installed UCX to use instead of Debian's. Then no
#                        package is installed
#   RC_VARUNA_UCX_SRC    a UCX source tree to use instead of fetching one
#   RC_VARUNA_DEPS       where fetched sources are kept; default
#                        $XDG_CACHE_HOME/rc_varuna, or ~/.cache/rc_varuna
#   RC_VARUNA_BUILD      build directory; default _build in the checkout
#   RC_VARUNA_PREFIX     where it is installed; default _install in the checkout
#   RC_VARUNA_CONFIGURE  more arguments for ./configure
#   RC_VARUNA_DEVEL      if set, warnings are errors, and all must be built. It stays so
#                        in this build directory

export LC_ALL=C
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build_dir=${RC_VARUNA_BUILD:-$top/_build}
. "$top/contrib/pause.sh"

# usage: prints the comment that the script begins with
usage() {
    sed -n '/^# usage/,/^$/{s/^# \{0,1\}//;p}' "$0"
}

# only_help ARGUMENT...: prints the usage and exits if the first argument is an option
only_help() {
    case ${1:-} in
    -h | --help) usage; exit 0 ;;
    -*) usage; exit 2 ;;
    esac
}

# say WORDS...: prints what is being done
say() {
    echo "[$prog] $*" >&2
}

# die WORDS...: prints the reason, and exits
die() {
    echo "[$prog] error: $*" >&2
    exit 1
}

# quietly LOG COMMAND...: runs a command with its output in LOG. Prints the last line
# every ten seconds (tell_every). If it fails, prints the end of LOG and returns its
# status
quietly() {
    local log=$1 pid start=$SECONDS step=${tell_every:-10} status=0
    local next=$step traps
    shift
    "$@" >"$log" 2>&1 &
    pid=$!
    traps=$(trap -p INT TERM)
    trap 'kill "$pid" 2>/dev/null; exit 130' INT TERM # It ignores SIGINT itself
    while kill -0 "$pid" 2>/dev/null; do
        pause 0.2
        if ((SECONDS - start >= next)); then
            say "  ... $((SECONDS - start)) s: $(tail -n 1 "$log" |
                                               tr -d '\r' | cut -c 1-100)"
            next=$((next + step))
        fi
    done
    wait "$pid" || status=$?
    trap - INT TERM
    eval "$traps"
    if ((status != 0)); then
        tail -n 30 "$log" >&2
        say "the whole log is in $log"
    fi
    return "$status"
}

# deps_dir: prints the directory for downloads, outside the tracked tree
deps_dir() {
    if [ -n "${RC_VARUNA_DEPS:-}" ]; then
        echo "$RC_VARUNA_DEPS"
    elif [ -n "${XDG_CACHE_HOME:-}" ]; then
        echo "$XDG_CACHE_HOME/rc_varuna"
    elif [ -n "${HOME:-}" ] && [ -w "$HOME" ]; then
        echo "$HOME/.cache/rc_varuna"
    else
        echo "$top/_deps"
    fi
}

# ucx_has_changed: whether the installed UCX is another one than the build directory was
# configured for, as after an update of the system
ucx_has_changed() {
    local libdir config=$build_dir/ucx-config/config.h

    libdir=$(sed -n 's/^S\["UCX_LIBDIR"\]="\(.*\)"$/\1/p' "$build_dir/config.status")
    [ -n "$libdir" ] || return 1 # configured without
    ! "$top/config/ucx_build_ids.sh" "$libdir" |
        cmp -s - <(grep '^#define RC_VARUNA_BUILD_ID_' "$config")
}

# needs_autogen: whether configure is missing, or older than its sources
needs_autogen() {
    [ ! -x "$top/configure" ] ||
        [ -n "$(find "$top/configure.ac" "$top/config/m4" -name '*.m4' \
                     -newer "$top/configure" -o -name configure.ac \
                     -newer "$top/configure")" ]
}

# make_configure: runs autogen.sh, if it is needed
make_configure() {
    mkdir -p "$build_dir"
    if needs_autogen; then
        say "autogen.sh"
        quietly "$build_dir/autogen.log" "$top/autogen.sh" ||
            die "autogen.sh failed"
    fi
}

# run_configure ARGUMENT...: configures the build directory
run_configure() {
    say "configure ($build_dir)"
    (cd "$build_dir" && quietly configure.log "$top/configure" "$@") ||
        die "configure failed"
}

# run_make: builds all
run_make() {
    say "make (a minute the first time)"
    quietly "$build_dir/make.log" make -C "$build_dir" -j"$(nproc)" ||
        die "make failed"
}

# run_install ARGUMENT...: installs what was built
run_install() {
    quietly "$build_dir/install.log" make -C "$build_dir" "$@" ||
        die "make install failed"
}

# ensure_built: builds and installs everything that is not up to date; sets
#   prefix     where it is installed: bin/mlx5emu, bin/rc_varuna_run
#   build_dir  where programs that are not installed are, as in src/
# For scripts that run programs (demo, benchmarks); quick if nothing has changed.
ensure_built() {
    "$top/contrib/build.sh"
    prefix=$(sed -n 's/^--prefix=//p' "$build_dir/configure.args")
}
