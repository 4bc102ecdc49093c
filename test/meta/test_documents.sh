#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Everything that the documents refer to exists: files, headings, tests, mutations,
# models, functions.

. "$(dirname "${BASH_SOURCE[0]}")/../e2e/lib/tap.sh"

# documents: prints all of them, with their paths in the checkout
documents() {
    (cd "$top" && find . -name '*.md' -not -path './_*' -not -path './.git/*' \
                       -not -path '*/_build*' | sed 's|^\./||')
}

# anchors FILE: prints the anchors of its headings, as GitHub makes them
anchors() {
    sed -n 's/^##* //p' "$1" | tr 'A-Z ' 'a-z-' | tr -cd 'a-z0-9_\n-'
}

# links FILE: prints the targets of its links, except web addresses
links() {
    awk '/^```/ { code = !code } !code' "$1" | tr '\n' ' ' |
        grep -oE '\]\( *[^) ]+ *\)' | tr -d ']() ' | grep -v '^https*:' || true
}

# check_links DIR DOCUMENT...: checks the links of these documents, named below DIR
check_links() {
    local document link path anchor wrong=0 count=0 top=$1
    shift

    for document in "$@"; do
        while read -r link; do
            [ -n "$link" ] || continue
            count=$((count + 1))
            path=${link%%#*}
            anchor=
            [[ $link != *'#'* ]] || anchor=${link#*#}
            path=${path:+$(dirname "$top/$document")/$path}
            path=${path:-$top/$document}
            if [ ! -e "$path" ]; then
                echo "# $document: there is no $link"
                wrong=1
            elif [ -n "$anchor" ] && ! grep -qx -e "$anchor" < <(anchors "$path"); then
                echo "# $document: there is no heading $link"
                wrong=1
            fi
        done < <(links "$top/$document")
    done
    [ "$count" -gt 0 ] || fail "there are no links"
    [ $wrong = 0 ] || fail "links are broken"
}

# has_test SUITE NAME: whether a script has this test, or a gtest suite CLASS.NAME
has_test() {
    local script class name

    if [[ $1 == gtest_* ]]; then
        class=${2%%.*}
        name=${2#*.}
        grep -rqE "UCS_TEST[A-Z_]*\($class, $name[,)]" "$top/test/gtest"
        return
    fi
    for script in "$top"/test/e2e/*/"$1.sh" "$top/test/meta/$1.sh"; do
        [ ! -e "$script" ] || ! grep -qE "^$2\(\)" "$script" || return 0
    done
    return 1
}

# has_mutation NAME: whether there is this mutation
has_mutation() {
    [ -e "$top/test/mutations/$1.patch" ]
}

# check_invariants DOCUMENT: checks each line of its table of tests
check_invariants() {
    local rows number tests mutations models word wrong=0 suite name

    rows=$(sed -n '/^| *| Test | Mutation | Model |/,/^$/p' "$1" | grep -E '^\| [0-9]+ ')
    [ "$(wc -l <<<"$rows")" -eq "$(sed -n '/^| *| Invariant |/,/^$/p' "$1" |
                                   grep -cE '^\| [0-9]+ ')" ] ||
        fail "the two tables of invariants differ in length"

    while IFS='|' read -r _ number tests mutations models _; do
        [[ $tests == *'`'* ]] || fail "invariant $number has no test"
        for word in $(grep -oE '`[^`]+: [^`]+`' <<<"$tests" | tr -d '`' | tr -d ' '); do
            suite=${word%%:*}
            name=${word#*:}
            has_test "$suite" "$name" || {
                echo "# invariant $number: $suite has no test $name"
                wrong=1
            }
        done
        for word in $(grep -oE '^ *`[^`]+`' <<<"$mutations" | tr -d '`'); do
            has_mutation "$word" || {
                echo "# invariant $number: there is no mutation $word"
                wrong=1
            }
        done
        for word in $(grep -oE '`[^`]+`' <<<"$models" | tr -d '`'); do
            grep -qw "$word" "$top"/test/models/test_models.sh ||
                {
                    echo "# invariant $number: no model leaves out $word"
                    wrong=1
                }
        done
    done <<<"$rows"
    [ $wrong = 0 ] || fail "the table is wrong"
}

# check_waits DOCUMENT: checks that its table of waits has each state of an endpoint, and no
# other, and that the tests that it names exist
check_waits() {
    local names=$top/src/uct/ib/varuna/requester/varuna_sm_table.c
    local rows name word wrong=0

    rows=$(sed -n '/^| State | What ends it | Deadline | Tests |/,/^$/p' "$1" | grep '^| `')
    sed -n 's/.*\[UCT_VARUNA_EP_[A-Z]*\] *= "\(.*\)",/\1/p' "$names" | sort >states
    [ -s states ] || fail "there are no states"
    while read -r name; do
        grep -q "^| \`$name\`" <<<"$rows" || {
            echo "# the state $name is not in the table"
            wrong=1
        }
    done <states
    while read -r name; do
        grep -qx "$name" states || {
            echo "# there is no state $name"
            wrong=1
        }
    done < <(sed 's/^| `\([a-z]*\)`.*/\1/' <<<"$rows" | sort -u)
    while IFS='|' read -r _ name _ deadline tests _; do
        [[ $deadline == *[a-zA-Z]* && $tests == *'`'* ]] || {
            echo "# ${name}has no deadline or no test"
            wrong=1
        }
        for word in $(grep -oE '`[^`]+: [^`]+`' <<<"$tests" | tr -d '`' | tr -d ' '); do
            has_test "${word%%:*}" "${word#*:}" || {
                echo "# ${name}: ${word%%:*} has no test ${word#*:}"
                wrong=1
            }
        done
    done <<<"$rows"
    [ $wrong = 0 ] || fail "the table of waits is wrong"
}

test_waits() {
    check_waits "$top/docs/RECOVERY.md"
}

test_wrong_waits_are_found() {
    sed '/^| `fence`/d' "$top/docs/RECOVERY.md" >wrong.md
    fails 1 'the state fence is not in the table' check_waits wrong.md
    sed 's/^| `fence`/| `fenced`/' "$top/docs/RECOVERY.md" >wrong.md
    fails 1 'there is no state fenced' check_waits wrong.md
    sed '/^| `drain`/s/lane_that_hangs_and_is_never_stopped/nothing/' "$top/docs/RECOVERY.md" \
        >wrong.md
    fails 1 'gtest_varuna has no test test_varuna_recovery.nothing' check_waits wrong.md
}

test_links() {
    # shellcheck disable=SC2046 # names without spaces
    check_links "$top" $(documents)
}

test_invariants() {
    check_invariants "$top/docs/RECOVERY.md"
}

# check_walks DOCUMENT: checks that the functions that it names exist
check_walks() {
    local names name wrong=0

    mapfile -t names < <(grep -oE '`(uct_varuna|emu)_[a-z0-9_]+`' "$1" | tr -d '`' | sort -u)
    [ ${#names[@]} -gt 40 ] || fail "$1 names ${#names[@]} functions"
    for name in "${names[@]}"; do
        grep -rqw --include='*.[ch]' --include='*.inl' "$name" "$top/src" || {
            echo "# there is no $name"
            wrong=1
        }
    done
    [ $wrong = 0 ] || fail "a walk is out of date"
}

test_walks() {
    check_walks "$top/CONTRIBUTING.md"
}

# hardware_rows DOCUMENT: prints the rows of its table of assumptions
hardware_rows() {
    grep -E '^\| [0-9]+ \|' "$1"
}

# check_hardware DOCUMENT: checks that the functions, checks and quirks that it names
# exist, and that no check and no quirk is missing
check_hardware() {
    local rows file function word checks quirks wrong=0
    local table=$top/src/tools/rc_varuna_check/check_table.c

    rows=$(hardware_rows "$1")
    [ "$(wc -l <<<"$rows")" -ge 10 ] || fail "the table has few rows"
    while IFS=: read -r file function; do
        grep -qw "$function" "$top/src/uct/ib/varuna/$file" 2>/dev/null || {
            echo "# there is no $function in $file"
            wrong=1
        }
    done < <(grep -oE '`[a-z/0-9_]+\.[ch]`: `[a-z0-9_]+`' <<<"$rows" | tr -d '` ')
    sed -n 's/^    {"\([a-z0-9-]*\)",.*/\1/p' "$table" | sort >checks
    sed -n 's/^| `\([a-z0-9-]*\)\(\[.*\)\{0,1\}` |.*/\1/p' <(sed -n '/^| Quirk | What/,/^$/p' "$top/docs/EMULATOR.md") | sort -u >quirks
    awk -F '|' '{ print $6 }' <<<"$rows" | grep -oE '`[^`]+`' | tr -d '`' | sort -u >named.checks
    awk -F '|' '{ print $7 }' <<<"$rows" | grep -oE '`[a-z0-9-]+`' | tr -d '`' | sort -u >named.quirks
    for word in $(comm -13 checks named.checks); do
        echo "# there is no check $word"
        wrong=1
    done
    for word in $(comm -23 checks named.checks | grep -vx loopback); do # It decides nothing
        echo "# no assumption has the check $word"
        wrong=1
    done
    for word in $(comm -13 quirks named.quirks); do
        echo "# there is no quirk $word"
        wrong=1
    done
    for word in $(comm -23 quirks named.quirks); do
        echo "# no assumption has the quirk $word"
        wrong=1
    done
    for word in $(grep -ohE 'UCX_RC_VARUNA_[A-Z_]+' "$1" "$table" | sort -u); do
        grep -q "$word" "$top/src/uct/ib/varuna/rc_varuna.7" || {
            echo "# there is no option $word"
            wrong=1
        }
    done
    [ $wrong = 0 ] || fail "the table of assumptions is wrong"
}

test_hardware() {
    check_hardware "$top/docs/HARDWARE.md"
}

test_wrong_assumptions_are_found() {
    local document=$top/docs/HARDWARE.md
    sed 's/uct_varuna_plan_make/uct_varuna_plan_gone/' "$document" >wrong.md
    fails 1 'no uct_varuna_plan_gone in core/varuna_plan.c' check_hardware wrong.md
    sed 's/`flush`/`flash`/' "$document" >wrong.md
    fails 1 'no check flash' check_hardware wrong.md
    fails 1 'no assumption has the check flush' check_hardware wrong.md
    sed 's/`late-write`/`later-write`/' "$document" >wrong.md
    fails 1 'no quirk later-write' check_hardware wrong.md
    fails 1 'no assumption has the quirk late-write' check_hardware wrong.md
    sed 's/RC_VARUNA_LOG=all/RC_VARUNA_NONE=n/' "$document" >wrong.md
    fails 1 'no option UCX_RC_VARUNA_NONE' check_hardware wrong.md
}

# The checks detect errors
test_stale_walk_is_found() {
    sed 's/uct_varuna_req_start/uct_varuna_req_gone/' "$top/CONTRIBUTING.md" >stale.md
    fails 1 'there is no uct_varuna_req_gone' check_walks stale.md
}

test_broken_links_are_found() {
    printf '[a](b.md)\n' >document.md
    fails 1 'document.md: there is no b.md' check_links . document.md
    printf '# Here\n[a](#there)\n' >document.md
    fails 1 'there is no heading #there' check_links . document.md
    printf '# Here it is\n[a](#here-it-is)\n' >document.md
    check_links . document.md
}

# Also here, because test_mutations takes a minute
test_mutations_apply() {
    check bash "$top/test/e2e/lib/mutant.sh" -n
}

test_wrong_invariants_are_found() {
    sed '/^| *| Test | Mutation/,/^$/s/test_rc_fails`/test_nothing`/' \
        "$top/docs/RECOVERY.md" >wrong.md
    fails 1 'test_sweep has no test test_nothing' check_invariants wrong.md
    sed '/^| *| Test | Mutation/,/^$/s/`no_gate`/`no_such`/' "$top/docs/RECOVERY.md" >wrong.md
    fails 1 'there is no mutation no_such' check_invariants wrong.md
    sed '/^| *| Test | Mutation/,/^$/s/`NO_DRAIN`/`NO_SUCH`/' "$top/docs/RECOVERY.md" >wrong.md
    fails 1 'no model leaves out NO_SUCH' check_invariants wrong.md
}

# messages FILE: prints "NAME ANSWER" of the rows of varuna_msg.c that answer nothing
messages() {
    sed -nE 's/^ +\.name += "(.*)",?$/name \1/p; s/^ +\.answer += UCT_VARUNA_CTL_(.*[A-Z]),?$/answer \1/p' "$1" |
        awk '$1 == "name" { names[++count] = $2; answer[$2] = "-" }
             $1 == "answer" { answer[names[count]] = $2; answers[$2] = 1 }
             END { for (i = 1; i <= count; ++i)
                       if (!(names[i] in answers)) print names[i], answer[names[i]] }' | sort
}

# check_messages FILE DOCUMENT: compares the rows with the document's table
check_messages() {
    messages "$1" >rows
    [ -s rows ] || fail "$1 has no rows"
    sed -n '/^| Message  *| Answer /,/^$/p' "$2" | tr -d '|`' |
        awk 'NR > 2 && NF { print $1, $2 }' | sort | diff rows - >wrong ||
        fail "the table of $2 is not as $1 says: $(cat wrong)"
}

test_control_messages() {
    check_messages "$top/src/uct/ib/varuna/core/varuna_msg.c" "$top/docs/ARCHITECTURE.md"
}

test_missing_message_is_found() {
    grep -v '^| `PORTS`' "$top/docs/ARCHITECTURE.md" >document
    fails 1 '< PORTS -' check_messages "$top/src/uct/ib/varuna/core/varuna_msg.c" document
    sed 's/`PONG`  /`PING_REP`/' "$top/docs/ARCHITECTURE.md" >document
    fails 1 '< PING PONG' check_messages "$top/src/uct/ib/varuna/core/varuna_msg.c" document
}

run_tests
