# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Sourced by all tests that run rc_varuna: the maximum lifetime of a packet. The
# emulated fabrics report 1.07 s (mlx5emu up --subnet-timeout), as OpenSM does, but
# delay no packet without a fault rule. A test whose rules delay packets of DC for
# longer sets its own value, as does a test of the default.
export UCX_RC_VARUNA_PACKET_LIFETIME=${UCX_RC_VARUNA_PACKET_LIFETIME:-60ms}
