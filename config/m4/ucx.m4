# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).

# RCV_UCX
# -------
# Finds the UCX that the plugin is for (the runtime) and the source tree whose
# internal headers it is compiled with, and refuses to go on unless the two are
# the same version, configured the same way: ENABLE_ASSERT and its like change the
# layout of structures, so a mismatch would build and then corrupt memory.
#
# The runtime says itself what it is (ucx_info -v) and how it was configured
# (ucx_info -b). The config.h which the plugin is compiled with is made from the
# latter, in the build directory; the source tree may be read-only and need not
# be configured.
#
#   UCX_VERSION     version of the runtime, x.y.z
#   UCX_SRC         the source tree
#   UCX_INFO        the runtime's ucx_info
#   UCX_LIBDIR      directory of the runtime's libraries
#   UCX_CPPFLAGS    for what includes UCX's internal headers
#   UCX_PUBLIC_CPPFLAGS  for what uses UCX as any application does
#   UCX_LDFLAGS     }
#   UCX_LIBS        } for what links to libuct and libucs
#   UCX_IB_LIBS     for the one who needs symbols of libuct_ib as well
#   HAVE_UCX        conditional: false with --without-ucx, by which only the
#                   emulator is built
AC_DEFUN([RCV_UCX], [
    AC_ARG_WITH([ucx],
        [AS_HELP_STRING([--with-ucx=PREFIX],
            [prefix of the installed UCX (default: the one whose ucx_info is
             found first in PATH); --without-ucx: build only mlx5emu])],
        [], [with_ucx=yes])
    AC_ARG_WITH([ucx-src],
        [AS_HELP_STRING([--with-ucx-src=DIR],
            [source tree of the same UCX version; contrib/setup.sh gets one])],
        [], [with_ucx_src=no])

    AC_ARG_ENABLE([revision-check],
        [AS_HELP_STRING([--disable-revision-check],
            [accept a source tree that is not of the commit, or of the package, from
             which UCX was built])],
        [], [enable_revision_check=yes])

    AM_CONDITIONAL([HAVE_UCX], [test "x$with_ucx" != xno])
    AS_IF([test "x$with_ucx" != xno], [
        RCV_UCX_RUNTIME
        RCV_UCX_SOURCE
        RCV_UCX_REVISION
        RCV_UCX_CONFIG_H
        RCV_UCX_FLAGS
    ])
])


# The installed UCX: version, library directory.
AC_DEFUN([RCV_UCX_RUNTIME], [
    AC_CHECK_TOOL([READELF], [readelf], [readelf])
    export READELF
    AS_CASE([$with_ucx],
        [yes], [AC_PATH_PROG([UCX_INFO], [ucx_info], [no])],
        [AS_CASE([$with_ucx],
                 [/*], [],
                 [RCV_ERROR([--with-ucx: "$with_ucx" is not an absolute
                                path])])
         UCX_INFO="$with_ucx/bin/ucx_info"
         AS_IF([test -x "$UCX_INFO"], [],
               [RCV_ERROR([--with-ucx: there is no $UCX_INFO])])])
    AS_IF([test "x$UCX_INFO" = xno],
          [RCV_ERROR([ucx_info was not found. Install libucx-dev and
                         ucx-utils (contrib/setup.sh does; RHEL: ucx-devel and
                         ucx-ib), or name the prefix of an installed UCX by
                         --with-ucx=PREFIX])])
    # What is first in PATH has its own libraries, which may be others than /usr's
    rcv_ucx_prefix="$with_ucx"
    AS_IF([test "x$with_ucx" = xyes],
          [rcv_ucx_prefix=`dirname "$UCX_INFO"`
           rcv_ucx_prefix=`dirname "$rcv_ucx_prefix"`
           AS_CASE([$rcv_ucx_prefix], [/|/usr], [], [with_ucx="$rcv_ucx_prefix"])])
    # It may have been moved from where it was installed, as HPC-X is
    for rcv_dir in "$rcv_ucx_prefix/lib" "$rcv_ucx_prefix/lib64"; do
        AS_IF([test -e "$rcv_dir/libucs.so.0"],
              [LD_LIBRARY_PATH="$rcv_dir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
               export LD_LIBRARY_PATH])
    done
    AC_SUBST([UCX_INFO])

    AC_MSG_CHECKING([for the version of the installed UCX])
    UCX_VERSION=`"$srcdir/config/ucx_version.sh" installed "$UCX_INFO"`
    AS_IF([test -n "$UCX_VERSION"], [],
          [RCV_ERROR(["$UCX_INFO -v" does not tell a version])])
    AC_MSG_RESULT([$UCX_VERSION])
    AC_SUBST([UCX_VERSION])
    # It was compiled with these; docs/TESTING.md says with which of them it was run
    rcv_tried="1.13.1, 1.14.0, 1.14.1, 1.15.0, 1.16.0, 1.17.0, 1.18.0, 1.18.1, 1.19.0"
    rcv_tried="$rcv_tried, 1.19.1, 1.20.0, 1.20.1, 1.21.0, 1.22.0 and master at"
    rcv_tried="$rcv_tried 9466d104a317"
    AS_VERSION_COMPARE([$UCX_VERSION], [1.13.1],
        [RCV_ERROR([UCX $UCX_VERSION, the installed one ($UCX_INFO), is too old for
                       the plugin, which was tried with $rcv_tried: name one of
                       them by --with-ucx=PREFIX, or build only mlx5emu by
                       --without-ucx])])

    AC_MSG_CHECKING([for the libraries of the installed UCX])
    rcv_libucs=`ldd "$UCX_INFO" 2>/dev/null | \
        $AWK '/libucs\.so/ && [$]3 ~ /^\// {print [$]3; exit}'`
    AS_IF([test -n "$rcv_libucs"], [],
          [RCV_ERROR(["ldd $UCX_INFO" does not name libucs.so])])
    UCX_LIBDIR=`readlink -f "$rcv_libucs"`
    UCX_LIBDIR=`dirname "$UCX_LIBDIR"`
    AC_MSG_RESULT([$UCX_LIBDIR])
    rcv_is_ours=no
    for rcv_lib in "$rcv_ucx_prefix"/lib/libucs.so.0 "$rcv_ucx_prefix"/lib64/libucs.so.0 \
                   "$rcv_ucx_prefix"/lib/*/libucs.so.0; do
        rcv_lib=`readlink -f "$rcv_lib"`
        AS_IF([test "x$rcv_lib" = "x`readlink -f "$rcv_libucs"`"], [rcv_is_ours=yes])
    done
    AS_IF([test "x$rcv_is_ours" = xyes], [],
          [RCV_ERROR([$UCX_INFO uses the libraries in $UCX_LIBDIR, which are not those
                      of $rcv_ucx_prefix: name the prefix of one UCX by
                      --with-ucx=PREFIX, and look at LD_LIBRARY_PATH])])
    AC_SUBST([UCX_LIBDIR])
])


# The source tree: is it one, and of the runtime's version?
AC_DEFUN([RCV_UCX_SOURCE], [
    AC_MSG_CHECKING([for the UCX source tree])
    AS_CASE([$with_ucx_src],
        [no|yes|''],
        [AC_MSG_RESULT([no])
         RCV_ERROR([the plugin needs the internal headers of UCX
                       $UCX_VERSION: name its source tree by
                       --with-ucx-src=DIR (contrib/setup.sh gets it and prints
                       where it is)])])
    UCX_SRC=`cd "$with_ucx_src" 2>/dev/null && pwd`
    AS_IF([test -n "$UCX_SRC"], [],
          [AC_MSG_RESULT([no])
           RCV_ERROR([--with-ucx-src: there is no directory
                         "$with_ucx_src"])])
    for rcv_file in configure.ac src/uct/base/uct_iface.h src/ucs/type/class.h
    do
        AS_IF([test -f "$UCX_SRC/$rcv_file"], [],
              [AC_MSG_RESULT([no])
               RCV_ERROR([--with-ucx-src: $UCX_SRC is not a UCX source tree:
                             it has no $rcv_file])])
    done
    AC_MSG_RESULT([$UCX_SRC])
    AC_SUBST([UCX_SRC])

    AC_MSG_CHECKING([for the version of the UCX source tree])
    rcv_src_version=`"$srcdir/config/ucx_version.sh" source "$UCX_SRC"`
    AC_MSG_RESULT([$rcv_src_version])
    AS_IF([test "x$rcv_src_version" = "x$UCX_VERSION"], [],
          [RCV_ERROR([the source tree $UCX_SRC is UCX $rcv_src_version, but
                         the installed UCX ($UCX_INFO) is $UCX_VERSION: their
                         internal structures differ. Give the source tree of
                         $UCX_VERSION, or another runtime by --with-ucx])])
])


# The commit, or the package: one version has many builds, and vendors build commits from
# before the release.
AC_DEFUN([RCV_UCX_REVISION], [
    AC_MSG_CHECKING([whether the source tree is the installed UCX's])
    rcv_installed=`"$srcdir/config/ucx_version.sh" installed-revision "$UCX_INFO"`
    rcv_source=`"$srcdir/config/ucx_version.sh" source-revision "$UCX_SRC"`
    # What the tree has of the same kind
    rcv_same_kind=`echo "$rcv_source" | grep "^${rcv_installed%% *} "`
    AS_IF([test -z "$rcv_installed"],
          [AC_MSG_RESULT([unknown])
           RCV_WARN([the installed UCX ($UCX_INFO) does not tell what it was built from.
                     Make sure that $UCX_SRC has exactly its sources: structures
                     differ between builds of one version])],
          [test "x$rcv_same_kind" = "x$rcv_installed"],
          [AC_MSG_RESULT([yes, $rcv_installed])],
          [test -z "$rcv_same_kind"],
          [AC_MSG_RESULT([unknown])
           RCV_WARN([the installed UCX ($UCX_INFO) was built from $rcv_installed, and
                     $UCX_SRC does not tell what it is. Make sure that it has exactly
                     these sources: structures differ between builds of one version])],
          [test "x$enable_revision_check" != xno],
          [AC_MSG_RESULT([no])
           RCV_ERROR([the source tree $UCX_SRC is of $rcv_same_kind, but the installed
                      UCX ($UCX_INFO) was built from $rcv_installed: their internal
                      structures may differ. Give the tree of $rcv_installed, or, if
                      you know that they are the same, --disable-revision-check])],
          [AC_MSG_RESULT([no, $rcv_same_kind instead of $rcv_installed])])
])


# config.h of the runtime, and its comparison with the source tree's own.
AC_DEFUN([RCV_UCX_CONFIG_H], [
    AC_MSG_CHECKING([whether the source tree is configured like the installed UCX])
    AS_MKDIR_P([ucx-config])
    AS_IF([rcv_out=`"$srcdir/config/ucx_config_h.sh" "$UCX_INFO" \
                    ucx-config/config.h "$UCX_SRC/config.h" "$UCX_LIBDIR" 2>&1`],
          [AC_MSG_RESULT([$rcv_out])],
          [AC_MSG_RESULT([no])
           RCV_ERROR([$rcv_out])])

    AC_MSG_CHECKING([for the build-ids of its libraries])
    rcv_no_id=`$SED -n 's/^#define RC_VARUNA_BUILD_ID_\(.*\) ""$/lib\1/p' \
                   ucx-config/config.h | tr 'A-Z\n' 'a-z '`
    AS_IF([test -z "$rcv_no_id"],
          [AC_MSG_RESULT([yes])],
          [AC_MSG_RESULT([none of $rcv_no_id])
           RCV_WARN([without a build-id of ${rcv_no_id}in $UCX_LIBDIR the plugin
                     recognises another build only by the sizes of its structures])])
])


AC_DEFUN([RCV_UCX_FLAGS], [
    rcv_ucx_installed=
    UCX_LDFLAGS=
    AS_CASE([$with_ucx],
        [yes|/usr], [],
        [rcv_ucx_installed="-isystem $with_ucx/include"
         UCX_LDFLAGS="-L$UCX_LIBDIR -Wl,-rpath,$UCX_LIBDIR"])

    # As system headers: UCX's inlines are not clean under -Wextra. The
    # generated ones (version.h) are those of the installed UCX.
    UCX_CPPFLAGS="-DHAVE_CONFIG_H -I\$(top_builddir)/ucx-config"
    UCX_CPPFLAGS="$UCX_CPPFLAGS -isystem $UCX_SRC/src $rcv_ucx_installed"
    UCX_LIBS="-luct -lucs"
    UCX_IB_LIBS="-L$UCX_LIBDIR/ucx -l:libuct_ib.so.0"
    # Newer series have the mlx5 part in a library of its own
    AS_IF([test -e "$UCX_LIBDIR/ucx/libuct_ib_mlx5.so.0"],
          [UCX_IB_LIBS="$UCX_IB_LIBS -l:libuct_ib_mlx5.so.0"])
    UCX_IB_LIBS="$UCX_IB_LIBS -Wl,-rpath,$UCX_LIBDIR/ucx"
    AC_SUBST([UCX_CPPFLAGS])
    AC_SUBST([UCX_PUBLIC_CPPFLAGS], ["$rcv_ucx_installed"])
    AC_SUBST([UCX_LDFLAGS])
    AC_SUBST([UCX_LIBS])
    AC_SUBST([UCX_IB_LIBS])

    AC_MSG_CHECKING([whether UCX's internal headers compile])
    rcv_save_CPPFLAGS="$CPPFLAGS"
    rcv_save_LDFLAGS="$LDFLAGS"
    rcv_save_LIBS="$LIBS"
    CPPFLAGS="$BASE_CPPFLAGS -DHAVE_CONFIG_H -Iucx-config -isystem $UCX_SRC/src"
    CPPFLAGS="$CPPFLAGS $rcv_ucx_installed $rcv_save_CPPFLAGS"
    LDFLAGS="$UCX_LDFLAGS $LDFLAGS"
    LIBS="$UCX_LIBS $LIBS"
    AC_LINK_IFELSE([AC_LANG_PROGRAM(
        [[#include "config.h"
          #include <uct/base/uct_iface.h>
          #include <uct/base/uct_md.h>
          #include <ucs/datastruct/mpool.h>]],
        [[uct_iface_mpool_empty_warn(NULL, NULL);]])],
        [AC_MSG_RESULT([yes])
         rcv_linked=`ldd conftest$EXEEXT 2>/dev/null | \
             $AWK '/libuct\.so/ && [$]3 ~ /^\// {print [$]3; exit}'`
         rcv_linked=`readlink -f "$rcv_linked"`
         AS_IF([test "x`dirname "$rcv_linked"`" = "x$UCX_LIBDIR"], [],
               [RCV_ERROR([a program is linked with $rcv_linked, and $UCX_INFO with
                           the libraries in $UCX_LIBDIR: name the prefix of one UCX by
                           --with-ucx=PREFIX, and look at LD_LIBRARY_PATH])])],
        [AC_MSG_RESULT([no])
         RCV_ERROR([a program with UCX's internal headers cannot be built:
                       see config.log. On Debian libucx-dev and libnuma-dev
                       are needed, on RHEL ucx-devel and numactl-devel])])
    AC_CHECK_HEADERS([infiniband/mlx5dv.h], [],
        [RCV_ERROR([the plugin needs libibverbs-dev (RHEL: rdma-core-devel)])])
    CPPFLAGS="$rcv_save_CPPFLAGS"
    LDFLAGS="$rcv_save_LDFLAGS"
    LIBS="$rcv_save_LIBS"

    rcv_major=`echo $UCX_VERSION | cut -d. -f1`
    rcv_minor=`echo $UCX_VERSION | cut -d. -f2`
    rcv_patch=`echo $UCX_VERSION | cut -d. -f3`
    AC_DEFINE_UNQUOTED([RC_VARUNA_UCX_VERSION], ["$UCX_VERSION"],
                       [UCX version that the plugin is built for])
    AC_DEFINE_UNQUOTED([RC_VARUNA_UCX_MAJOR], [$rcv_major], [its first number])
    AC_DEFINE_UNQUOTED([RC_VARUNA_UCX_MINOR], [$rcv_minor], [its second number])
    AC_DEFINE_UNQUOTED([RC_VARUNA_UCX_PATCH], [$rcv_patch], [its third number])
])
