# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED. See LICENSE for terms
# (BSD-3-Clause). Checks the dependencies of a source tree. Input:
#   cycle N          the maximum length of a cycle of files
#   lines N          the maximum length of a file, 900 by default
#   upward N         the maximum number of dependencies that point up, 0 by default
#   layer FOLDER...  folders of one layer, from top to bottom
#   apart A B        folders A and B, with their subfolders, never use each other
#   file FILE LINES  a module (x.c and x.h are one, FOLDER/x) and its longest file
#   uses A B WHY     module A depends on module B
# Output: errors, each with "wrong: " before it; then the picture.

# Whether a folder is ROOT or in it
function is_in(folder, root) {
    return (folder == root) || (index(folder, root "/") == 1)
}

function folder_of(module) {
    return (module ~ /\//) ? substr(module, 1, match(module, /\/[^\/]*$/) - 1) : "."
}

# Tarjan's algorithm: modules that reach each other are a component
function visit(module,    i, n, names, next_one, members) {
    index_of[module] = low[module] = ++counter
    stack[++depth] = module
    on_stack[module] = 1
    n = split(uses[module], names, " ")
    for (i = 1; i <= n; ++i) {
        next_one = names[i]
        if (!(next_one in index_of)) {
            visit(next_one)
            if (low[next_one] < low[module]) {
                low[module] = low[next_one]
            }
        } else if (on_stack[next_one] && (index_of[next_one] < low[module])) {
            low[module] = index_of[next_one]
        }
    }
    if (low[module] != index_of[module]) {
        return
    }
    n = 0
    members = ""
    do {
        next_one = stack[depth--]
        on_stack[next_one] = 0
        members = members " " next_one
        ++n
    } while (next_one != module)
    if (n > largest) {
        largest = n
    }
    if (n > max_cycle) {
        print "wrong: a cycle of " n " files, and " max_cycle " are allowed:" members
    }
}

BEGIN { max_lines = 900 }

$1 == "cycle" { max_cycle = $2 }
$1 == "lines" { max_lines = $2 }
$1 == "upward" { max_upward = $2 }

$1 == "apart" { ++num_apart; one[num_apart] = $2; other[num_apart] = $3 }

$1 == "layer" {
    layers[++num_layers] = $0
    sub(/^layer /, "", layers[num_layers])
    for (i = 2; i <= NF; ++i) {
        layer_of[$i] = num_layers
    }
}

$1 == "file" {
    folder = folder_of($2)
    modules[$2] = folder
    ++count[folder]
    if ($3 > max_lines) {
        print "wrong: " $2 " has a file of " $3 " lines, and " max_lines " are allowed"
    }
    if (!(folder in layer_of)) {
        print "wrong: folder " folder " is in no layer"
        layer_of[folder] = 0
    }
}

$1 == "uses" && !(($2, $3) in seen) {
    seen[$2, $3] = 1
    uses[$2] = uses[$2] " " $3
    ++num_uses
    from = folder_of($2)
    to   = folder_of($3)
    if (from == to) {
        next
    }
    if (layer_of[to] <= layer_of[from]) {
        upward[++num_upward] = $2 " uses " $3 ", which is not below it (" $4 ")"
    }
    for (i = 1; i <= num_apart; ++i) {
        if ((is_in(from, one[i]) && is_in(to, other[i])) ||
            (is_in(from, other[i]) && is_in(to, one[i]))) {
            print "wrong: " $2 " uses " $3 ", and they are to be apart (" $4 ")"
        }
    }
    if (!((from, to) in folder_seen)) {
        folder_seen[from, to] = 1
        folder_uses[from] = folder_uses[from] " " to
    }
}

END {
    for (module in modules) {
        ++num_modules
        if (!(module in index_of)) {
            visit(module)
        }
    }
    for (i = 1; (i <= num_upward) && (num_upward > max_upward); ++i) {
        print "wrong: " upward[i]
    }
    for (i = 1; i <= num_layers; ++i) {
        n = split(layers[i], names, " ")
        for (j = 1; j <= n; ++j) {
            if (names[j] == ".") {
                continue
            }
            line = ""
            for (k = i + 1; k <= num_layers; ++k) {
                m = split(layers[k], below, " ")
                for (l = 1; l <= m; ++l) {
                    if ((names[j], below[l]) in folder_seen) {
                        line = line " " below[l]
                    }
                }
            }
            printf "  %-12s %3d modules   %s\n", names[j] "/", count[names[j]],
                   (line == "") ? "-" : line
        }
    }
    printf "  %d modules, %d dependencies, %d of them point up, largest cycle %d\n",
           num_modules, num_uses, num_upward, largest
}
