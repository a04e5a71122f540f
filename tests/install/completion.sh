#!/usr/bin/env bash
# The completion offers every flag, command and probe: completion.sh COMPLETION SURVEY REPORT PREDICT
set -u
# shellcheck disable=SC1090
. "$1" || exit 1
survey=$2 report=$3 predict=$4 failed=0

# offered FUNCTION WORD...: what is offered for the last word.
offered() {
    local function=$1
    shift
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    "$function" "$1" 2>/dev/null
    printf '%s\n' "${COMPREPLY[@]}"
}

expect() { # WANTED FUNCTION WORD...
    local wanted=$1
    shift
    if ! offered "$@" | grep -qxF -e "$wanted"; then
        echo "not offered: $wanted for: $*"
        failed=1
    fi
}

count=0
for flag in $("$survey" --help | grep -oE -- '--[a-z][a-z0-9-]+' | sort -u); do
    [ "$flag" = --mpi ] && continue # srun's, in the text
    expect "$flag" _gpumemtopo "$survey" "${flag:0:4}"
    count=$((count + 1))
done
for command in $("$report" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
    expect "$command" _gpumemtopo "$report" "${command:0:1}"
    for flag in $("$report" "$command" --help | grep -oE -- '^ +(-[a-z], )?--[a-z][a-z0-9-]+' | grep -oE -- '--.*'); do
        expect "$flag" _gpumemtopo "$report" "$command" "${flag:0:4}"
        count=$((count + 1))
    done
done
for flag in $("$predict" --help | grep -oE -- '^ +(-[a-z], )?--[a-z][a-z0-9-]+' | grep -oE -- '--.*'); do
    expect "$flag" _gpumemtopo "$predict" "${flag:0:4}"
    count=$((count + 1))
done
expect gemm_tiled _gpumemtopo "$predict" gemm
expect trace _gpumemtopo "$predict" tra
expect convert _gpumemtopo "$predict" trace con
expect csv _gpumemtopo "$predict" trace convert --from c
expect --launch _gpumemtopo "$predict" trace convert --la
expect gemm_tiled _gpumemtopo "$predict" trace make gemm
expect part1 _gpumemtopo "$predict" atax1 --mapping p
[ "$count" -ge 40 ] || { echo "only $count flags"; failed=1; }
expect quick _gpumemtopo "$survey" --profile q
expect measure _gpumemtopo "$survey" --busy ''
expect main.latency _gpumemtopo "$survey" --probes main.l
expect l2.size,main.latency _gpumemtopo "$survey" --probes l2.size,main.l
expect never _gpumemtopo "$report" show --color n
cd "$(mktemp -d)" && touch fleet.yaml
expect fleet.yaml _gpumemtopo "$report" show fl
expect fleet.yaml _gpumemtopo "$survey" --baseline fl
if offered _gpumemtopo "$survey" --no-such | grep -q .; then
    echo "something is offered for a flag that does not exist"
    failed=1
fi
rm -r "$PWD"
exit "$failed"
