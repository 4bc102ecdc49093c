# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Sourced by scripts that wait for something by looking again and again.

# pause SECONDS: waits without a process of its own, which takes more of a processor than
# most looks do. Nobody writes to this pipe
exec {never}<> <(:)
pause() {
    read -r -t "$1" -u "$never" || true
}
