# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).

# RCV_MLX5EMU
# -----------
# What the emulator needs. It knows nothing of UCX, and takes only headers of
# libibverbs: the library that it stands in for is never linked.
#   ZYDIS_LIBS, JANSSON_CFLAGS, JANSSON_LIBS; conditional HAVE_MLX5EMU
AC_DEFUN([RCV_MLX5EMU], [
    AC_ARG_ENABLE([mlx5emu],
        [AS_HELP_STRING([--disable-mlx5emu],
            [do not build the emulator (nor the tests that need it)])],
        [], [enable_mlx5emu=yes])

    AS_IF([test "x$enable_mlx5emu$with_ucx" = xnono],
          [RCV_ERROR([--without-ucx leaves only mlx5emu to be built, and
                         --disable-mlx5emu not even that])])

    AS_IF([test "x$enable_mlx5emu" != xno], [
        AS_CASE([$host],
            [x86_64-*-linux*], [],
            [RCV_ERROR([mlx5emu decodes x86_64 instructions and runs on
                           Linux only, and this is $host: give
                           --disable-mlx5emu])])
        AC_CHECK_HEADERS([infiniband/verbs.h infiniband/mlx5dv.h Zydis/Zydis.h],
            [],
            [RCV_ERROR([mlx5emu needs the headers of libibverbs-dev and
                           libzydis-dev (contrib/setup.sh installs them; or
                           --disable-mlx5emu)])])
        AC_CHECK_LIB([Zydis], [ZydisDecoderInit],
            [AC_SUBST([ZYDIS_LIBS], [-lZydis])],
            [RCV_ERROR([mlx5emu needs libzydis-dev])])
        PKG_CHECK_MODULES([JANSSON], [jansson], [],
            [RCV_ERROR([mlx5emu needs libjansson-dev])])
    ])
    AM_CONDITIONAL([HAVE_MLX5EMU], [test "x$enable_mlx5emu" != xno])
])
