# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).

# RCV_TESTS
# ---------
# The tests are built with the gtest harness of the UCX source tree, and only
# by "make check": conditional HAVE_GTEST says whether the tree has it.
AC_DEFUN([RCV_TESTS], [
    AC_MSG_CHECKING([for the gtest harness of the UCX source tree])
    rcv_harness="$UCX_SRC/test/gtest/common"
    AS_IF([test -f "$rcv_harness/test.cc" &&
           test -f "$rcv_harness/googletest/gtest.cc"],
          [rcv_have_gtest=yes], [rcv_have_gtest=no])
    AC_MSG_RESULT([$rcv_have_gtest])
    AM_CONDITIONAL([HAVE_GTEST], [test "x$rcv_have_gtest" = xyes])
    AC_ARG_ENABLE([baselines],
        [AS_HELP_STRING([--enable-baselines],
            [also build libuct_varuna_baselines.so, for measurements and their tests:
             it recovers as others do, and corrupts memory. It is not installed])],
        [], [enable_baselines=no])
    AM_CONDITIONAL([HAVE_BASELINES], [test "x$enable_baselines" != xno])
    AM_CONDITIONAL([HAVE_IODEMO],
                   [test -f "$UCX_SRC/test/apps/iodemo/io_demo.cc"])
])


# What was found, in a few lines.
AC_DEFUN([RCV_SUMMARY], [
    AC_MSG_NOTICE([])
    AC_MSG_NOTICE([rc_varuna $PACKAGE_VERSION])
    AS_IF([test "x$with_ucx" = xno],
          [AC_MSG_NOTICE([  UCX:          none, so only the emulator is built])],
          [AC_MSG_NOTICE([  UCX runtime:  $UCX_VERSION, $UCX_LIBDIR])
           AC_MSG_NOTICE([  UCX sources:  $UCX_SRC])])
    AC_MSG_NOTICE([  emulator:     $enable_mlx5emu])
    AC_MSG_NOTICE([  tests:        $rcv_have_gtest])
    AC_MSG_NOTICE([  prefix:       $prefix])
])
