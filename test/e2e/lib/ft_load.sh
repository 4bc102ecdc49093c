# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# For tests with one server of ft_load.c, which source it: the server
# on host 0, and its counters, which it reads from UCX's VFS tree. Its log is server.log.

declare -F fabric_up >/dev/null || . "$(dirname "${BASH_SOURCE[0]}")/ft_fabric.sh"

# load_server_start MODE SIZE [NAME=VALUE...]: sets $server to its pid. It exits when no
# process has descriptor 9 open, so start background processes with 9>&-
load_server_start() {
    rm -f stdin
    mkfifo stdin
    : >server.log # That of a previous server has an address as well
    env "${@:3}" timeout 600 "$emu" exec -n "$fabric" 0 -- "$run" "$apps/ft_load" \
        "$1" "$2" <stdin >server.log 2>&1 &
    server=$!
    exec 9>stdin
    await 60 server.log '^ft: address'
    server_program=$(program_of $server)
    stop=load_server_stop
}

# load_server_address: prints the input of a client
load_server_address() {
    sed -n 's/^ft: address *//p' server.log
}

# load_server_call COMMAND...: on host 1, with the server's address as its input
load_server_call() {
    load_server_address | timeout 300 "$emu" exec -n "$fabric" 1 -- "$@"
}

load_server_stop() {
    exec 9>&-
    wait $server || fail "the server ended with $?: $(tail -n 5 server.log)"
    stop=
}

# counter NAME: prints the present value of a counter of the server's targets
counter() {
    local shown
    shown=$(grep -c '^ft: shown' server.log || :)
    kill -USR1 "$server_program"
    while [ "$(grep -c '^ft: shown' server.log)" -eq "$shown" ]; do
        kill -0 $server || fail "the server has died: $(tail -n 9 server.log)"
        sleep 0.02
    done
    sed -n "s|^vfs: .*/target/$1 ||p" server.log | tail -n 1
}

# counter_is NAME VALUE
counter_is() {
    [ "$(counter "$1")" = "$2" ]
}

# await_counter NAME VALUE: waits until the counter has this value
await_counter() {
    comes counter_is "$@" ||
        fail "$1 is $(counter "$1") and not $2: $(tail -n 5 server.log)"
}
