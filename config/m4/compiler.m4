# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).

# RCV_ERROR(MESSAGE), RCV_WARN(MESSAGE)
# -------------------------------------
# AC_MSG_ERROR and AC_MSG_WARN of a message that may be broken over several lines here.
AC_DEFUN([RCV_ERROR], [AC_MSG_ERROR([m4_normalize([$1])])])
AC_DEFUN([RCV_WARN], [AC_MSG_WARN([m4_normalize([$1])])])


# RCV_COMPILER
# ------------
# Flags that everything is compiled with:
#   BASE_CPPFLAGS, BASE_CFLAGS, BASE_CXXFLAGS
# and DEVEL_CFLAGS, of which UCX's macros are clean only with GCC, for developers.
AC_DEFUN([RCV_COMPILER], [
    AC_ARG_ENABLE([devel-mode],
        [AS_HELP_STRING([--enable-devel-mode],
            [for developers: warnings of the compiler are errors, and nothing is left
             out because a package is missing])],
        [], [enable_devel_mode=no])
    AC_ARG_ENABLE([sanitizer],
        [AS_HELP_STRING([--enable-sanitizer=LIST],
            [compile with -fsanitize=LIST, e.g. address,undefined])],
        [], [enable_sanitizer=no])

    rcv_warnings="-Wall -Wextra -Wno-unused-parameter"
    rcv_warnings="$rcv_warnings -Wno-missing-field-initializers"
    AS_IF([test "x$enable_devel_mode" != xno],
          [rcv_warnings="$rcv_warnings -Werror"
           AC_SUBST([DEVEL_CFLAGS], ["-Wmissing-prototypes -Wcast-qual"])])

    rcv_sanitize=
    AS_CASE([$enable_sanitizer],
        [no], [],
        [yes], [RCV_ERROR([--enable-sanitizer needs a list, for example
                              --enable-sanitizer=address,undefined])],
        [rcv_sanitize="-fsanitize=$enable_sanitizer -fno-omit-frame-pointer"
         # UCX's ucs_queue_for_each() and its like step to container_of(NULL) behind
         # the last element, which they do not look at
         rcv_sanitize="$rcv_sanitize -fno-sanitize=pointer-overflow"])

    AC_SUBST([BASE_CPPFLAGS], ["-D_GNU_SOURCE"])
    AC_SUBST([BASE_CFLAGS],
             ["-std=gnu11 $rcv_warnings $rcv_sanitize"])
    AC_SUBST([BASE_CXXFLAGS], ["-std=gnu++17 $rcv_warnings $rcv_sanitize"])
])
