#!/bin/bash
# Surveys the nodes that are idle now, one small job per node, and merges all inventories.
#
#   rolling.sh -p PARTITION [-o INVENTORY] [-d FOLDER] [-j JOBS] [-- FLAG...]
#
# FOLDER (default gpumemtopo-rolling) keeps one inventory per node between calls. With daily calls,
# every node has been idle once after some days. A node that is no longer idle when its job starts is
# skipped until the next call; the script does not wait for it. FLAGs go to gpumemtopo-survey. If the folder
# /var/lib/gpumemtopo (GPUMEMTOPO_STATE names another) can be written, the inventory is also kept there as
# fleet.yaml, where health.sh looks for it.
set -euo pipefail
survey=${GPUMEMTOPO_SURVEY:-gpumemtopo-survey}
report=${GPUMEMTOPO_REPORT:-gpumemtopo-report}
state=${GPUMEMTOPO_STATE:-/var/lib/gpumemtopo}
partition='' output=gpumemtopo-rolling.yaml folder=gpumemtopo-rolling jobs=16
while getopts p:o:d:j: flag; do
    case $flag in
    p) partition=$OPTARG ;;
    o) output=$OPTARG ;;
    d) folder=$OPTARG ;;
    j) jobs=$OPTARG ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
if [ -z "$partition" ]; then
    echo "usage: rolling.sh -p PARTITION [-o INVENTORY] [-d FOLDER] [-j JOBS] [-- FLAG...]" >&2
    exit 2
fi
mkdir -p "$folder"

# Number of GPUs in a Gres text: 8 for "gpu:h200:8(S:0-1)".
gpus_of() {
    sed 's/([^)]*)//g; s/,/\n/g' <<<"$1" | awk -F: '$1 == "gpu" {n += $NF} END {print n + 0}'
}

# One task sees all GPUs of its node and needs no MPI. Exit codes 3 and 4 also mean that the inventory
# was written.
survey_node() {
    local node=$1 gpus=$2 code=0
    shift 2
    srun --immediate=20 --quiet -p "$partition" -N1 -n1 -w "$node" --exclusive --gres="gpu:$gpus" \
        --job-name=gpumemtopo-rolling --time=10 --mpi=none \
        "$survey" -o "$folder/$node.yaml" --no-progress --quiet "$@" </dev/null || code=$?
    case $code in
    0 | 3 | 4) ;;
    *) echo "rolling.sh: $node: not surveyed this time" >&2 ;;
    esac
}

running=0
while read -r node gres; do
    gpus=$(gpus_of "$gres")
    [ "$gpus" -gt 0 ] || continue
    survey_node "$node" "$gpus" "$@" &
    running=$((running + 1))
    if [ "$running" -ge "$jobs" ]; then
        wait -n || true
        running=$((running - 1))
    fi
done < <(sinfo -h -N -p "$partition" -t idle -o '%N %G' | sort -u)
wait

# The results of a job that was killed are in a spool beside its inventory.
shopt -s nullglob
found=("$folder"/*.yaml "$folder"/*.spool) code=0
"$report" merge -o "$output" "${found[@]:-$folder}" || code=$?
if [ -s "$output" ] && [ -d "$state" ] && [ -w "$state" ]; then
    cp "$output" "$state/.fleet.yaml.$$" && mv "$state/.fleet.yaml.$$" "$state/fleet.yaml"
fi
exit "$code"
