#!/bin/bash
# Checks the GPUs of this node in seconds. Settings for slurm.conf:
#
#   HealthCheckProgram=/etc/gpumemtopo/health.sh    HealthCheckInterval=3600
#   HealthCheckNodeState=IDLE
#   Prolog=/etc/gpumemtopo/health.sh                Epilog=/etc/gpumemtopo/health.sh
#
# As a health check it always returns 0. As prolog or epilog it returns 1 if a GPU is failing, and
# Slurm then drains the node; degraded GPUs do not stop a job. A GPU that hangs or crashes the program
# twice in the survey is failing. If GPUs are missing (see gpus), the node is surveyed a second time. A GPU
# on which another process computes is not measured. Settings are in /etc/gpumemtopo/health.conf, which
# this shell sources:
#
#   bin=/opt/gpumemtopo/bin     folder of the programs
#   drain=yes                   a health check drains the node of a failing or degraded GPU
#   last=/var/lib/gpumemtopo    folder for the last inventory
#   baseline=/var/lib/gpumemtopo/fleet.yaml    the last inventory of all nodes, if there is one: GPUs are
#                               compared with themselves. rolling.sh writes it
#   gpus=8                      number of GPUs that this node must have; slurm: as its Gres says. Without
#                               this setting: as many as in the baseline
#   limit=40                    time limit in seconds; Slurm's own limit is 60; below 16, a GPU that hangs
#                               may not be found
#   node=$(hostname -s)         name of this node in Slurm
#   lock=/run/gpumemtopo-health.lock    lock file; use a folder where only root may create files
#   flags=(--reference DIR)     more flags for gpumemtopo-survey
#
# Of the environment, only SLURM_SCRIPT_CONTEXT, SLURMD_NODENAME and GPUMEMTOPO_HEALTH_CONF are used,
# because the environment of a prolog is nearly empty.
set -u
# Only a failing or missing GPU sets this to 1. No other error, such as a mistake in the settings, may
# drain a node.
verdict=0 folder=
trap '[ -z "$folder" ] || rm -rf "$folder"; exit "$verdict"' EXIT
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
bin='' drain=no last='' gpus='' baseline=/var/lib/gpumemtopo/fleet.yaml limit=40 lock=/run/gpumemtopo-health.lock node=${SLURMD_NODENAME:-} flags=()
conf=${GPUMEMTOPO_HEALTH_CONF:-/etc/gpumemtopo/health.conf}
# shellcheck disable=SC1090
[ ! -r "$conf" ] || . "$conf"
[ -z "$bin" ] || PATH=$bin:$PATH
[ -n "$node" ] || node=$(hostname -s)
export PATH

case ${SLURM_SCRIPT_CONTEXT:-health} in
prolog* | epilog*) failing=1 ;;
*) failing=0 ;;
esac

if ! [[ $limit =~ ^[0-9]{1,4}$ ]] || [ $((10#$limit)) -lt 2 ]; then
    echo "health.sh: limit must be a number of seconds, 2 or more, not \"$limit\"; using 40" >&2
    limit=40
fi
folder=$(mktemp -d) || exit 0

# A second check at the same time would find the GPUs busy, because the first one uses them.
{ exec 9>>"$lock"; } 2>/dev/null || exec 9>"$folder/lock"
flock -n 9 || exit 0

if [ "$gpus" = slurm ]; then # Gres=gpu:a100:4(S:0),gpu:h200:4(S:1): the sum
    gpus=$(timeout -k 1 5 scontrol show node "$node" 2>/dev/null | sed -n 's/^ *Gres=//p' |
        sed 's/([^)]*)//g; s/,/\n/g' | awk -F: '$1 == "gpu" { n += $NF } END { if (n) print n }')
fi
if ! [[ $gpus =~ ^[0-9]{0,3}$ ]]; then
    echo "health.sh: gpus must be a number or slurm, not \"$gpus\"; missing GPUs are not noticed" >&2
    gpus=
fi

base=()
case " ${flags[*]} " in
*" --baseline"*) ;; # the site names another one
*) [ ! -s "$baseline" ] || [ ! -r "$baseline" ] || base=(--baseline "$baseline") ;;
esac
if [ -z "$gpus" ] && [ "${#base[@]}" -gt 0 ]; then
    gpus=$(grep -cxF "    node: $(uname -n)" "$baseline")
fi

# A GPU that hangs is tried twice; the report takes time as well. A healthy GPU may need some seconds to
# start: with a limit below 16 s there is no time to tell, and a GPU that hangs is not found.
try_s=$(((10#$limit - SECONDS - 6) / 2))
[ "$try_s" -ge 5 ] || try_s=5

# survey FILE: in the time that is left. Without Slurm's variables: with them the survey would take itself
# for a step with several ranks.
survey() {
    local left=$((10#$limit - SECONDS))
    : >"$folder/said"
    [ "$left" -ge 2 ] || return 1
    env -i PATH="$PATH" HOME=/ timeout -k 8 "$left" gpumemtopo-survey --profile quick --busy skip \
        --time-limit "$try_s" --quiet --no-progress -o "$1" "${base[@]}" "${flags[@]}" \
        9>&- 2>"$folder/said"
}

# count_if_too_few FILE CODE: the number of GPUs that the survey saw, if they are too few. Without a report that
# is so only if the program itself says that there is none; it may also have failed for another reason.
count_if_too_few() {
    local seen
    seen=$(sed -n 's/^survey: {.* gpus: \([0-9]*\),.*/\1/p' "$1" 2>/dev/null)
    [[ $seen =~ ^[0-9]{0,6}$ ]] || return 0 # no report of this program
    [ -n "$seen" ] || [ "$2" -ne 1 ] || ! grep -q 'no GPU' "$folder/said" || seen=0
    [ -z "$seen" ] || [ -z "$gpus" ] || [ "$seen" -ge $((10#$gpus)) ] || echo "$seen"
}

survey "$folder/now.yaml"
code=$?
if [ "$code" -eq 2 ] && [ "${#base[@]}" -gt 0 ]; then # the baseline may be damaged: do without it
    logger -t gpumemtopo -- "$(head -c 300 "$folder/said")" 2>/dev/null
    base=()
    survey "$folder/now.yaml"
    code=$?
fi
too_few=$(count_if_too_few "$folder/now.yaml" "$code")
if [ -n "$too_few" ]; then
    survey "$folder/again.yaml"
    too_few=$(count_if_too_few "$folder/again.yaml" "$?")
    [ ! -s "$folder/again.yaml" ] || mv "$folder/again.yaml" "$folder/now.yaml"
fi
if [ ! -s "$folder/now.yaml" ]; then # no GPU, no driver, or the time limit was reached
    [ "$code" -eq 0 ] || logger -t gpumemtopo -- "$(head -c 300 "$folder/said")" 2>/dev/null
    [ -n "$too_few" ] || exit 0
elif [ -n "$last" ] && mkdir -p "$last"; then
    cp "$folder/now.yaml" "$last/.now.yaml.$$" && mv "$last/.now.yaml.$$" "$last/$node.yaml"
fi

# The reason from gpumemtopo-report, which replaces characters that a shell could interpret. Sorted so
# that a failing GPU comes first.
reason=$(gpumemtopo-report drain "$folder/now.yaml" 2>/dev/null |
    sed -n 's/^scontrol update NodeName=[^ ]* State=DRAIN Reason="\(.*\)"$/\1/p' |
    sort -r | head -n 1)
[ -z "$too_few" ] || reason="gpumemtopo:failing:-:$too_few of $((10#$gpus)) GPUs are there, twice:-:-"
if [ "$failing" -eq 0 ] && [ "$drain" = yes ] && [ -n "$reason" ]; then
    scontrol update NodeName="$node" State=DRAIN Reason="$reason"
fi
case $failing$reason in
"1gpumemtopo:failing:"*)
    echo "$reason" >&2
    verdict=1
    ;;
esac
