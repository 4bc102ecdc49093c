# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Sourced by all tests that run rc_varuna: the maximum lifetime of a packet. The
# emulated fabrics report 1.07 s (mlx5emu up --subnet-timeout), as OpenSM does, but
# delay no packet without a fault rule. A test whose rules delay packets of DC for
# longer sets its own value, as does a test of the default.
#
# A responder's fence that takes longer tells no PSN. On NICs of which nobody knows that
# packets stay in order, the log does not replace it, so a busy machine would make requests
# ambiguous there. Without DC no other step waits for the lifetime.
case ",${RC_VARUNA_QUIRK:-}," in
*,no-mlx5dv,*) : "${UCX_RC_VARUNA_PACKET_LIFETIME:=1s}" ;;
esac
export UCX_RC_VARUNA_PACKET_LIFETIME=${UCX_RC_VARUNA_PACKET_LIFETIME:-60ms}
