# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# For tests with their own scenario, which source it: a server and a
# client of ft_job.c on two hosts, and commands for them. Their logs are server.log and
# client.log, their answers server.out and client.out. "other" is a second client.

. "$(dirname "${BASH_SOURCE[0]}")/ft_env.sh"

job=ft_job # Or ft_atom_job
launcher=$run # Or mutant.sh's
jobs_timeout=600 # Seconds, which only end a hang

# job_start ROLE HOST [ENV...]: its input is ROLE.in
job_start() {
    local role=$1 host=$2 args=("${1/other/client}")
    shift 2
    [ $job != ft_job ] || args+=("$PWD/memory")
    rm -f "$role.in"
    mkfifo "$role.in"
    : >"$role.out" >"$role.log" # They must exist before it runs
    env UCX_LOG_FILE=stderr "$@" timeout "$jobs_timeout" "$emu" exec -n "$fabric" "$host" -- \
        "$launcher" "$apps/$job" "${args[@]}" \
        <"$role.in" >"$role.out" 2>"$role.log" 7>&- 8>&- 9>&- &
    eval "${role}_pid=$!"
}

# read_answers ROLE: stores its answers in $all_answers. Without a process, because many tests
# do little else than to wait for answers
read_answers() {
    local line
    all_answers=()
    while IFS= read -r line; do
        [[ ! $line =~ ^ft:\ (ok|fail|address|ready) ]] || all_answers+=("$line")
    done <"$1.out"
}

# answers ROLE: prints the number of answers
answers() {
    read_answers "$1"
    echo ${#all_answers[@]}
}

# has_answered ROLE NUMBER
has_answered() {
    read_answers "$1"
    [ ${#all_answers[@]} -ge "$2" ]
}

# await_answer ROLE [NUMBER]: waits for this answer, or that to the command which was assigned
# last, and stores it in $answer
await_answer() {
    comes has_answered "$1" "${2:-$assigned}" ||
        fail "the $1 does not answer: $(tail -n 2 "$1.out" "$1.log")"
    answer=${all_answers[${2:-$assigned} - 1]}
}

# await_ok ROLE: ... which must be "ok"
await_ok() {
    await_answer "$1"
    [[ $answer == "ft: ok"* ]] || fail "$1: $answer"
}

# tell ROLE COMMAND: sends it, and does not wait for the answer
tell() {
    case $1 in
    server) echo "$2" >&8 ;;
    client) echo "$2" >&9 ;;
    other) echo "$2" >&7 ;;
    esac
}

# assign ROLE COMMAND: sends it; await_answer and await_ok wait for its answer
assign() {
    read_answers "$1"
    assigned=$((${#all_answers[@]} + 1))
    tell "$1" "$2"
}

# ask ROLE COMMAND: sends it and waits for its answer, which must be "ok"
ask() {
    local assigned
    assign "$1" "$2"
    await_answer "$1"
    [[ $answer == "ft: ok"* ]] || fail "$1: $2: $answer"
}

# jobs_start [ENV...]: starts and connects both; the variables are for the server
jobs_start() {
    truncate -s 16M memory
    stop=jobs_stop
    server_start "$@"
    job_start client 1
    exec 9>client.in
    await_answer client 1
    ask client "connect$server_address"
    [ $job != ft_job ] || ask client "timeout $((safety - 20))"
    ask client open
}

# server_kill: kills the server, and moves its files to gone/
server_kill() {
    kill -KILL "$(program_of "$server_pid")"
    wait "$server_pid" 2>/dev/null || true
    exec 8>&-
    rm -rf gone
    mkdir gone
    mv server.in server.out server.log gone
}

# server_start [ENV...]: starts a server; its address is in $server_address
server_start() {
    job_start server 0 "$@"
    exec 8>server.in
    await_answer server 1
    server_address=${answer#ft: address}
}

# other_start HOST [ENV...]: starts and connects a second client
other_start() {
    job_start other "$@"
    exec 7>other.in
    await_answer other 1
    ask other "connect$server_address"
    ask other open
}

other_stop() {
    exec 7>&-
    wait "$other_pid" || fail "the other client: $(tail -n 3 other.log)"
}

jobs_stop() {
    exec 9>&-
    wait "$client_pid" || fail "the client: $(tail -n 3 client.log)"
    exec 8>&-
    wait "$server_pid" || fail "the server: $(tail -n 3 server.log)"
    stop=
}

# is_on_rc [COUNT]: one put, or addition; whether the client's endpoint came to RC COUNT times (1)
warm_ups=0
is_on_rc() {
    ask client "warm$([ $job != ft_job ] || echo " $((++warm_ups))")"
    has_lines client.log 'planned swap from dc .* to rc' "${1:-1}" ||
        { ask client "idle 0.02" && false; }
}

# wait_for_rc [COUNT]: waits until the client's endpoint is on RC (needs UCX_LOG_LEVEL=debug)
wait_for_rc() {
    comes is_on_rc "$@" || fail "the endpoint does not get RC"
}

# jobs_on_rc [OPTION...]: both, on a fabric with these options, and the client is on RC
jobs_on_rc() {
    fabric_up "$@"
    jobs_start
    wait_for_rc
}
