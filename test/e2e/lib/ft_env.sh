# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# For the fault tests, which source it after tap.sh: settings with which a failure takes
# some milliseconds, and how the drivers are run.

. "$top/test/e2e/lib/ft_fabric.sh"

ucx_defaults
export UCX_LOG_LEVEL=info
nic_gives_up 1ms 2
export UCX_RC_VARUNA_HOLD_MIN=2ms UCX_RC_VARUNA_HOLD_MAX=10ms
# The emulated NIC is a thread which may have no CPU for seconds; it does not hang then.
# Tests in which one does hang, or dies in silence, set this to what they need.
export UCX_RC_VARUNA_DRAIN_TIMEOUT=60s
export UCX_RC_VARUNA_CTL_TIMEOUT=20ms

# drive DRIVER OPTIONS...: runs it, with its output in ./out and as comments
drive() {
    local status=0 program=$1
    shift
    timeout 3600 "$apps/$program" "$@" "$RCV_PREFIX" "$apps/ft_job" >out 2>&1 ||
        status=$?
    sed 's/^/# /' out | tail -n 40 | cut -c 1-400
    if [ $status -ne 0 ]; then
        tail -n 30 "$program.log" | cut -c 1-300 | sed 's/^/# log: /'
        [ -z "${RC_VARUNA_KEEP:-}" ] || cp "$program.log" "$RC_VARUNA_KEEP"
        fail "$program ended with $status"
    fi
}
