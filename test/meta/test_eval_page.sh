#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# The report's HTML page in a browser, Debian's Chromium, which is installed if it is
# missing: no error, no picture missing, nothing from elsewhere.

. "$(dirname "${BASH_SOURCE[0]}")/../e2e/lib/tap.sh"

export RCV_BUILD RCV_PREFIX
"$top/contrib/setup.sh" --install chromium >/dev/null || exit 1

# The page itself has no script. This one, in a copy, says what became of its pictures
counting='<script>addEventListener("load", () => {
    const all = [...document.images];
    document.body.dataset.pictures = all.length;
    document.body.dataset.shown = all.filter(
        (one) => one.complete \&\& one.naturalWidth > 100).length;
    document.body.dataset.overflow = document.documentElement.scrollWidth > innerWidth;
});</script>'

# browse PAGE: opens it; sets $shown to "PICTURES SHOWN OVERFLOW", and errors are in ./errors
browse() {
    sed "s|</body>|${counting//$'\n'/ }</body>|" "$1" >counted.html
    timeout 600 chromium --headless --no-sandbox --disable-gpu --enable-logging=stderr \
        --user-data-dir="$PWD/profile" --window-size=1200,900 --dump-dom \
        "file://$PWD/counted.html" >dom.html 2>log || fail "$(tail -n 5 log)"
    grep -E 'CONSOLE|Failed to load|ERR_' log >errors || :
    shown=$(sed -nE 's/.*<body[^>]* data-pictures="([0-9]+)" data-shown="([0-9]+)" data-overflow="([a-z]+)".*/\1 \2 \3/p' \
            dom.html)
}

test_page_in_a_browser() {
    local figures=(share size cas) options=() name
    for name in "${figures[@]}"; do
        options+=(--figure "$name")
    done
    check "$top/contrib/eval.sh" --miniature "${options[@]}" "$PWD/eval" >out 2>&1
    browse eval/report.html
    [ "$shown" = "${#figures[@]} ${#figures[@]} false" ] ||
        fail "pictures, shown, overflow: \"$shown\""
    [ ! -s errors ] || fail "$(cat errors)"
    ! grep -oE '(src|href)="[^#"]{0,60}' eval/report.html | grep -v '="data:image/png;base64,' ||
        fail "the page refers to something else"

    # A page without one of its pictures, and one with an error, are found
    sed '0,/src="data:image/s|src="data:image/png;base64,[^"]*"|src="missing.png"|' \
        eval/report.html >broken.html
    browse broken.html
    [ "$shown" = "${#figures[@]} $((${#figures[@]} - 1)) false" ] ||
        fail "a missing picture is not found: \"$shown\""
    sed 's|</body>|<script>throw new Error("wrong");</script></body>|' eval/report.html \
        >broken.html
    browse broken.html
    [ -s errors ] || fail "an error is not found"
}

run_tests
