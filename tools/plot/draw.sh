#!/usr/bin/env bash
# Draws the plots of docs/METHOD.md: draw.sh PLOT_SWEEPS SURVEY SOURCE_ROOT FOLDER
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The L1.5 of the H200 cannot be overfilled; that of the RTX 2080 Ti can.
for task in h200:l1_data.size,texture.size,read_only.size,constant_l1.size,constant_l15.size,l2.size \
    rtx-2080-ti:constant_l15.size; do
    printf 'vary: none\nnodes:\n  - {name: drawn, gpus: 1, model: %s/configs/sim/%s.yaml}\n' \
        "$3" "${task%%:*}" >"$work/fleet.yaml"
    "$2" --simulate "$work/fleet.yaml" --profile full --probes "${task#*:}" --seed 1 --quiet \
        -o "$work/drawn.yaml"
    "$1" "$work/drawn.yaml" "$4"
done
# The real H200.
"$1" "$3/reports/h200.yaml" "$4"
