#!/bin/sh
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Makes ./configure. Called by contrib/build.sh, or by hand after a checkout.

set -e
cd "$(dirname "$0")"

for tool in autoreconf automake libtoolize; do
    if ! command -v "$tool" >/dev/null 2>&1; then
        echo "autogen.sh: $tool is missing; install autoconf, automake, libtool and" \
             "pkg-config (RHEL: pkgconf)" >&2
        exit 1
    fi
done

mkdir -p config/aux
exec autoreconf --install --warnings=all,no-portability
