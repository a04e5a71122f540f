#!/usr/bin/env bash
# Draws the figures of docs/METHOD.md: draw.sh PLOT_SWEEPS CONFIGS FOLDER
set -euo pipefail
"$1" "$2/sim/h200.yaml" "$3"
# The L1.5 of the H200 cannot be overfilled; this one can.
"$1" "$2/sim/rtx-2080-ti.yaml" "$3" constant_l15
