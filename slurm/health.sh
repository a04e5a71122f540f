#!/bin/bash
# A look at this node's GPUs in seconds, for slurm.conf:
#
#   HealthCheckProgram=/etc/gpumemtopo/health.sh    HealthCheckInterval=3600
#   HealthCheckNodeState=IDLE
#   Prolog=/etc/gpumemtopo/health.sh                Epilog=/etc/gpumemtopo/health.sh
#
# As a health check it always returns 0. As prolog or epilog it returns 1 when a GPU is failing, and
# Slurm then drains the node itself; degraded GPUs do not stop a job. A GPU on which somebody
# computes is left alone. Settings are in /etc/gpumemtopo/health.conf, which is read by this shell:
#
#   bin=/opt/gpumemtopo/bin     where the programs are
#   drain=yes                   a health check drains the node of a failing or degraded GPU
#   last=/var/lib/gpumemtopo    folder for the last inventory
#   limit=40                    seconds in all; Slurm gives up after 60
#   node=$(hostname -s)         this node's name in Slurm
#   lock=/run/gpumemtopo-health.lock    held during a look; where root alone may create files
#   flags=(--reference DIR)     more flags for gpumemtopo-survey
#
# Nothing is taken from the environment but SLURM_SCRIPT_CONTEXT, SLURMD_NODENAME and
# GPUMEMTOPO_HEALTH_CONF: a prolog's is nearly empty.
set -u
# Only a failing GPU makes it 1: whatever else goes wrong here, settings included, drains no node.
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
    echo "health.sh: limit is a number of seconds from 2, not \"$limit\": 40 is taken" >&2
    limit=40
fi
folder=$(mktemp -d) || exit 0

# A second look at the same time would find the GPUs busy: with the first one.
{ exec 9>>"$lock"; } 2>/dev/null || exec 9>"$folder/lock"
flock -n 9 || exit 0

# Slurm's variables must not make the survey believe that it is a step with ranks.
env -i PATH="$PATH" HOME=/ timeout -k 8 "$limit" gpumemtopo-survey --profile quick --busy skip \
    --time-limit $((10#$limit / 2)) --quiet --no-progress -o "$folder/now.yaml" "${flags[@]}" \
    9>&- 2>"$folder/said"
code=$?
if [ ! -s "$folder/now.yaml" ]; then # no GPU, no driver, no time
    [ "$code" -eq 0 ] || logger -t gpumemtopo -- "$(head -c 300 "$folder/said")" 2>/dev/null
    exit 0
fi
if [ -n "$last" ] && mkdir -p "$last"; then
    cp "$folder/now.yaml" "$last/.now.yaml.$$" && mv "$last/.now.yaml.$$" "$last/$node.yaml"
fi

# The reason in the words that gpumemtopo-report made safe; a failing GPU comes first.
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
