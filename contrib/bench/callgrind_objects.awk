# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Sums the instructions of callgrind profiles, without those of the emulator, of the
# benchmark itself, and of waiting for another thread's lock, as valgrind runs one
# thread at a time. Called by run.sh.
#
# Format, for objects (ob) and functions (fn): in each file a name appears once in full,
# "ob=(3) /lib/libc.so.6", and then as "ob=(3)"; "cob=" is the object of a callee. The
# line after "calls=" is the inclusive cost of calls.

function object(text, id)
{
    id = text
    sub(/\).*/, ")", id)
    if (text ~ /\) /)
        names[FILENAME, id] = text
    return names[FILENAME, id] ~ /\/libmlx5emu[.]so|\/varuna_cost$/
}

function function_waits(text, id)
{
    id = text
    sub(/\).*/, ")", id)
    if (text ~ /\) /)
        functions[FILENAME, id] = text
    return functions[FILENAME, id] ~ /pthread_spin_lock/
}

/^ob=/      { foreign = object(substr($0, 4)); next }
/^cob=/     { object(substr($0, 5)); next }
/^fn=/      { waits = function_waits(substr($0, 4)); next }
/^cfn=/     { function_waits(substr($0, 5)); next }
/^calls=/   { called = 1; next }

/^[-+*0-9]/ {
    if (!called && !foreign && !waits)
        sum += $2
    called = 0
}

END { print sum + 0 }
