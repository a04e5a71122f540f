#!/bin/bash -p
# Checks the GPUs of this node in seconds. Settings for slurm.conf:
#
#   HealthCheckProgram=/usr/share/gpumemtopo/slurm/health.sh
#   HealthCheckInterval=3600    HealthCheckNodeState=IDLE
#
# prolog.sh and epilog.sh call it as "health.sh prolog" and "health.sh epilog". It ends within `limit` + 10 s, even if
# a process hangs in the driver and cannot be killed.
#
#   verdict     health check                              prolog, epilog
#   healthy     returns 0                                 returns 0
#   drain       returns 0; with drain=yes drains          returns 1: Slurm drains the node
#   unmeasured  returns 1: slurmd logs why                returns 1, but 0 with unmeasured=start
#
# A health check that cannot drain returns 1, too. The policy of the survey decides what is drained
# (docs/JUDGE.md), by default a GPU that hangs or crashes the program twice, too. So is a node with too few GPUs (see gpus), twice, or where the survey does not end even when killed. Settings are in
# /etc/gpumemtopo/health.conf, which this shell sources if only root can write it:
#
#   bin=/opt/gpumemtopo/bin     folder of the programs
#   drain=yes                   a health check drains the node if the policy says so
#   unmeasured=start            a job starts although its GPUs could not be measured (default: drain)
#   opt_out=no                  jobs may not skip the prolog by --comment=gpumemtopo=skip
#   measure=node                prolog and epilog measure all GPUs of the node (default: job, only those of the job)
#   last=/var/lib/gpumemtopo    folder for the last inventory
#   baseline=/var/lib/gpumemtopo/fleet.yaml    the last inventory of all nodes, if there is one: GPUs are
#                               compared with themselves. rolling.sh writes it
#   owner=gpumemtopo            user besides root who may own the baseline
#   gpus=8                      number of GPUs that this node must have; slurm: as its Gres says (not in a prolog).
#                               Without this setting: as many as in the baseline
#   limit=20                    seconds until the survey is ended; below 16, a GPU that hangs may not be found
#   node=$(hostname -s)         name of this node in Slurm
#   devices=/proc/driver/nvidia/gpus    where the driver lists its GPUs
#   lock=/run/gpumemtopo-health.lock    lock file; use a folder where only root may create files
#   flags=(--reference DIR)     more flags for gpumemtopo-survey
#   SLURM_CONF=/etc/slurm/slurm.conf    for scontrol, if it lies elsewhere: slurmd does not tell it to a health check
#
# Others than root must not be able to write this script, the programs, the files shipped with them, or files that
# flags name: otherwise nothing is measured, and the reason says which.
set -u
umask 077
cd /
# Some variables of a prolog have values that the user of the job chose. Those below are used; no other is.
while read -r name; do
    case $name in
    SLURM_CONF | SLURMD_NODENAME | SLURM_JOB_GPUS | SLURM_JOB_COMMENT | SLURM_SCRIPT_CONTEXT | GPUMEMTOPO_HEALTH_CONF) ;;
    *) unset "$name" 2>/dev/null ;;
    esac
done < <(compgen -e)
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
role=${1:-${SLURM_SCRIPT_CONTEXT:-health}}
role=${role%%_*}

# Everything that is not known to be well ends as "unmeasured".
verdict=unmeasured why='health.sh ended early' folder='' unmeasured=drain drained=yes
leave() {
    local code=0
    case $verdict/$role in
    unmeasured/health) code=1 ;;
    unmeasured/*) [ "$unmeasured" = start ] || code=1 ;;
    drain/health) [ "$drained" = yes ] || code=1 ;;
    drain/*) code=1 ;;
    esac
    [ "$verdict" = healthy ] || tell "$verdict: $why"
    [ -z "$folder" ] || rm -rf "$folder"
    exit "$code"
}
trap leave EXIT

# To stderr, which slurmd logs when the script returns 1, and to the log of the system.
tell() {
    echo "gpumemtopo: $1" >&2
    timeout 2 logger -t gpumemtopo -p daemon.err -- "${1:0:400}" </dev/null >/dev/null 2>&1 9>&- &
}

# ours PATH [USER_ID]: only root, who runs this, or that user can have written the file, or can put another one in its
# place: no folder above it lets others rename. Links on the way belong to them, too.
ours() {
    local path=$1 paths=() count=0 uid mode kind
    [[ $path = /* ]] || return 1
    while paths+=("$path") && [ "$path" != / ]; do
        path=${path%/*}
        path=${path:-/}
    done
    while read -r uid mode kind; do
        [ "$uid" = 0 ] || [ "$uid" = "$EUID" ] || [ "$uid" = "${2:-0}" ] || return 1
        [ "$kind" = 'symbolic link' ] || [ $((mode & 022)) -eq 0 ] ||
            { [ $((mode & 01000)) -ne 0 ] && [ "$kind" = directory ] && [ "$count" -gt 0 ]; } || return 1
        count=$((count + 1))
    done < <(stat -c '%u 0%a %F' -- "${paths[@]}")
    [ "$count" -eq ${#paths[@]} ]
}

# trusted PATH [USER_ID]: the same for what PATH, which is no link, means in the end.
trusted() {
    [ -e "$1" ] && [ ! -L "$1" ] && ours "$1" "${2:-0}" && ours "$(realpath -e -- "$1")" "${2:-0}"
}

# refuse_unless_ours PATH: ends the check if others than root and `owner` can write it, or anything below it.
refuse_unless_ours() {
    local real bad=''
    if ! real=$(realpath -e -- "$1") || ! ours "$1" "$owner_id" || ! ours "$real" "$owner_id"; then
        bad=$1
    elif [ -d "$real" ]; then
        bad=$(find "$real" ! -uid 0 ! -uid "$EUID" ! -uid "$owner_id" -print -quit -o -perm /022 ! -type l -print -quit)
    fi
    [ -z "$bad" ] || { why="others than root can write $bad, or a folder above it" && exit; }
}

# within SECONDS COMMAND...: its output is in $folder/out and $folder/said. Returns its status; 124: it had to be
# ended; 125: it did not end even when killed, and is left alone. (timeout(1) would wait for it for ever.)
within() {
    local left=$1 pid signal end
    shift
    setsid env -i PATH="$PATH" HOME=/ TMPDIR="$folder" ${SLURM_CONF:+SLURM_CONF="$SLURM_CONF"} "$@" \
        </dev/null >"$folder/out" 2>"$folder/said" 9>&- &
    pid=$!
    for signal in none TERM KILL; do
        [ "$signal" = none ] || kill -s "$signal" -- "-$pid" || kill -s "$signal" "$pid"
        end=$((SECONDS + left))
        while kill -0 "$pid" || [ -e "/proc/$pid" ]; do
            if [ "$SECONDS" -ge "$end" ]; then
                [ "$signal" = none ] && left=2 || left=1
                continue 2
            fi
            sleep 0.1
        done
        wait "$pid"
        end=$?
        [ "$signal" = none ] || end=124
        return "$end"
    done
    disown "$pid"
    return 125
} 2>/dev/null # or bash would tell that it was killed

bin='' drain=no opt_out=yes measure=job last='' gpus='' baseline=/var/lib/gpumemtopo/fleet.yaml owner=root limit=20
lock=/run/gpumemtopo-health.lock node=${SLURMD_NODENAME:-} flags=() devices=/proc/driver/nvidia/gpus
conf=${GPUMEMTOPO_HEALTH_CONF:-/etc/gpumemtopo/health.conf}
if [ -e "$conf" ] || [ -L "$conf" ]; then
    if ! trusted "$conf"; then
        why="$conf is a link, or others than root can write it or a folder above it"
        exit
    fi
    why="a mistake in $conf"
    bash -pn -- "$conf" || exit
    # shellcheck disable=SC1090
    . "$conf"
fi
[ -z "$bin" ] || PATH=$bin:$PATH
[ -n "$node" ] || node=$(hostname -s)

owner_id=$(id -u -- "$owner" 2>/dev/null) || owner_id=0

# What root runs and reads here. A program that is missing is reported when it is started.
refuse_unless_ours "$(readlink -f -- "${BASH_SOURCE[0]}")"
for name in gpumemtopo-survey gpumemtopo-report; do
    path=$(type -P -- "$name") || continue
    refuse_unless_ours "$path"
    shipped=$(dirname -- "$(realpath -e -- "$path")")/../share/gpumemtopo
    [ ! -d "$shipped" ] || refuse_unless_ours "$(realpath -e -- "$shipped")"
done
for path in "${flags[@]}"; do # FLAG VALUE or FLAG=VALUE
    path=${path#-*=}
    [ "${path:0:1}" != / ] || [ ! -e "$path" ] || refuse_unless_ours "$path"
done

if [ "$role" != health ]; then # of a job
    case $role/$opt_out/,${SLURM_JOB_COMMENT:-}, in
    prolog/yes/*,gpumemtopo=skip,*) verdict=healthy && exit ;;
    esac
    [ "$gpus" != slurm ] || gpus=
    if [ "$measure" != node ]; then
        of_job=${SLURM_JOB_GPUS:-}
        [ -n "$of_job" ] || { verdict=healthy && exit; } # it uses no GPU
        [[ $of_job =~ ^[0-9]+(,[0-9]+)*$ ]] || { why="SLURM_JOB_GPUS is no list of numbers" && exit; }
        gpus=$(tr ',' '\n' <<<"$of_job" | wc -l)
    fi
fi
if ! [[ $limit =~ ^[0-9]{1,4}$ ]] || [ $((10#$limit)) -lt 2 ]; then
    tell "limit must be a number of seconds, 2 or more, not \"$limit\"; using 20"
    limit=20
fi
folder=$(mktemp -d -p /run 2>/dev/null || mktemp -d -p /tmp) || { why="no private folder in /run or /tmp" && exit; }

# SLURM_JOB_GPUS has places in the list of GPUs that slurmd made of gres.conf, which need not be the order of PCI
# addresses. slurmd -G prints this list; where it does not, the places are taken as the numbers N of /dev/nvidiaN. The
# driver says which UUID a device has. Without its folder (another driver), CUDA gets the places in PCI order.
if [ -n "${of_job:-}" ] && compgen -G "$devices/*/information" >/dev/null; then
    within 5 slurmd -G -N "$node"
    mapfile -t minors < <(cat "$folder/out" "$folder/said" | sed -n 's/.*Gres Name=gpu .* File=\([^ ]*\).*/\1/p' |
        sed 's/\[\(.*\)\]$/ \1/; t; s/\([0-9]*\)$/ \1/' | cut -d ' ' -f 2 | tr , '\n' |
        awk -F- 'NF { for (n = $1; n <= $NF; n++) print n }')
    visible=''
    for place in ${of_job//,/ }; do
        minor=${minors[10#$place]:-$((10#$place))}
        uuid=$(cat "$devices"/*/information | awk -F ':[ \t]*' -v minor="$minor" '
            $1 == "GPU UUID" { uuid = $2 } $1 == "Device Minor" && $2 == minor { print uuid }')
        [[ $uuid =~ ^GPU-[0-9a-f-]+$ ]] || { why="GPU $place of the job is /dev/nvidia$minor, whose UUID $devices does not have; set measure=node" && exit; }
        visible=$visible${visible:+,}$uuid
    done
    of_job=$visible
fi

# A second check at the same time would find the GPUs busy. The next health check comes soon; a job waits.
if [ -L "$lock" ] || ! { exec 9>>"$lock"; } 2>/dev/null; then
    why="cannot open the lock $lock"
    exit
elif ! flock -n 9; then
    [ "$role" != health ] || { verdict=healthy && exit; }
    flock -w $((10#$limit + 10)) 9 || { why="another check holds $lock" && exit; }
fi
SECONDS=0

if [ "$gpus" = slurm ]; then # Gres=gpu:a100:4(S:0),gpu:h200:4(S:1): the sum
    within 3 scontrol show node "$node"
    gpus=$(sed -n 's/^ *Gres=//p' "$folder/out" | sed 's/([^)]*)//g; s/,/\n/g' |
        awk -F: '$1 == "gpu" { n += $NF } END { if (n) print n }')
    [ -n "$gpus" ] || tell "gpus=slurm: scontrol does not tell: $(head -c 200 "$folder/said"); missing GPUs are not noticed"
fi
if ! [[ $gpus =~ ^[0-9]{0,3}$ ]]; then
    tell "gpus must be a number or slurm, not \"$gpus\"; missing GPUs are not noticed"
    gpus=
fi

base=()
case " ${flags[*]} " in
*" --baseline"*) ;; # the site names another one
*)
    if [ -s "$baseline" ] && trusted "$baseline" "$owner_id"; then
        base=(--baseline "$baseline")
    elif [ -s "$baseline" ]; then
        tell "$baseline is not used: it is a link, or others than root and $owner can write it"
    fi
    ;;
esac
if [ -z "$gpus" ] && [ "${#base[@]}" -gt 0 ]; then
    gpus=$(grep -cxF "    node: $(uname -n)" "$baseline") || gpus= # it does not know this node
fi
if [ "$gpus" = 0 ] || { [ -z "$gpus" ] && [ "${#flags[@]}" -eq 0 ] && ! grep -qsx 0x10de /sys/bus/pci/devices/*/vendor; }; then
    verdict=healthy # a node without NVIDIA GPUs
    exit
fi

# A GPU that hangs is tried twice; the report takes time as well. A healthy GPU may need some seconds to
# start: with a limit below 16 s there is no time to tell, and a GPU that hangs is not found.
try_s=$(((10#$limit - SECONDS - 4) / 2))
[ "$try_s" -ge 5 ] || try_s=5

# survey FILE: in the time that is left. Without Slurm's variables: with them the survey would take itself
# for a step with several ranks.
survey() {
    local left=$((10#$limit - SECONDS))
    [ "$left" -ge 2 ] || return 124
    within "$left" ${of_job:+CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES="$of_job"} gpumemtopo-survey \
        --profile quick --busy skip --time-limit "$try_s" --quiet --no-progress -o "$1" "${base[@]}" "${flags[@]}"
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

now=$folder/now.yaml
survey "$now"
code=$?
if [ "$code" -eq 2 ] && [ "${#base[@]}" -gt 0 ]; then # the baseline may be damaged: do without it
    tell "without $baseline: $(head -c 300 "$folder/said")"
    base=()
    survey "$now"
    code=$?
fi
too_few=$(count_if_too_few "$now" "$code")
if [ -n "$too_few" ]; then
    survey "$folder/again.yaml"
    code=$?
    too_few=$(count_if_too_few "$folder/again.yaml" "$code")
    [ ! -s "$folder/again.yaml" ] || mv "$folder/again.yaml" "$now"
fi

# What the inventory says. The reason is made by gpumemtopo-report, which replaces characters that a shell could
# interpret.
reason=''
if [ -n "$too_few" ]; then
    reason="gpumemtopo:failing:-:$too_few of $((10#$gpus)) GPUs are there, twice:-:-"
elif [ "$code" -eq 125 ]; then
    reason="gpumemtopo:failing:-:the driver hangs, the survey cannot be killed:-:-"
elif [ ! -s "$now" ]; then
    why="no inventory: $(head -c 300 "$folder/said")"
    [ "$code" -ne 124 ] || why="the survey did not end within $limit s"
elif within 3 gpumemtopo-report drain "$now"; then
    reason=$(sed -n 's/^scontrol update NodeName=[^ ]* State=DRAIN Reason="\(.*\)"$/\1/p' "$folder/out" |
        head -n 1)
    read -r measured missed < <(sed -n 's/^survey: {.* measured: \([0-9]*\), unmeasured: \([0-9]*\),.*/\1 \2/p' "$now")
    if [ "${measured:-0}" -gt 0 ] && [ "${missed:-1}" -eq 0 ]; then
        verdict=healthy
    else
        why="$(sed -n '/^unmeasured:/,$ s/^  - {.*uuid: \([^,]*\), status: \([^,]*\), reason: \(.*\)}$/\1 \2, \3/p' "$now" | head -n 1)"
        why="${missed:-all} GPUs were not measured: ${why:-for an unknown reason}"
    fi
else
    why="gpumemtopo-report drain failed: $(head -c 300 "$folder/said")"
fi
[ -z "$reason" ] || verdict=drain why=$reason

if [ -n "$last" ] && [ -s "$now" ]; then
    (umask 022 && mkdir -p "$last")
    if ! trusted "$last" || ! install -m 644 "$now" "$last/.now.yaml.$$" ||
        ! mv -T "$last/.now.yaml.$$" "$last/$node.yaml"; then
        tell "cannot keep the inventory in $last"
    fi
fi
if [ "$role" = health ] && [ "$drain" = yes ] && [ -n "$reason" ]; then
    within 3 scontrol update NodeName="$node" State=DRAIN Reason="$reason"
    code=$?
    if [ "$code" -ne 0 ]; then
        drained=no
        said=$(head -c 200 "$folder/said")
        [ "$code" -lt 124 ] || said="does not answer"
        why="$why: COULD NOT DRAIN $node: scontrol: ${said:-returned $code}"
    fi
fi
