#!/bin/bash
# Submits one small job per node, as a job array, for clusters where one big job would never start. Each node is
# surveyed when it is free, and each element merges all results there are: the inventory grows by itself.
#
#   array.sh -p PARTITION [-w NODES] [-r RESERVATION] [-o INVENTORY] [-d FOLDER] [-j JOBS] [-- FLAG...]
#
# NODES (default all with GPUs) is a list as Slurm writes it. At most JOBS (default 16) nodes are taken at the same
# time. FOLDER (default gpumemtopo-array), which all nodes must share, keeps one inventory per node and the logs;
# FOLDER and INVENTORY may be those of rolling.sh. Drained nodes are skipped. Prints the numbers of the jobs: nodes with
# different numbers of GPUs, and nodes beyond Slurm's MaxArraySize (1001 by default), are in different arrays.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=nodes.sh
. "$here/nodes.sh"
partition='' nodes='' reservation='' output=gpumemtopo-array.yaml folder=gpumemtopo-array jobs=16
while getopts p:w:r:o:d:j: flag; do
    case $flag in
    p) partition=$OPTARG ;;
    w) nodes=$OPTARG ;;
    r) reservation=$OPTARG ;;
    o) output=$OPTARG ;;
    d) folder=$OPTARG ;;
    j) jobs=$OPTARG ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
if [ -z "$partition" ]; then
    echo "usage: array.sh -p PARTITION [-w NODES] [-r RESERVATION] [-o INVENTORY] [-d FOLDER] [-j JOBS] [-- FLAG...]" >&2
    exit 2
fi
check_partition "$partition"
mkdir -p "$folder"
folder=$(realpath "$folder") output=$(realpath -m "$output")

declare -A nodes_with=() # number of GPUs: nodes. All elements of an array ask for the same number.
while read -r node _ gpus; do
    nodes_with[$gpus]="${nodes_with[$gpus]:-} $node"
done < <(gpu_nodes "$partition" "$nodes")
if [ "${#nodes_with[@]}" -eq 0 ]; then
    echo "array.sh: no node with GPUs in partition $partition can run jobs" >&2
    exit 1
fi

most=$(scontrol show config | sed -n 's/^MaxArraySize *= *\([0-9]*\).*/\1/p')
[ "${most:-0}" -gt 0 ] || most=1001
if [ "$most" -lt 2 ]; then
    echo "array.sh: this Slurm allows no job arrays (MaxArraySize=$most)" >&2
    exit 1
fi

# submit GPUS AT_ONCE NODE...: one array
code=0
submit() {
    local gpus=$1 at_once=$2 job i
    shift 2
    local list=("$@")
    job=$(sbatch --parsable --hold --array="0-$((${#list[@]} - 1))%$at_once" -p "$partition" -N1 -n1 --exclusive \
        --gres="gpu:$gpus" ${reservation:+--reservation="$reservation"} -o "$folder/node-%A_%a.log" \
        "$here/node.sbatch" "$here" "$folder" "$output" "${arguments[@]}")
    job=${job%%;*}
    for i in "${!list[@]}"; do # sbatch cannot give each element a node of its own
        if ! scontrol update JobId="${job}_$i" ReqNodeList="${list[$i]}"; then
            echo "array.sh: ${list[$i]}: not surveyed" >&2
            scancel "${job}_$i"
            code=1
        fi
    done
    scontrol release "$job"
    echo "$job"
}

# The arrays of one number of GPUs share JOBS: each may use its part, at least one.
arguments=("$@")
for gpus in "${!nodes_with[@]}"; do
    read -ra all <<<"${nodes_with[$gpus]}"
    for ((first = 0; first < ${#all[@]}; first += most)); do
        part=("${all[@]:first:most}")
        at_once=$((jobs * ${#part[@]} / ${#all[@]}))
        submit "$gpus" "$((at_once > 0 ? at_once : 1))" "${part[@]}"
    done
done
exit "$code"
