#!/bin/bash
# Says whether the GPUs of this node are healthy, by the actions in the last inventory of the node. It does not touch a GPU and
# compares no figures: the survey has done that, for a small node only if it had a baseline (docs/integrations.md).
#
#   check-node.sh -g GPUS [-n NODE] [-f FILE] [-a HOURS] [-w]
#
#   -g GPUS     number of GPUs that this node must have; needed
#   -n NODE     name of this node in the inventory, up to the first dot; default: $NODE_NAME or the host name
#   -f FILE     inventory of this node alone; default: /var/lib/gpumemtopo/NODE.yaml. slurm/health.sh writes it
#               with last=/var/lib/gpumemtopo
#   -a HOURS    an older inventory says nothing about the node; default 26
#   -w          a GPU that is only alerted is a problem as well
#
# It prints one line of at most 80 bytes and returns
#   0  all GPUs were measured, and none is to be drained
#   1  problem: the policy says drain, or GPUs are missing
#   2  unknown: no inventory, an old one, one of another node, a GPU that was busy or not measured, bad usage
# What could not be measured is never 0. These are the codes of plugins of node-problem-detector.
set -u
PATH=${PATH:-/usr/bin:/bin}:/usr/local/bin:/usr/bin:/bin
export PATH LC_ALL=C

# finish CODE TEXT: one line of printable characters, cut.
finish() {
    local text=${2//[^ -~]/?}
    printf '%s\n' "${text:0:79}"
    exit "$1"
}

gpus='' node=${NODE_NAME:-$(hostname -s)} file='' hours=26 strict=no
while getopts g:n:f:a:w flag; do
    case $flag in
    g) gpus=$OPTARG ;;
    n) node=$OPTARG ;;
    f) file=$OPTARG ;;
    a) hours=$OPTARG ;;
    w) strict=yes ;;
    *) finish 2 "usage: check-node.sh -g GPUS [-n NODE] [-f FILE] [-a HOURS] [-w]" ;;
    esac
done
if ! [[ $gpus =~ ^[1-9][0-9]{0,2}$ ]]; then
    finish 2 "usage: check-node.sh -g GPUS: how many GPUs this node must have"
fi
file=${file:-/var/lib/gpumemtopo/$node.yaml}

line=$(timeout -k 1 10 gpumemtopo-report nagios --max-age "$hours" "$file" 2>/dev/null)
code=$?
text=${line%% | *} text=${text#GPUMEMTOPO * - }
numbers=" ${line##* | }"

# The counts behind the line; without one of them the line is of another version and says nothing.
declare -A count
if [ "$code" -le 2 ]; then
    for name in gpus measured drain alert unmeasured busy lost_ranks missing; do
        [[ $numbers =~ \ $name=([0-9]{1,7})\; ]] || finish 2 "gpumemtopo-report nagios does not tell $name"
        count[$name]=${BASH_REMATCH[1]}
    done
fi
# "node GPU-bce83465-ea7d-... failing: cause" without the node, and with the beginning of the UUID.
worst=${text#*; }
[[ ! $worst =~ (GPU-[0-9a-f]{8})[0-9a-f-]*(.*) ]] || worst=${BASH_REMATCH[1]}${BASH_REMATCH[2]}

case $code in
0 | 1 | 2) ;;
3) finish 2 "${text:-gpumemtopo-report nagios said nothing}" ;;
124 | 137) finish 2 "gpumemtopo-report needed more than 10 s" ;;
*) finish 2 "gpumemtopo-report could not be run: code $code" ;;
esac
# A file of another node, or of several, says nothing about this one.
of=$(sed -n 's/^    node: "\{0,1\}\([^".]*\).*/\1/p' "$file" | sort -u | paste -sd ' ')
node=${node%%.*}
[ -z "$of" ] || [ "${of,,}" = "${node,,}" ] || finish 2 "the inventory is of $of, not of $node"
[ "$code" -ne 2 ] || finish 1 "$worst"
[ "${count[gpus]}" -ge "$gpus" ] || finish 1 "${count[gpus]} of $gpus GPUs are there"
[ "${count[missing]}" -eq 0 ] || finish 1 "${count[missing]} GPUs of the baseline are gone"
if [ "${count[measured]}" -lt "${count[gpus]}" ] ||
    [ $((count[unmeasured] + count[busy] + count[lost_ranks])) -gt 0 ]; then
    finish 2 "${count[measured]} of $gpus GPUs measured, ${count[busy]} busy, ${count[unmeasured]} unmeasured"
fi
if [ "${count[alert]}" -gt 0 ]; then
    [ "$strict" = no ] || finish 1 "$worst"
    finish 0 "healthy, but $worst"
fi
[ "$code" -eq 0 ] || finish 2 "$text"
finish 0 "${count[measured]} of $gpus GPUs healthy"
