# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).

# RCV_MODES
# ---------
# Modes of atomics that can be left out. Their numbers in keys stay.
AC_DEFUN([RCV_MODES], [
    AC_ARG_ENABLE([extended],
        [AS_HELP_STRING([--disable-extended],
            [build the plugin without the modes "extended" and "reread" of atomics; keys of
             peers that use them are refused])],
        [], [enable_extended=yes])
    AS_IF([test "x$enable_extended" != xno],
          [AC_SUBST([HAVE_EXTENDED], [1])], [AC_SUBST([HAVE_EXTENDED], [0])])
    AM_CONDITIONAL([HAVE_EXTENDED], [test "x$enable_extended" != xno])
])
