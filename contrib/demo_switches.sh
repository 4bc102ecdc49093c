# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Sourced by demo.sh, and tested by test_demo.sh: what the lines "rc_varuna: switched" of
# logs say about switches of endpoints.

# switches LOG...: prints for each switch when it ended (seconds since 1970, or 0 if the
# line has no time), which kind of lane failed, how it was fenced, and the microseconds of
# detection, drain, fence and repeat
switches() {
    sed -nE 's/ reason="[^"]*"//; /rc_varuna: switched /p' "$@" | awk '
        {
            split("", of)
            for (i = 1; i <= NF; ++i) {
                at = index($i, "=")
                if (at > 0) of[substr($i, 1, at - 1)] = substr($i, at + 1)
            }
            end = ($1 ~ /^\[[0-9]+\.[0-9]+\]$/) ? substr($1, 2, length($1) - 2) : 0
            print end, ("was" in of) ? of["was"] : "unknown",
                ("fence" in of) ? of["fence"] : "unknown", of["detect_us"] + 0, of["drain_us"] + 0, of["fence_us"] + 0,
                of["repeat_us"] + 0
        }'
}

# switch_sum KEY LOG: prints the sum of this number over all switches
switch_sum() {
    sed -nE "s/.*rc_varuna: switched .* $1=([0-9]+).*/\1/p" "$2" |
        awk '{ sum += $1 } END { print sum + 0 }'
}

# pause_parts START USEC LOG: how the switches of a log fill the pause of USEC microseconds
# that began at START (seconds since 1970). Prints the number of switches in it; the
# microseconds that one of them spent within the pause on detection, drain, fence and
# repeat; and the rest of the pause. That one has ended within the pause, so that its
# repeated operations could end the pause, and fills most of it. (If none has ended within
# the pause, the one that fills most of it.) If no switch is in it: 0, the parts of the
# slowest switch, and the pause. The parts of a switch follow one another up to its line
# in the log.
pause_parts() {
    switches "$3" | awk -v from="$1" -v usec="$2" '
        # The microseconds of the pause between two times
        function within(since, until) {
            since = (since > 0) ? since : 0
            until = (until < usec) ? until : usec
            return (until > since) ? until - since : 0
        }
        {
            until = ($1 - from) * 1e6
            ended = (until <= usec)
            inside = all = 0
            for (i = 7; i >= 4; --i) {
                part[i] = within(until - $i, until)
                inside += part[i]
                all    += $i
                until  -= $i
            }
            count += (inside > 0)
            if (inside > 0 &&
                (ended > best_ended || (ended == best_ended && inside > most))) {
                best_ended = ended
                most = inside
                best = sprintf("%.0f %.0f %.0f %.0f", part[4], part[5], part[6], part[7])
            }
            if (NR == 1 || all > longest) {
                longest = all
                slowest = $4 " " $5 " " $6 " " $7
            }
        }
        END {
            if (NR > 0)
                printf "%d %s %.0f\n", count, count ? best : slowest, usec - most
        }'
}

# rc_fences WHICH LOG...: prints how RC lanes were fenced, one line for each switch. WHICH
# is "all", or "waited": those that needed a fence, and that no RESET has stopped. (A switch may
# also end with "dc": then the DC lane that took over has failed as well, and DC lanes always wait.)
rc_fences() {
    switches "${@:2}" | awk -v which="$1" '
        $2 == "rc" && (which == "all" || $3 !~ /^(none|reset|dc)$/) { print $3 }'
}
