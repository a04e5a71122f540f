#!/bin/bash
# Checks the GPUs of this node in seconds. Settings for slurm.conf:
#
#   HealthCheckProgram=/etc/gpumemtopo/health.sh    HealthCheckInterval=3600
#   HealthCheckNodeState=IDLE
#   Prolog=/etc/gpumemtopo/health.sh                Epilog=/etc/gpumemtopo/health.sh
#
# As a health check it always returns 0. As prolog or epilog it returns 1 if a GPU is failing, and
# Slurm then drains the node; degraded GPUs do not stop a job. A GPU on which another process
# computes is not measured. Settings are in /etc/gpumemtopo/health.conf, which this shell sources:
#
#   bin=/opt/gpumemtopo/bin     folder of the programs
#   drain=yes                   a health check drains the node of a failing or degraded GPU
#   last=/var/lib/gpumemtopo    folder for the last inventory
#   limit=40                    time limit in seconds; Slurm's own limit is 60
#   node=$(hostname -s)         name of this node in Slurm
#   lock=/run/gpumemtopo-health.lock    lock file; use a folder where only root may create files
#   flags=(--reference DIR)     more flags for gpumemtopo-survey
#
# Of the environment, only SLURM_SCRIPT_CONTEXT, SLURMD_NODENAME and GPUMEMTOPO_HEALTH_CONF are used,
# because the environment of a prolog is nearly empty.
set -u
# Only a failing GPU sets this to 1. No other error, such as a mistake in the settings, may drain a node.
verdict=0 folder=
trap '[ -z "$folder" ] || rm -rf "$folder"; exit "$verdict"' EXIT
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
bin='' drain=no last='' limit=40 lock=/run/gpumemtopo-health.lock node=${SLURMD_NODENAME:-} flags=()
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

# Without Slurm's variables: with them the survey would take itself for a step with several ranks.
env -i PATH="$PATH" HOME=/ timeout -k 8 "$limit" gpumemtopo-survey --profile quick --busy skip \
    --time-limit $((10#$limit / 2)) --quiet --no-progress -o "$folder/now.yaml" "${flags[@]}" \
    9>&- 2>"$folder/said"
code=$?
if [ ! -s "$folder/now.yaml" ]; then # no GPU, no driver, or the time limit was reached
    [ "$code" -eq 0 ] || logger -t gpumemtopo -- "$(head -c 300 "$folder/said")" 2>/dev/null
    exit 0
fi
if [ -n "$last" ] && mkdir -p "$last"; then
    cp "$folder/now.yaml" "$last/.now.yaml.$$" && mv "$last/.now.yaml.$$" "$last/$node.yaml"
fi

# The reason from gpumemtopo-report, which replaces characters that a shell could interpret. Sorted so
# that a failing GPU comes first.
reason=$(gpumemtopo-report drain "$folder/now.yaml" 2>/dev/null |
    sed -n 's/^scontrol update NodeName=[^ ]* State=DRAIN Reason="\(.*\)"$/\1/p' |
    sort -r | head -n 1)
if [ "$failing" -eq 0 ] && [ "$drain" = yes ] && [ -n "$reason" ]; then
    scontrol update NodeName="$node" State=DRAIN Reason="$reason"
fi
case $failing$reason in
"1gpumemtopo: failing:"*)
    echo "$reason" >&2
    verdict=1
    ;;
esac
