# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# For fault tests, which source it: settings that detect a failure within
# milliseconds, and a function that runs the drivers.

. "$(dirname "${BASH_SOURCE[0]}")/ft_fabric.sh"

ucx_defaults
export UCX_LOG_LEVEL=info
nic_gives_up 1ms 2
export UCX_RC_VARUNA_HOLD_MIN=2ms UCX_RC_VARUNA_HOLD_MAX=10ms
# The emulated NIC is a thread that can be without a CPU for seconds, which is not a
# hang. Tests in which a NIC hangs, or dies without an event, set a shorter time.
export UCX_RC_VARUNA_DRAIN_TIMEOUT=60s
export UCX_RC_VARUNA_CTL_TIMEOUT=20ms

# certify DIR: rc_varuna_audit certifies all recoveries that were recorded there; its
# summary is in ./certified. Baselines, and jobs without a failure, record none
certify() {
    local status=0
    "$RCV_PREFIX/bin/rc_varuna_audit" "$1" >certified || status=$?
    [ $status -eq 0 ] || [ $status -eq 3 ] ||
        fail "not certified: $(tail -n 5 certified | cut -c 1-400)"
}

# drive DRIVER OPTIONS...: runs it; its output is in ./out and in comments. All its
# recoveries are certified
drive() {
    local status=0 program=$1
    shift
    rm -rf audit
    mkdir audit
    UCX_RC_VARUNA_AUDIT=$PWD/audit timeout 3600 "$apps/$program" "$@" "$RCV_PREFIX" "$apps/ft_job" >out 2>&1 ||
        status=$?
    sed 's/^/# /' out | tail -n 40 | cut -c 1-400
    if [ $status -ne 0 ]; then
        tail -n 30 "$program.log" | cut -c 1-300 | sed 's/^/# log: /'
        [ -z "${RC_VARUNA_KEEP:-}" ] || cp "$program.log" "$RC_VARUNA_KEEP"
        fail "$program ended with $status"
    fi
    certify audit
}
