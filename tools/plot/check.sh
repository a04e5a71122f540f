#!/usr/bin/env bash
# Checks that the plots in docs/plots are up to date: check.sh PLOT_SWEEPS SURVEY SOURCE_ROOT
set -euo pipefail
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
"$3/tools/plot/draw.sh" "$1" "$2" "$3" "$fresh"
if ! diff -rq "$fresh" "$3/docs/plots"; then
    echo "docs/plots is out of date: run 'meson compile -C build plots', look at them, commit them"
    exit 1
fi
