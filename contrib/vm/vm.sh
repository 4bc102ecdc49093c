#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# usage: contrib/vm/vm.sh up [--hosts N] [--ports K] [--accel NAME] [--memory MB] [DIR]
#        contrib/vm/vm.sh exec [--dir DIR] [--env NAME=VALUE]... HOST COMMAND [ARGUMENT...]
#        contrib/vm/vm.sh cable [--dir DIR] HOST PORT in|out
#        contrib/vm/vm.sh shell [--dir DIR] HOST
#        contrib/vm/vm.sh status|down [DIR]
#
# Virtual machines with the kernel's soft-RoCE (rdma_rxe), for tests of verbs devices that
# are not emulated. Every machine h0, h1, ... has the network interfaces eth0, eth1, ...;
# interface K of all machines is on network K. On each one there is a device rxeK with the
# address 10.76.K.(host + 1). The machines boot Debian's kernel in about ten seconds
# without hardware support; their root is this machine's root, read-only.
#
#   up      boots the machines, and waits until their devices exist
#   exec    runs a command in a machine, in the caller's directory, with its output and
#           its exit status
#   cable   pulls the cable of an interface out, or puts it in: the interface loses its
#           carrier
#   shell   runs the lines of standard input in the machine, one after the other
#   status  prints the machines and their devices
#   down    ends the machines
#
# DIR has everything about the machines: default $RC_VARUNA_VM_DIR, or vm in the build
# directory. Inside a machine, tc (netem) drops or delays packets, and ip changes
# addresses: contrib/vm/vm.sh exec h0 tc qdisc add dev eth0 root netem loss 1%

set -euo pipefail
prog=vm
. "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
dir=${RC_VARUNA_VM_DIR:-$build_dir/vm}

# number NAME VALUE MIN MAX
number() {
    [[ $2 =~ ^[0-9]{1,5}$ ]] && ((10#$2 >= $3 && 10#$2 <= $4)) ||
        die "$1 is \"$2\", but must be a number from $3 to $4"
}

# alive HOST: whether the machine's process exists
alive() {
    local pid= name=

    # Without processes, because it is called all the time
    { read -r pid <"$dir/$1/pid" && read -r name <"/proc/$pid/comm"; } 2>/dev/null || true
    [[ $name == qemu-system* ]]
}

# check_host HOST: the machine must be up
check_host() {
    [[ $1 =~ ^h[0-9]+$ ]] || die "\"$1\" is no machine: machines are h0, h1, ..."
    [ -d "$dir/$1" ] || die "there is no machine $1 in $dir: run $0 up"
    alive "$1" || die "machine $1 has ended; its console is in $dir/$1/console"
}

# qmp HOST JSON: sends a command to the machine's QEMU, and waits for its answer
qmp() {
    local host=$1 answer

    (
        flock 9
        exec {in}<>"$dir/$host/qmp.in" {out}<>"$dir/$host/qmp.out"
        echo "$2" >&"$in"
        while IFS= read -r -t 120 answer <&"$out"; do
            case $answer in
            '{"return"'*) exit 0 ;;
            '{"error"'*) die "QEMU of $host refuses: $answer" ;;
            esac
        done
        die "QEMU of $host does not answer"
    ) 9>"$dir/$host/qmp.lock"
}

# boot HOST NUMBER: starts a machine
boot() {
    local host=h$1 number=$1 image=$2 i args=()

    mkdir -p "$dir/$host/jobs"
    mkfifo "$dir/$host/qmp.in" "$dir/$host/qmp.out"
    for ((i = 0; i < ports; i++)); do
        args+=(-netdev "socket,id=net$i,mcast=239.76.$i.1:$mcast_port,localaddr=127.0.0.1"
               -device "virtio-net-pci,netdev=net$i,mac=52:54:00:76:0$i:0$number,romfile=")
    done
    qemu-system-x86_64 -accel "$accel" -cpu max -m "$memory" -nodefaults -no-reboot \
        -display none -serial "file:$dir/$host/console" -qmp "pipe:$dir/$host/qmp" \
        -kernel "$image/vmlinuz" -initrd "$image/initramfs" \
        -append "console=ttyS0 quiet panic=-1 vm.host=$number vm.ports=$ports vm.top=$top vm.dir=$dir" \
        -virtfs "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap" \
        -virtfs "local,path=$top,mount_tag=top,security_model=none,readonly=on,multidevs=remap" \
        -virtfs "local,path=$dir,mount_tag=dir,security_model=none,multidevs=remap" \
        -device virtio-rng-pci "${args[@]}" </dev/null >"$dir/$host/qemu" 2>&1 9>&- &
    echo $! >"$dir/$host/pid"
}

cmd_up() {
    local image number host limit
    hosts=2 ports=2 accel=tcg memory=768

    while [ $# -gt 0 ]; do
        case $1 in
        --hosts) number hosts "${2:-}" 1 8; hosts=$2; shift ;;
        --ports) number ports "${2:-}" 1 4; ports=$2; shift ;;
        --memory) number memory "${2:-}" 256 65535; memory=$2; shift ;;
        --accel) accel=${2:?NAME is missing}; shift ;;
        -*) usage >&2; exit 2 ;;
        *) dir=$1 ;;
        esac
        shift
    done
    dir=$(readlink -m "$dir")
    [[ $dir$top != *[[:space:],=]* ]] ||
        die "the names of $dir and $top must have no spaces, commas or equals signs"
    for host in "$dir"/h*; do
        ! alive "$(basename "$host")" ||
            die "machines of $dir are up already: run $0 down $dir"
    done
    rm -rf "$dir"
    mkdir -p "$dir"
    image=$("$top/contrib/vm/image.sh")
    # Two sets of machines at the same time need networks of their own
    mcast_port=$((20000 + $$ % 12000))
    for ((number = 0; number < hosts; number++)); do
        boot "$number" "$image"
    done

    limit=$((SECONDS + 600)) # It only ends a hang
    for ((number = 0; number < hosts; number++)); do
        host=h$number
        qmp "$host" '{"execute": "qmp_capabilities"}'
        until [ -f "$dir/$host/up" ]; do
            alive "$host" ||
                die "machine $host has ended: see $dir/$host/qemu and $dir/$host/console"
            ((SECONDS < limit)) ||
                die "machine $host is not up after 600 s: see $dir/$host/console"
            pause 0.2
        done
        [ "$(grep -c 'state ACTIVE' "$dir/$host/boot")" = "$ports" ] ||
            die "the devices of $host are not active: see $dir/$host/boot"
    done
    say "$hosts machines are up in $dir"
}

# job HOST COMMAND...: hands a job to the machine, waits for its end while its output is
# copied, and returns its status
job() {
    local host=$1 job env
    shift

    job=$(mktemp -d "$dir/$host/jobs/XXXXXX")
    {
        printf 'cd %q 2>/dev/null\n' "$PWD"
        for env in ${environment[@]+"${environment[@]}"}; do
            printf 'export %q\n' "$env"
        done
        printf '%q ' "$@"
        echo
    } >"$job/cmd"
    : >"$job/stdout"
    : >"$job/stderr"
    touch "$job/ready"
    tail -q -s 0.1 -c +1 -F "$job/stdout" 2>/dev/null &
    local out=$!
    tail -q -s 0.1 -c +1 -F "$job/stderr" >&2 2>/dev/null &
    local err=$!
    # shellcheck disable=SC2064
    trap "kill $out $err 2>/dev/null" EXIT
    while [ ! -f "$job/status" ] && alive "$host"; do
        pause 0.1
    done
    sleep 0.3
    kill "$out" "$err" 2>/dev/null || :
    trap - EXIT
    [ -f "$job/status" ] || die "machine $host has ended during the command"
    return "$(cat "$job/status")"
}

cmd_exec() {
    environment=()
    while [ $# -gt 0 ]; do
        case $1 in
        --dir) dir=$(readlink -m "${2:?DIR is missing}"); shift ;;
        --env) environment+=("${2:?NAME=VALUE is missing}"); shift ;;
        -*) usage >&2; exit 2 ;;
        *) break ;;
        esac
        shift
    done
    [ $# -ge 2 ] || { usage >&2; exit 2; }
    check_host "$1"
    job "$@"
}

cmd_cable() {
    local up

    [ "${1:-}" != --dir ] || { dir=$(readlink -m "${2:?DIR is missing}"); shift 2; }
    [ $# = 3 ] || { usage >&2; exit 2; }
    check_host "$1"
    number PORT "$2" 0 3
    case $3 in
    in) up=true ;;
    out) up=false ;;
    *) die "a cable is \"in\" or \"out\", not \"$3\"" ;;
    esac
    qmp "$1" '{"execute": "set_link", "arguments": {"name": "net'"$2"'", "up": '$up'}}'
}

cmd_shell() {
    local line

    environment=()
    [ "${1:-}" != --dir ] || { dir=$(readlink -m "${2:?DIR is missing}"); shift 2; }
    [ $# = 1 ] || { usage >&2; exit 2; }
    check_host "$1"
    while IFS= read -r -e -p "$1# " line; do
        job "$1" bash -c "$line" || say "status $?"
    done
}

cmd_status() {
    local host

    dir=$(readlink -m "${1:-$dir}")
    for host in "$dir"/h*; do
        [ -d "$host" ] || die "there are no machines in $dir"
        host=$(basename "$host")
        if alive "$host"; then
            echo "$host: up"
            cat "$dir/$host/boot"
        else
            echo "$host: ended"
        fi
    done
}

cmd_down() {
    local host pid i

    dir=$(readlink -m "${1:-$dir}")
    for host in "$dir"/h*; do
        alive "$(basename "$host")" || continue
        pid=$(cat "$host/pid")
        kill "$pid"
        for ((i = 0; i < 50; i++)); do
            [ -d "/proc/$pid" ] || break
            pause 0.1
        done
        [ ! -d "/proc/$pid" ] || kill -9 "$pid"
    done
}

case ${1:-} in
up|exec|cable|shell|status|down)
    "cmd_$1" "${@:2}"
    ;;
-h|--help)
    usage
    ;;
*)
    usage >&2
    exit 2
    ;;
esac
