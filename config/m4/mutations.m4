# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).

# RCV_MUTATIONS
# -------------
# --enable-mutations compiles deliberate mistakes into the plugin, which
# UCX_RC_VARUNA_MUTATE chooses from: the tests must find each of them.
#   MUTATION_CPPFLAGS
AC_DEFUN([RCV_MUTATIONS], [
    AC_ARG_ENABLE([mutations],
        [AS_HELP_STRING([--enable-mutations],
            [compile deliberate mistakes into the plugin, to test the tests
             (UCX_RC_VARUNA_MUTATE); never for use])],
        [], [enable_mutations=no])
    rcv_mutations=
    AS_IF([test "x$enable_mutations" != xno],
          [AC_MSG_WARN([the plugin is built with mutations: for tests only])
           rcv_mutations=-DUCT_VARUNA_MUTATIONS=1])
    AC_SUBST([MUTATION_CPPFLAGS], [$rcv_mutations])
])
