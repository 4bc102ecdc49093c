# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# The table of "atomics.sh speed". Reads "WINDOW PATH OPERATION ROUND NANOSECONDS" and
# "messages PATH OPERATION NUMBER". The variables names and paths are those of the modes; the
# first is what the others are compared with.

# spread(): "minimum / median / maximum" of the numbers value[1..count]
function spread(count, format,   i, j, v)
{
    for (i = 2; i <= count; ++i) {
        v = value[i]
        for (j = i - 1; (j > 0) && (value[j] > v); --j) {
            value[j + 1] = value[j]
        }
        value[j + 1] = v
    }
    return sprintf(format " / " format " / " format, value[1],
                   value[int((count + 1) / 2)], value[count])
}

# column(): a mode's times with so many operations in flight, as a ratio in each round
function column(mode, op, window,   round, ours, plain, is_rate)
{
    is_rate = (window > 1)
    for (round = 0; round < rounds; ++round) {
        ours  = time[window, path[mode], op, round]
        plain = time[window, path[1], op, round]
        if ((ours == 0) || (plain == 0)) {
            printf "no time of %s with %d in flight\n", op, window >"/dev/stderr"
            exit 1
        }
        if (mode == 1) {
            value[round + 1] = is_rate ? 1e6 / ours : ours / 1e3
        } else {
            value[round + 1] = is_rate ? plain / ours : ours / plain
        }
    }
    return spread(rounds, (mode == 1) ? "%.1f" : "%.2f")
}

BEGIN {
    modes = split(names, name)
    split(paths, path)
}

NF == 5 {
    time[$1, $2, $3, $4] = $5
    rounds = ($4 >= rounds) ? $4 + 1 : rounds
    if (!seen[$3]++) {
        operation[++operations] = $3
    }
}

$1 == "messages" { sent[$2, $3] = $4 }

END {
    print "| mode | operation | latency | rate, 16 in flight | rate, 64 in flight |" \
          " messages, 16 in flight |"
    print "|---|---|---|---|---|---|"
    for (i = 1; i <= modes; ++i) {
        for (k = 1; k <= operations; ++k) {
            if (!((path[i], operation[k]) in sent)) {
                printf "no messages of %s\n", operation[k] >"/dev/stderr"
                exit 1
            }
            printf "| %s | %s | %s | %s | %s | %.2f |\n", name[i], operation[k],
                   column(i, operation[k], 1), column(i, operation[k], 16),
                   column(i, operation[k], 64), sent[path[i], operation[k]]
        }
    }
}
