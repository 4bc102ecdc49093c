# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).

# RCV_MLX5EMU
# -----------
# What the emulator needs. It knows nothing of UCX, and takes only headers of
# libibverbs: the library that it replaces is never linked.
# If something is missing, it is left out, unless it was asked for.
#   ZYDIS_LIBS, JANSSON_CFLAGS, JANSSON_LIBS; conditional HAVE_MLX5EMU
AC_DEFUN([RCV_MLX5EMU], [
    AC_ARG_ENABLE([mlx5emu],
        [AS_HELP_STRING([--disable-mlx5emu],
            [do not build the emulator (nor the tests that need it); the default is to
             build it if its libraries are there, --enable-mlx5emu insists on it])],
        [], [enable_mlx5emu=auto])

    AS_IF([test "x$enable_mlx5emu$with_ucx" = xnono],
          [RCV_ERROR([--without-ucx leaves only mlx5emu to be built, and
                         --disable-mlx5emu not even that])])

    AS_IF([test "x$enable_mlx5emu" != xno], [
        rcv_lacks=
        AS_CASE([$host],
            [x86_64-*-linux*], [],
            [rcv_lacks=", Linux on x86_64 (this is $host)"])
        AC_CHECK_HEADERS([infiniband/mlx5dv.h],
            [], [rcv_lacks="$rcv_lacks, libibverbs-dev (RHEL: rdma-core-devel)"])
        AC_CHECK_HEADERS([Zydis/Zydis.h],
            [AC_CHECK_LIB([Zydis], [ZydisDecoderInit],
                [AC_SUBST([ZYDIS_LIBS], [-lZydis])],
                [rcv_lacks="$rcv_lacks, libzydis-dev (Fedora: zydis-devel)"])],
            [rcv_lacks="$rcv_lacks, libzydis-dev (Fedora: zydis-devel)"])
        AC_CHECK_FUNC([close_range], [], [rcv_lacks="$rcv_lacks, glibc 2.34"])
        PKG_CHECK_MODULES([JANSSON], [jansson], [],
            [rcv_lacks="$rcv_lacks, libjansson-dev (RHEL: jansson-devel)"])
        rcv_lacks=`echo "$rcv_lacks" | $SED 's/^, //'`
        AS_IF([test -z "$rcv_lacks"],
              [enable_mlx5emu=yes],
              [test "x$enable_mlx5emu" = xyes || test "x$enable_devel_mode" != xno ||
               test "x$with_ucx" = xno],
              [RCV_ERROR([mlx5emu needs $rcv_lacks (or --disable-mlx5emu)])],
              [RCV_WARN([the emulator is not built, because it needs $rcv_lacks])
               enable_mlx5emu="no, it needs $rcv_lacks"])
    ])
    AM_CONDITIONAL([HAVE_MLX5EMU], [test "x$enable_mlx5emu" = xyes])
])
