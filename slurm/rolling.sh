#!/bin/bash
# Surveys the nodes that are idle now, one small job each, and merges what there is.
#
#   rolling.sh -p PARTITION [-o INVENTORY] [-d FOLDER] [-j JOBS] [-- FLAG...]
#
# FOLDER (default gpumemtopo-rolling) keeps one inventory per node from call to call: run it daily,
# and after some days every node was met idle once. Nobody waits: a node that is not idle any more
# when its turn comes is left for the next call. FLAGs go to gpumemtopo-survey.
set -euo pipefail
survey=${GPUMEMTOPO_SURVEY:-gpumemtopo-survey}
report=${GPUMEMTOPO_REPORT:-gpumemtopo-report}
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

# "gpu:h200:8(S:0-1)" is 8.
gpus_of() {
    sed 's/([^)]*)//g; s/,/\n/g' <<<"$1" | awk -F: '$1 == "gpu" {n += $NF} END {print n + 0}'
}

# One task sees all GPUs of its node and needs no MPI. With 3 and 4 there is an inventory.
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

# What a job that was killed had measured is in a spool beside its inventory.
shopt -s nullglob
found=("$folder"/*.yaml "$folder"/*.spool) code=0
"$report" merge -o "$output" "${found[@]:-$folder}" || code=$?
exit "$code"
