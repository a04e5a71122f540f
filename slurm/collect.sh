#!/bin/bash
# Merges the inventories of single nodes; rolling.sh and node.sbatch call it.
#
#   collect.sh [-s] FOLDER OUTPUT [FLAG...]
#
# FLAGs are those of the surveys: with the same --config, --reference, --baseline and --world the merged results are judged.
# FOLDER has NODE.new.yaml of surveys that just ended. One that was cancelled becomes NODE.cut.yaml and leaves NODE.yaml,
# the last whole one, in place; merge then takes each GPU's newest result that was not cut short. -s: also spools of
# surveys that were killed; not while others are running. If the folder /var/lib/gpumemtopo (GPUMEMTOPO_STATE names
# another) can be written, the inventory is also kept there as fleet.yaml, where health.sh looks for it.
set -euo pipefail
report=${GPUMEMTOPO_REPORT:-gpumemtopo-report}
state=${GPUMEMTOPO_STATE:-/var/lib/gpumemtopo}
spools=no
if [ "${1:-}" = -s ]; then
    spools=yes
    shift
fi
folder=$1 output=$2 judged=()
shift 2
while [ $# -gt 0 ]; do
    case $1 in
    --config | -c | --reference | --baseline | --world)
        judged+=("$1" "${2:-}")
        [ $# -eq 1 ] || shift
        ;;
    --config=* | --reference=* | --baseline=* | --world=*) judged+=("$1") ;;
    esac
    shift
done
exec 9>>"$folder/.lock"
flock 9

shopt -s nullglob
for new in "$folder"/*.new.yaml; do
    whole=${new%.new.yaml}.yaml cut=${new%.new.yaml}.cut.yaml
    if grep -q 'reason: .*the survey was interrupted' "$new" && [ -s "$whole" ]; then
        mv "$new" "$cut"
    else
        mv "$new" "$whole"
        rm -f "$cut"
    fi
done
found=("$folder"/*.yaml) code=0
[ "$spools" = no ] || found+=("$folder"/*.spool)
"$report" merge -o "$output" "${judged[@]}" "${found[@]:-$folder}" || code=$?
if [ -s "$output" ] && [ -d "$state" ] && [ -w "$state" ]; then
    cp "$output" "$state/.fleet.yaml.$$" && mv "$state/.fleet.yaml.$$" "$state/fleet.yaml"
fi
exit "$code"
