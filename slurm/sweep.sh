#!/bin/bash
# Reserves some nodes for the night and surveys them then, those with the oldest results first: with a seventh of the
# nodes each night, every node is surveyed once a week, even if it is never idle. For cron, in the evening, as a user
# who may create reservations:
#
#   sweep.sh -p PARTITION -n COUNT [-t START] [-m MINUTES] [-o INVENTORY] [-d FOLDER] [-j JOBS] [-- FLAG...]
#
# START (default 03:00) and MINUTES (default 30) are of the reservation. Jobs that run then are not ended: their nodes
# are surveyed if they become free in time. The reservation is removed when its jobs are done. The other settings are
# those of array.sh, which does the rest. Jobs of earlier sweeps that never started are cancelled.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=nodes.sh
. "$here/nodes.sh"
partition='' count='' start=03:00 minutes=30 output=gpumemtopo-array.yaml folder=gpumemtopo-array jobs=16
while getopts p:n:t:m:o:d:j: flag; do
    case $flag in
    p) partition=$OPTARG ;;
    n) count=$OPTARG ;;
    t) start=$OPTARG ;;
    m) minutes=$OPTARG ;;
    o) output=$OPTARG ;;
    d) folder=$OPTARG ;;
    j) jobs=$OPTARG ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
if [ -z "$partition" ] || ! [[ $count =~ ^[1-9][0-9]*$ ]]; then
    echo "usage: sweep.sh -p PARTITION -n COUNT [-t START] [-m MINUTES] [-o INVENTORY] [-d FOLDER] [-j JOBS] [-- FLAG...]" >&2
    exit 2
fi
check_partition "$partition"
user=$(id -un) name=gpumemtopo-sweep-$(date +%Y%m%d-%H%M%S)
scancel --quiet --name=gpumemtopo-sweep --state=PENDING --user="$user" --partition="$partition"

chosen=$(gpu_nodes "$partition" | while read -r node _; do
    echo "$(stat -c %Y "$folder/$node.yaml" 2>/dev/null || echo 0) $node"
done | sort -k1,1n -k2,2 | awk -v n="$count" 'NR <= n { print $2 }' | paste -sd,)
if [ -z "$chosen" ]; then
    echo "sweep.sh: no node with GPUs in partition $partition can run jobs" >&2
    exit 1
fi
scontrol create reservation ReservationName="$name" StartTime="$start" Duration="$minutes" Users="$user" \
    Nodes="$chosen" Flags=IGNORE_JOBS,PURGE_COMP=00:01:00
export SBATCH_JOB_NAME=gpumemtopo-sweep
if ! "$here/array.sh" -p "$partition" -w "$chosen" -r "$name" -o "$output" -d "$folder" -j "$jobs" -- "$@"; then
    echo "sweep.sh: no jobs for the reservation $name; it is removed" >&2
    scontrol delete ReservationName="$name"
    exit 1
fi
