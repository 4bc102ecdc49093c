# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Sourced by whatever runs rc_varuna in tests: how long a packet may live there. The
# emulated fabrics say 1.07 s (mlx5emu up --subnet-timeout), as OpenSM does, and delay
# none unless a fault rule says so: a test whose rules delay packets of DC for longer sets
# its own value, as does a test of the default.
export UCX_RC_VARUNA_PACKET_LIFETIME=${UCX_RC_VARUNA_PACKET_LIFETIME:-60ms}
