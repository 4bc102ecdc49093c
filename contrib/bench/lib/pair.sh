# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Sourced by scripts that run pairs of a server and a client, on two emulated hosts. They
# set $keep: whether $dir, with the logs, is kept.

. "$top/contrib/next_port.sh"

# pair_init: sets the variables below; everything ends with the script
pair_init() {
    if [ -z "${RCV_PREFIX:-}" ]; then
        ensure_built
        RCV_PREFIX=$prefix RCV_BUILD=$build_dir
    fi
    emu=$RCV_PREFIX/bin/mlx5emu
    launcher=$RCV_PREFIX/bin/rc_varuna_run
    dir=$(mktemp -d)
    fabric=bench-$$
    server=
    next_port
    trap pair_cleanup EXIT
    trap 'exit 130' INT TERM
}

pair_cleanup() {
    if [ -n "$server" ]; then
        kill "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
    "$emu" down -n "$fabric" 2>/dev/null || true
    [ "$keep" = yes ] || rm -rf "$dir"
}

# await_server LABEL: waits until it listens on a port or socket, because ucx_perftest's
# client does not wait for it
await_server() {
    local i address
    address=$(printf ':%04X [0-9A-F:]* 0A ' $port)
    for ((i = 0; i < 1200; ++i)); do
        if [ -S "$dir/socket" ] || grep -q "$address" /proc/net/tcp; then
            return 0
        fi
        kill -0 "$server" 2>/dev/null || break
        sleep 0.05
    done
    tail -n 20 "$dir/server.log" >&2
    die "$1: the server does not listen"
}

# pair TRANSPORT LABEL SERVER-COMMAND... -- CLIENT-COMMAND...: runs both, on host 0 and
# 1; the client's output is in $dir/log. "@" is replaced by the transport's launcher, if
# it has one.
pair() {
    local transport=$1 label=$2 status=0 word start=() first=() second=() where=first
    shift 2
    [ "$transport" != rc_varuna ] || start=("$launcher")
    for word in "$@"; do
        case $word in
        --) where=second ;;
        @) if [ $where = first ]; then first+=("${start[@]}")
           else second+=("${start[@]}"); fi ;;
        *) if [ $where = first ]; then first+=("$word"); else second+=("$word"); fi ;;
        esac
    done

    rm -f "$dir/socket"
    timeout 600 "$emu" exec -n "$fabric" 0 -- "${first[@]}" >"$dir/server.log" 2>&1 &
    server=$!
    await_server "$label over $transport"
    timeout 600 "$emu" exec -n "$fabric" 1 -- "${second[@]}" >"$dir/log" 2>&1 ||
        status=$?
    if [ $status -ne 0 ]; then
        keep=yes
        tail -n 20 "$dir/log" "$dir/server.log" >&2
        die "$label over $transport failed: status $status; logs are in $dir"
    fi
    wait "$server" || die "$label over $transport: the server failed"
    server=
}
