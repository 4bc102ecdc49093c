# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Sourced by scripts that start servers.

# next_port: sets $port to a TCP port that no socket has, another one at each call. All
# are below those that Linux gives to outgoing connections (from 32768 on)
next_port() {
    : "${port:=$((20000 + ($$ + RANDOM) % 12000))}"
    while :; do
        port=$((port < 32000 ? port + 1 : 20000))
        ! grep -qs "$(printf ':%04X ' "$port")" /proc/net/tcp /proc/net/tcp6 || continue
        return 0
    done
}
