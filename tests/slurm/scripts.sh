#!/bin/sh
# slurm/survey.sbatch, health.sh and rolling.sh around stand-ins for srun and the programs.
# usage: scripts.sh SOURCE_ROOT
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mkdir bin
inventory() {
    printf 'gpumemtopo: {schema: 1}\nsurvey: {gpus: 4, exit_code: %s}\n' "$1"
}
cat >bin/srun <<'END'
#!/bin/sh
case $DOES in
write) cp new.yaml tmp.yaml && mv tmp.yaml out.yaml ;;
stay) cp new.yaml tmp.yaml && mv tmp.yaml out.yaml && exec sleep 60 ;;
stuck) mkdir -p out.yaml.spool && date +%N >out.yaml.spool/gpu-new.spool && trap '' TERM && : >stuck.on && exec sleep 60 ;;
spool) mkdir -p out.yaml.spool && date +%N >out.yaml.spool/gpu-new.spool ;;
esac
exit "$RETURNS"
END
printf '#!/bin/sh\ncp merged.yaml "$3"\nexit 4\n' >bin/gpumemtopo-report
chmod +x bin/*
inventory 3 >new.yaml
inventory 4 >merged.yaml

fail() {
    echo "FAILED: $1"
    exit 1
}

# usage: job WHAT DOES RETURNS CODE [FLAG...]
job() {
    what=$1 does=$2 returns=$3 wanted=$4 code=0
    shift 4
    DOES=$does RETURNS=$returns GPUMEMTOPO_OUTPUT=${GPUMEMTOPO_OUTPUT:-out.yaml} PATH="$folder/bin:$PATH" \
        bash "$root/slurm/survey.sbatch" "$@" 2>said || code=$?
    [ "$code" -eq "$wanted" ] || fail "$what: $code instead of $wanted, $(cat said)"
}

root=$1
job "an inventory" write 137 3
job "an inventory that is older than the job" nothing 1 1
job "no inventory, though srun is content" nothing 0 1
job "bad usage" nothing 2 2
job "a new inventory over an old one" write 0 3
job "an inventory, and a task that stands still" stay 0 3
job "a new spool beside an old inventory" spool 137 4
inventory 3 >out.yaml
job "an old spool" nothing 137 1
job "an old spool and a new one" spool 137 4
for flags in '-o out.yaml' '--output out.yaml' '--output=out.yaml'; do
    # shellcheck disable=SC2086 # one word per flag
    GPUMEMTOPO_OUTPUT=other.yaml job "an inventory by $flags" write 0 3 $flags
done
job "a spool by its flag" spool 137 4 --profile quick --spool out.yaml.spool -o last.yaml

# The job is ended, and task 0 does not hear it.
(
    until [ -e stuck.on ]; do sleep 0.1; done
    pkill -TERM -f "bash $root/slurm/survey.sbatch --stuck"
) &
job "a spool of a step that does not end" stuck 0 4 --stuck

# Why a prolog returns 1 is on its stderr.
cat >bin/gpumemtopo-survey <<'END'
#!/bin/sh
while [ "$1" != -o ]; do shift; done
echo x >"$2"
exit 3
END
cat >bin/gpumemtopo-report <<'END'
#!/bin/sh
echo 'scontrol update NodeName=n1 State=DRAIN Reason="gpumemtopo:failing:GPU-1:a cause:-:-"'
END
chmod +x bin/*
echo "bin=$folder/bin lock=$folder/lock" >health.conf
prolog() {
    code=0
    env -i GPUMEMTOPO_HEALTH_CONF="$folder/health.conf" SLURMD_NODENAME=n1 \
        SLURM_SCRIPT_CONTEXT=prolog_slurmd "$root/slurm/health.sh" 2>said || code=$?
}
prolog
[ "$code" -eq 1 ] || fail "a failing GPU: $code"
[ "$(cat said)" = "gpumemtopo:failing:GPU-1:a cause:-:-" ] || fail "reason: $(cat said)"

# Settings with a mistake do not drain every node of the cluster: without a verdict it returns 0.
for mistake in 'bin=$NOT_SET/bin' 'exit 3' 'if then' 'false' 'lock=$((1 / 0))'; do
    echo "$mistake" >health.conf
    prolog
    [ "$code" -eq 0 ] || fail "health.conf with $mistake: $code"
done
for limit in 40s 1 '' 08 -1; do
    echo "bin=$folder/bin lock=$folder/lock limit=$limit" >health.conf
    prolog
    [ "$code" -eq 1 ] || fail "a failing GPU, limit=$limit: $code, $(cat said)"
done

# The survey itself tries a GPU twice, so one survey is enough; a GPU that was not measured is no reason.
cat >bin/gpumemtopo-survey <<'END'
#!/bin/sh
echo "$*" >asked
while [ "$1" != -o ]; do shift; done
echo run >>runs
{
    echo 'survey: {nodes: 1, ranks: 1, gpus: 7, measured: 6, unmeasured: 1, lost_ranks: 0}'
    echo 'unmeasured:'
    echo '  - {node: n1, rank: 0, uuid: GPU-1, status: crashed, reason: signal 11}'
} >"$2"
exit 4
END
printf '#!/bin/sh\n' >bin/gpumemtopo-report
echo "bin=$folder/bin lock=$folder/lock" >health.conf
prolog
[ "$code" -eq 0 ] || fail "no line of drain: $code, $(cat said)"
[ "$(wc -l <runs)" -eq 1 ] || fail "$(wc -l <runs) surveys"
# A healthy GPU that is slow to start is not taken for one that hangs.
echo "bin=$folder/bin lock=$folder/lock limit=4" >health.conf
prolog
grep -q -- '--time-limit 5 ' asked || fail "limit=4: $(cat asked)"

# Fewer GPUs than the site says, or than Slurm knows of; as many, or no setting, is well.
printf '#!/bin/sh\necho "   Gres=gpu:h200:6(S:0-1),gpu:2,shard:9"\n' >bin/scontrol
chmod +x bin/*
expecting() { # expecting GPUS CODE
    rm -f runs
    echo "bin=$folder/bin lock=$folder/lock gpus=$1" >health.conf
    prolog
    [ "$code" -eq "$2" ] || fail "gpus=$1: $code, $(cat said)"
    [ "$2" -eq 0 ] || grep -qx "gpumemtopo:failing:-:7 of 8 GPUs are there, twice:-:-" said ||
        fail "reason: $(cat said)"
}
expecting 8 1
[ "$(wc -l <runs)" -eq 2 ] || fail "$(wc -l <runs) surveys, not 2"
expecting slurm 1
expecting 7 0
expecting '' 0
expecting many 0

# The last inventory of all nodes is the baseline, and says how many GPUs the node has.
here=$(uname -n)
for i in 1 2 3 4 5 6 7 8; do printf '  - uuid: GPU-%s\n    node: %s\n' "$i" "$here"; done >fleet.yaml
with_baseline() { # with_baseline CODE SETTING
    echo "bin=$folder/bin lock=$folder/lock $2" >health.conf
    prolog
    [ "$code" -eq "$1" ] || fail "$2: $code, $(cat said)"
}
with_baseline 1 "baseline=$folder/fleet.yaml"
grep -qx "gpumemtopo:failing:-:7 of 8 GPUs are there, twice:-:-" said || fail "reason: $(cat said)"
grep -q -- "--baseline $folder/fleet.yaml" asked || fail "no baseline: $(cat asked)"
with_baseline 0 "baseline=$folder/fleet.yaml gpus=7"
with_baseline 0 "baseline=$folder/none.yaml"
! grep -q -- --baseline asked || fail "a baseline that does not exist: $(cat asked)"
with_baseline 0 "baseline=$folder/fleet.yaml flags=(--baseline $folder/other.yaml)"
! grep -q "$folder/fleet.yaml" asked || fail "two baselines: $(cat asked)"
# One that the program refuses is left out.
cp bin/gpumemtopo-survey bin/good
cat >bin/gpumemtopo-survey <<END
#!/bin/sh
case "\$*" in *--baseline*) exit 2 ;; esac
exec $folder/bin/good "\$@"
END
with_baseline 1 "baseline=$folder/fleet.yaml"
mv bin/good bin/gpumemtopo-survey

# No GPU at all, because there is none or the driver is dead; another failure says nothing about GPUs.
saying() { # saying CODE WORDS: the program makes no report
    printf '#!/bin/sh\necho "gpumemtopo-survey: %s" >&2\nexit 1\n' "$2" >bin/gpumemtopo-survey
    echo "bin=$folder/bin lock=$folder/lock gpus=8" >health.conf
    prolog
    [ "$code" -eq "$1" ] || fail "$2: $code, $(cat said)"
}
saying 1 'no GPU to survey: none of 1 ranks sees one'
saying 0 'out of memory'

# Where anybody may create files, a link in place of the lock makes root empty what it points to, and
# one who holds the lock keeps every check from looking.
lock=$(sed -n "s/^bin=''.* lock=\([^ ]*\) .*/\1/p" "$root/slurm/health.sh")
[ -n "$lock" ] || fail "health.sh has no default lock"
[ -z "$(find "$(dirname "$lock")" -maxdepth 0 -perm /022)" ] || fail "the lock $lock is anybody's"

# A node that was not surveyed is named, however its srun ended.
cat >bin/sinfo <<'END'
#!/bin/sh
printf 'n1 gpu:2\nn2 gpu:2\n'
END
cat >bin/srun <<'END'
#!/bin/sh
while [ "$1" != -w ]; do shift; done
[ "$2" = n1 ] || exit 4
exit 137
END
printf '#!/bin/sh\necho "$*" >merged\necho fleet >"$3"\n' >bin/gpumemtopo-report
chmod +x bin/*
mkdir state
export GPUMEMTOPO_STATE=$folder/state
PATH=$folder/bin:$PATH "$root/slurm/rolling.sh" -p all 2>said || fail "rolling.sh returned $?"
[ "$(cat said)" = "rolling.sh: n1: not surveyed this time" ] || fail "rolling.sh: $(cat said)"
[ "$(cut -d ' ' -f 4- merged)" = gpumemtopo-rolling ] || fail "nothing yet: $(cat merged)"

[ "$(cat state/fleet.yaml)" = fleet ] || fail "no inventory for health.sh: $(ls -A state)"

# What a killed job spooled counts, and merge has no folder in a folder to warn of.
touch gpumemtopo-rolling/n2.yaml
mkdir gpumemtopo-rolling/n1.yaml.spool gpumemtopo-rolling/n2.yaml.spool.before-x
PATH=$folder/bin:$PATH "$root/slurm/rolling.sh" -p all 2>said || fail "rolling.sh returned $?"
[ "$(cut -d ' ' -f 4- merged)" = "gpumemtopo-rolling/n2.yaml gpumemtopo-rolling/n1.yaml.spool" ] ||
    fail "merged: $(cat merged)"
