# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Splits the instructions of a callgrind profile into those of the emulator and
# the rest. What the emulator calls in other objects (memcpy, system calls) is
# the emulator's. Called by run.sh; prints "REST EMULATOR".
#
# Of the format: a name appears in full once, "ob=(3) /lib/libc.so.6", and as
# "ob=(3)" from then on; "cob=" is the object of a callee, and lasts for one
# "calls=" line, behind which the inclusive cost of the calls follows.

function object(text, id)
{
    id = text
    sub(/\).*/, ")", id)
    if (text ~ /\) /)
        names[id] = text
    return names[id] ~ emulator
}

BEGIN { emulator = "/libmlx5emu[.]so" }

/^ob=/      { current = object(substr($0, 4)); next }
/^cob=/     { callee = object(substr($0, 5)); has_callee = 1; next }
/^calls=/   { called = 1; next }

/^[-+*0-9]/ {
    if (called) {
        # Into other objects only: what stays inside is counted there
        if (current && has_callee && !callee)
            foreign += $2
        called = 0
        has_callee = 0
    } else {
        own[current ? 1 : 0] += $2
    }
}

END { printf "%d %d\n", own[0] - foreign, own[1] + foreign }
