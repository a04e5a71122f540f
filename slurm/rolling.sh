#!/bin/bash
# Surveys the nodes that are idle now, one small job per node, and merges all inventories.
#
#   rolling.sh -p PARTITION [-o INVENTORY] [-d FOLDER] [-j JOBS] [-- FLAG...]
#
# FOLDER (default gpumemtopo-rolling) keeps one inventory per node between calls. With daily calls,
# every node has been idle once after some days. A node that is no longer idle when its job starts is
# skipped until the next call; the script does not wait for it. The age of each result that is not of this call is
# shown. A job that was cancelled does not replace the last whole result. FLAGs go to gpumemtopo-survey. collect.sh,
# which merges, keeps the inventory for health.sh as well.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=nodes.sh
. "$here/nodes.sh"
survey=${GPUMEMTOPO_SURVEY:-gpumemtopo-survey}
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
check_partition "$partition"
mkdir -p "$folder"

# One task sees all GPUs of its node and needs no MPI. Exit codes 3 and 4 also mean that the inventory
# was written.
survey_node() {
    local node=$1 gpus=$2 code=0
    shift 2
    srun --immediate=20 --quiet -p "$partition" -N1 -n1 -w "$node" --exclusive --gres="gpu:$gpus" \
        --job-name=gpumemtopo-rolling --time=10 --mpi=none \
        "$survey" -o "$folder/$node.new.yaml" --no-progress --quiet "$@" </dev/null || code=$?
    case $code in
    0 | 3 | 4) ;;
    *) echo "rolling.sh: $node: not surveyed this time" >&2 ;;
    esac
}

running=0 nodes=() begun=$(mktemp -p "$folder" .begun.XXXXXX)
trap 'rm -f "$begun"' EXIT
while read -r node state gpus; do
    nodes+=("$node")
    [ "$state" = idle ] || continue
    survey_node "$node" "$gpus" "$@" &
    running=$((running + 1))
    if [ "$running" -ge "$jobs" ]; then
        wait -n || true
        running=$((running - 1))
    fi
done < <(gpu_nodes "$partition")
wait

code=0
"$here/collect.sh" -s "$folder" "$output" "$@" || code=$?
for node in "${nodes[@]}"; do
    whole=$folder/$node.yaml
    if [ ! -s "$whole" ]; then
        echo "rolling.sh: $node: never surveyed" >&2
    elif [ ! "$whole" -nt "$begun" ] || [ -e "$folder/$node.cut.yaml" ]; then
        echo "rolling.sh: $node: the last whole result is $(age_of "$whole")" >&2
    fi
done
exit "$code"
