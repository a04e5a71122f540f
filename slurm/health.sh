#!/bin/bash
# Checks the GPUs of this node in seconds. Settings for slurm.conf:
#
#   HealthCheckProgram=/etc/gpumemtopo/health.sh    HealthCheckInterval=3600
#   HealthCheckNodeState=IDLE
#   Prolog=/etc/gpumemtopo/health.sh                Epilog=/etc/gpumemtopo/health.sh
#
# As a health check it always returns 0. As prolog or epilog it returns 1 if a GPU is failing, and
# Slurm then drains the node; degraded GPUs do not stop a job. If a GPU hangs, crashes the program or is
# missing (see gpus), the node is surveyed a second time; a GPU with the same result is failing. A GPU on
# which another process computes is not measured. Settings are in /etc/gpumemtopo/health.conf, which this
# shell sources:
#
#   bin=/opt/gpumemtopo/bin     folder of the programs
#   drain=yes                   a health check drains the node of a failing or degraded GPU
#   last=/var/lib/gpumemtopo    folder for the last inventory
#   gpus=8                      number of GPUs that this node must have; slurm: as its Gres says
#   limit=40                    time limit in seconds; Slurm's own limit is 60
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
bin='' drain=no last='' gpus='' limit=40 lock=/run/gpumemtopo-health.lock node=${SLURMD_NODENAME:-} flags=()
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

# survey FILE: in the time that is left. Without Slurm's variables: with them the survey would take itself
# for a step with several ranks.
survey() {
    local left=$((10#$limit - SECONDS))
    : >"$folder/said"
    [ "$left" -ge 2 ] || return 1
    env -i PATH="$PATH" HOME=/ timeout -k 8 "$left" gpumemtopo-survey --profile quick --busy skip \
        --time-limit $(((10#$limit + 2) / 3)) --quiet --no-progress -o "$1" "${flags[@]}" \
        9>&- 2>"$folder/said"
}

# dead FILE: the GPUs that hung or crashed the program, one in a line. On a slow node a healthy GPU may need
# longer than its third of the limit. So a time-out counts only if another GPU was measured in that time.
dead() {
    local counts=crashed
    ! grep -q '^survey: {.* measured: [1-9]' "$1" 2>/dev/null || counts='crashed\|timed_out'
    sed -n "s/^  - {node: [^,]*, rank: [^,]*, uuid: \([^,]*\), status: \($counts\), .*/\1/p" "$1" 2>/dev/null | sort
}

# missing FILE CODE: the number of GPUs that the survey saw, if they are too few. Without a report that is
# so only if the program itself says that there is none; it may also have failed for another reason.
missing() {
    local seen
    seen=$(sed -n 's/^survey: {.* gpus: \([0-9]*\),.*/\1/p' "$1" 2>/dev/null)
    [[ $seen =~ ^[0-9]{0,6}$ ]] || return 0 # no report of this program
    [ -n "$seen" ] || [ "$2" -ne 1 ] || ! grep -q 'no GPU' "$folder/said" || seen=0
    [ -z "$seen" ] || [ -z "$gpus" ] || [ "$seen" -ge $((10#$gpus)) ] || echo "$seen"
}

survey "$folder/now.yaml"
code=$?
gone=$(missing "$folder/now.yaml" "$code") dead=$(dead "$folder/now.yaml")
if [ -n "$gone$dead" ]; then
    survey "$folder/again.yaml"
    gone=${gone:+$(missing "$folder/again.yaml" "$?")}
    dead=$(comm -12 <(printf '%s\n' "$dead") <(dead "$folder/again.yaml") | grep -v '^null$' | head -n 1)
fi
if [ ! -s "$folder/now.yaml" ]; then # no GPU, no driver, or the time limit was reached
    [ "$code" -eq 0 ] || logger -t gpumemtopo -- "$(head -c 300 "$folder/said")" 2>/dev/null
    [ -n "$gone" ] || exit 0
elif [ -n "$last" ] && mkdir -p "$last"; then
    cp "$folder/now.yaml" "$last/.now.yaml.$$" && mv "$last/.now.yaml.$$" "$last/$node.yaml"
fi

# The reason from gpumemtopo-report, which replaces characters that a shell could interpret. Sorted so
# that a failing GPU comes first.
reason=$(gpumemtopo-report drain "$folder/now.yaml" 2>/dev/null |
    sed -n 's/^scontrol update NodeName=[^ ]* State=DRAIN Reason="\(.*\)"$/\1/p' |
    sort -r | head -n 1)
[ -z "$gone" ] || reason="gpumemtopo:failing:-:$gone of $((10#$gpus)) GPUs are there, twice:-:-"
[ -z "$dead" ] || reason="gpumemtopo:failing:${dead//[^A-Za-z0-9-]/}:hung or crashed the program, twice:-:-"
if [ "$failing" -eq 0 ] && [ "$drain" = yes ] && [ -n "$reason" ]; then
    scontrol update NodeName="$node" State=DRAIN Reason="$reason"
fi
case $failing$reason in
"1gpumemtopo:failing:"*)
    echo "$reason" >&2
    verdict=1
    ;;
esac
