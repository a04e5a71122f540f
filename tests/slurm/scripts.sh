#!/bin/sh
# slurm/survey.sbatch, health.sh, prolog.sh and rolling.sh around stand-ins for srun and the programs.
# usage: scripts.sh SOURCE_ROOT UNKILLABLE (of unkillable.c)
set -eu
unkillable=$(realpath "$2")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mkdir bin
inventory() {
    printf 'gpumemtopo: {schema: 4}\nsurvey: {gpus: 4, exit_code: %s}\n' "$1"
}
cat >bin/srun <<'END'
#!/bin/sh
echo "$1" >>steps
case $DOES in
second) [ "$1" = --mpi=pmix ] && does=spool || does=write ;;
*) does=$DOES ;;
esac
case $does in
write) cp new.yaml tmp.yaml && mv tmp.yaml out.yaml ;;
stay) cp new.yaml tmp.yaml && mv tmp.yaml out.yaml && exec sleep 60 ;;
stuck) mkdir -p out.yaml.spool && date +%N >out.yaml.spool/gpu-new.spool && trap '' TERM && : >stuck.on && exec sleep 60 ;;
spool) mkdir -p out.yaml.spool && date +%N >out.yaml.spool/gpu-new.spool ;;
refuse) mkdir -p out.yaml.spool && date +%N >out.yaml.spool/gpu-new.spool && printf 'job: 7.0.0\nexit_code: 2\n' >out.yaml.spool/.owner ;;
esac
[ "$DOES/$does" != second/write ] || exit 0
exit "$RETURNS"
END
chmod 755 "$folder"
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
# Nodes that do not share the folder: no inventory of a part, whatever srun returns. What another job was refused does not count.
rm -rf out.yaml out.yaml.spool
for code in 2 137; do
    SLURM_JOB_ID=7 job "a step that was refused" refuse "$code" 2 --no-mpi
    [ ! -e out.yaml ] || fail "a step that was refused has an inventory"
done
SLURM_JOB_ID=8 job "a spool in which another job was refused" spool 137 4 --no-mpi
inventory 3 >out.yaml
for flags in '-o out.yaml' '--output out.yaml' '--output=out.yaml'; do
    # shellcheck disable=SC2086 # one word per flag
    GPUMEMTOPO_OUTPUT=other.yaml job "an inventory by $flags" write 0 3 $flags
done
# A task was killed, and Slurm has ended the step: once more without MPI. Not if the survey itself says that it failed.
rm -rf out.yaml.spool* steps
job "a second step" second 137 3
[ "$(cat steps)" = "$(printf -- '--mpi=pmix\n--mpi=none')" ] || fail "steps: $(cat steps)"
grep -q 'surveying once more, without MPI' said || fail "a second step: $(cat said)"
[ -z "$(ls -d out.yaml.spool* 2>/dev/null)" ] || fail "left over: $(ls -d out.yaml.spool*)"
rm -f steps
job "two steps that are killed" spool 137 4
[ "$(wc -l <steps)" -eq 2 ] || fail "steps: $(cat steps)"
ls -d out.yaml.spool.mpi-* >/dev/null || fail "what the first step measured is gone"
grep -q 'before the task was killed is in out.yaml.spool.mpi-' said || fail "two steps: $(cat said)"
rm -rf out.yaml.spool* steps
job "a survey that fails" spool 1 4
[ "$(cat steps)" = --mpi=pmix ] || fail "steps: $(cat steps)"
rm -rf out.yaml.spool* steps
job "a job without MPI" spool 137 4 --no-mpi
[ "$(cat steps)" = --mpi=none ] || fail "steps: $(cat steps)"
rm -rf out.yaml.spool* steps
job "a spool by its flag" spool 137 4 --profile quick --spool out.yaml.spool -o last.yaml

# The job is ended, and task 0 does not hear it.
(
    until [ -e stuck.on ]; do sleep 0.1; done
    pkill -TERM -f "bash $root/slurm/survey.sbatch --stuck"
) &
job "a spool of a step that does not end" stuck 0 4 --stuck

# A prolog, as slurmd calls it: settings by health.conf, GPUs of the job by SLURM_JOB_GPUS. Programs stand in a folder
# that health.sh enters as /.
survey_does() { # survey_does GPUS MEASURED CODE: writes an inventory
    cat >bin/gpumemtopo-survey <<END
#!/bin/sh
echo "\$*" >$folder/asked
env >$folder/environment
while [ "\$1" != -o ]; do shift; done
echo run >>$folder/runs
{
    echo 'survey: {nodes: 1, ranks: 1, gpus: $1, measured: $2, unmeasured: $(($1 - $2)), lost_ranks: 0}'
    echo 'unmeasured:'
    [ $1 -eq $2 ] || echo '  - {node: n1, rank: 0, uuid: GPU-1, status: busy, reason: process 7 computes}'
} >"\$2"
exit $3
END
    chmod +x bin/gpumemtopo-survey
    rm -f runs
}
report_says() { # report_says KIND: of its drain line; none: no line
    printf '#!/bin/sh\n' >bin/gpumemtopo-report
    [ "$1" = none ] || echo "echo 'scontrol update NodeName=n1 State=DRAIN Reason=\"gpumemtopo:$1:GPU-1:a cause:-:-\"'" \
        >>bin/gpumemtopo-report
    chmod +x bin/gpumemtopo-report
}
settings() {
    { printf 'bin=%s lock=%s baseline=/none gpus=7\n' "$folder/bin" "$folder/lock" && printf '%s\n' "$@"; } >health.conf
}
hook() { # hook SCRIPT [VARIABLE...]: sets code; stderr is in said
    script=$1 code=0
    shift
    env -i GPUMEMTOPO_HEALTH_CONF="$folder/health.conf" SLURMD_NODENAME=n1 "$@" "$root/slurm/$script" 2>said || code=$?
}
prolog() {
    hook prolog.sh SLURM_JOB_GPUS=0,1,2,3,4,5,6 "$@"
}
wanted() { # wanted CODE WHAT [WORDS]: and these words on stderr
    [ "$code" -eq "$1" ] || fail "$2: $code, $(cat said)"
    [ $# -lt 3 ] || grep -qF -- "$3" said || fail "$2: $(cat said)"
}

survey_does 7 7 3
report_says failing
settings
prolog
wanted 1 "a failing GPU" "gpumemtopo: drain: gpumemtopo:failing:GPU-1:a cause:-:-"
hook epilog.sh SLURM_JOB_GPUS=0 SLURM_JOB_COMMENT=gpumemtopo=skip
wanted 1 "an epilog cannot be skipped"
hook health.sh
wanted 0 "a health check without drain=yes" "gpumemtopo:failing:GPU-1"
hook prolog.sh
wanted 0 "a job without GPUs"
prolog SLURM_JOB_COMMENT=a,gpumemtopo=skip
wanted 0 "a job that skips it"
prolog SLURM_JOB_COMMENT=gpumemtopo=skipped
wanted 1 "another comment"
settings opt_out=no
prolog SLURM_JOB_COMMENT=gpumemtopo=skip
wanted 1 "a site without opt-out"
report_says degraded
prolog
wanted 1 "a degraded GPU that is to be drained" "gpumemtopo: drain: gpumemtopo:degraded:GPU-1:a cause:-:-"

# What could not be measured is not healthy: whatever is wrong with the settings, the programs or the GPU.
report_says none
settings
prolog
wanted 0 "a healthy node"
[ ! -s said ] || fail "a healthy node: $(cat said)"
grep -qx CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6 environment || fail "not the GPUs of the job: $(cat environment)"
for mistake in 'limit=$NOT_SET' 'exit 3' 'if then' 'bin=/none PATH=/none:/usr/bin:/bin' 'lock=/none/lock'; do
    settings "$mistake"
    prolog
    wanted 1 "health.conf with $mistake"
    hook health.sh
    wanted 1 "health check, health.conf with $mistake"
done
settings
prolog SLURM_JOB_GPUS='0;reboot'
wanted 1 "SLURM_JOB_GPUS that is no list" "no list of numbers"
survey_does 7 6 4
prolog
wanted 1 "a GPU that is busy" "1 GPUs were not measured: GPU-1 busy, process 7 computes"
hook health.sh
wanted 1 "a health check of it" "GPU-1 busy"
settings unmeasured=start
prolog
wanted 0 "a GPU that is busy, unmeasured=start" "unmeasured: 1 GPUs"
survey_does 7 0 4
settings
prolog
wanted 1 "nothing measured"
survey_does 7 7 0
printf '#!/bin/sh\necho cannot read >&2\nexit 2\n' >bin/gpumemtopo-report
prolog
wanted 1 "a report that fails" "cannot read"
report_says none
for limit in 40s 1 '' 08 -1; do
    settings "limit=$limit"
    prolog
    wanted 0 "limit=$limit"
done
# A healthy GPU that is slow to start is not taken for one that hangs.
settings limit=4
prolog
grep -q -- '--time-limit 5 ' asked || fail "limit=4: $(cat asked)"

# Settings that others can write, or that a link names, are not read; nor is a baseline.
settings
for change in 'chmod 666 health.conf' 'chmod 777 .' 'mv health.conf real.conf && ln -s real.conf health.conf'; do
    eval "$change"
    prolog
    wanted 1 "$change" "others than root"
    chmod 755 .
    rm -f health.conf real.conf
    settings
done
# Nor are programs run that others can write, nor files read that come with them or that flags name.
mkdir -p share/gpumemtopo/deep
touch share/gpumemtopo/deep/model.yaml given.yaml
settings "flags=(--reference $folder/given.yaml)"
for change in 'chmod 777 bin' 'chmod 775 bin/gpumemtopo-survey' 'chmod 666 given.yaml' \
    'chmod 777 share/gpumemtopo/deep' 'mv bin real && mkdir -m 777 bin && ln -s ../real/gpumemtopo-survey bin'; do
    rm -f runs
    eval "$change"
    prolog
    wanted 1 "$change" "others than root can write $folder/"
    [ ! -e runs ] || fail "$change: it ran"
    [ ! -d real ] || { rm -r bin && mv real bin; }
    chmod 755 bin bin/gpumemtopo-survey share/gpumemtopo/deep
    chmod 644 given.yaml
done
prolog
wanted 0 "only root can write them"
rm -r share given.yaml

# The GPUs of a job by UUID. Its numbers are places in the list of slurmd, which has the numbers of the devices.
minors() { # minors NUMBER...: of the devices, in the order of their PCI addresses
    rm -rf devices
    for n in "$@"; do
        mkdir -p "devices/0000:0$n:00.0"
        printf 'Model: \t\t H200\nGPU UUID:\t GPU-000%s-ab\nDevice Minor: \t %s\n' "$n" "$n" >"devices/0000:0$n:00.0/information"
    done
}
list_of_slurmd() { # list_of_slurmd FILE...
    printf '#!/bin/sh\n' >bin/slurmd
    for file in "$@"; do
        echo "echo 'slurmd: Gres Name=gpu Type=(null) Count=1 Index=9 ID=7 File=$file (null)' >&2" >>bin/slurmd
    done
    chmod +x bin/slurmd
}
survey_does 2 2 0
settings "devices=$folder/devices"
minors 1 2 3 4
job_gpus() { # job_gpus NUMBERS UUIDS
    prolog SLURM_JOB_GPUS="$1"
    wanted 0 "GPUs $1"
    grep -qx "CUDA_VISIBLE_DEVICES=$2" environment || fail "GPUs $1: not $2: $(cat environment)"
}
list_of_slurmd /dev/nvidia4 /dev/nvidia2 /dev/nvidia3 /dev/nvidia1
job_gpus 0,1 GPU-0004-ab,GPU-0002-ab
job_gpus 03,2 GPU-0001-ab,GPU-0003-ab
list_of_slurmd '/dev/nvidia[3-4,1]' /dev/nvidia2
job_gpus 1,2 GPU-0004-ab,GPU-0001-ab
printf '#!/bin/sh\nexit 1\n' >bin/slurmd
job_gpus 1,4 GPU-0001-ab,GPU-0004-ab
prolog SLURM_JOB_GPUS=0,1
wanted 1 "a device that the driver does not have" "GPU 0 of the job is /dev/nvidia0"
rm -rf bin/slurmd devices
survey_does 7 7 0

here=$(uname -n)
for i in 1 2 3 4 5 6 7 8; do printf '  - uuid: GPU-%s\n    node: %s\n' "$i" "$here"; done >fleet.yaml
settings "baseline=$folder/fleet.yaml"
chmod 666 fleet.yaml
prolog
wanted 0 "a baseline that others can write" "fleet.yaml is not used"
! grep -q -- --baseline asked || fail "a baseline that others can write: $(cat asked)"
chmod 644 fleet.yaml
ln -s fleet.yaml link.yaml
settings "baseline=$folder/link.yaml"
prolog
wanted 0 "a baseline that is a link" "link.yaml is not used"
touch target
ln -s target lock.link
settings "lock=$folder/lock.link"
prolog
wanted 1 "a lock that is a link" "cannot open the lock"
settings "last=$folder/last"
mkdir last elsewhere
ln -s elsewhere/stolen last/n1.yaml
prolog
[ ! -e elsewhere/stolen ] && [ -f last/n1.yaml ] && [ ! -L last/n1.yaml ] || fail "wrote through a link: $(ls -l last)"

# Nothing of the environment reaches the programs.
settings
prolog BASH_ENV="$folder/hello" LD_LIBRARY_PATH=/x SLURM_NTASKS=9 EVIL=1 'BASH_FUNC_stat%%=() { echo stolen; }' SHELLOPTS=noexec
wanted 0 "a hostile environment"
! grep -Eq '^(LD_|BASH|EVIL|SLURM_NT)' environment || fail "from the environment: $(cat environment)"
grep -q '^TMPDIR=/\(run\|tmp\)/tmp\.' environment || fail "no private TMPDIR: $(cat environment)"

# Fewer GPUs than the job has, than the site says, or than Slurm knows of. No scontrol in a prolog.
printf '#!/bin/sh\necho called >>%s/scontrol.calls\necho "   Gres=gpu:h200:6(S:0-1),gpu:2,shard:9"\n' "$folder" >bin/scontrol
chmod +x bin/scontrol
survey_does 7 7 0
prolog SLURM_JOB_GPUS=0,1,2,3,4,5,6,7
wanted 1 "a job with more GPUs" "gpumemtopo:failing:-:7 of 8 GPUs are there, twice:-:-"
[ "$(wc -l <runs)" -eq 2 ] || fail "$(wc -l <runs) surveys, not 2"
expecting() { # expecting CODE SETTING...: of a prolog that measures the node
    wanted=$1
    shift
    settings measure=node "$@"
    prolog
    wanted "$wanted" "$*"
    [ "$wanted" -eq 0 ] || grep -qF "gpumemtopo:failing:-:7 of 8 GPUs are there, twice:-:-" said || fail "$*: $(cat said)"
}
expecting 1 gpus=8
expecting 0 gpus=7
expecting 0 gpus=many
expecting 0 gpus=slurm
[ ! -e scontrol.calls ] || fail "scontrol in a prolog"
settings gpus=slurm
hook health.sh
grep -qF "7 of 8 GPUs" said || fail "gpus=slurm: $(cat said)"
# The last inventory of all nodes is the baseline, and says how many GPUs the node has.
expecting 1 gpus= "baseline=$folder/fleet.yaml"
grep -q -- "--baseline $folder/fleet.yaml" asked || fail "no baseline: $(cat asked)"
expecting 0 "baseline=$folder/fleet.yaml" gpus=7
expecting 0 gpus= "baseline=$folder/fleet.yaml" "flags=(--baseline $folder/other.yaml)"
! grep -q "$folder/fleet.yaml" asked || fail "two baselines: $(cat asked)"
# One that the program refuses is left out.
mv bin/gpumemtopo-survey bin/good
cat >bin/gpumemtopo-survey <<END
#!/bin/sh
case "\$*" in *--baseline*) exit 2 ;; esac
exec $folder/bin/good "\$@"
END
chmod +x bin/gpumemtopo-survey
expecting 1 gpus= "baseline=$folder/fleet.yaml"

# No GPU at all, because there is none or the driver is dead; another failure says nothing about GPUs.
saying() { # saying WORDS WANTED: the program makes no report
    printf '#!/bin/sh\necho "gpumemtopo-survey: %s" >&2\nexit 1\n' "$1" >bin/gpumemtopo-survey
    settings
    prolog
    wanted 1 "$1" "$2"
}
saying 'no GPU to survey: none of 1 ranks sees one' "gpumemtopo:failing:-:0 of 7 GPUs"
saying 'out of memory' "unmeasured: no inventory: gpumemtopo-survey: out of memory"

# drain=yes that cannot drain.
survey_does 7 7 3
report_says failing
printf '#!/bin/sh\necho "slurm_update error: Invalid user id" >&2\nexit 1\n' >bin/scontrol
settings drain=yes
hook health.sh
wanted 1 "scontrol that fails" "COULD NOT DRAIN n1: scontrol: slurm_update error: Invalid user id"
printf '#!/bin/sh\ntrap "" TERM\nwhile :; do sleep 1; done\n' >bin/scontrol
hook health.sh
wanted 1 "scontrol that hangs" "COULD NOT DRAIN n1: scontrol: does not answer"
[ "$(wc -l <said)" -eq 1 ] || fail "scontrol that hangs: $(cat said)"
printf '#!/bin/sh\necho "$SLURM_CONF $*" >%s/scontrol.calls\n' "$folder" >bin/scontrol
settings drain=yes SLURM_CONF=/x/slurm.conf
hook health.sh
wanted 0 "scontrol that drains"
grep -qx '/x/slurm.conf update NodeName=n1 State=DRAIN Reason=gpumemtopo:failing:GPU-1:a cause:-:-' scontrol.calls ||
    fail "drained: $(cat scontrol.calls)"

# A driver that hangs: the survey does not hear SIGTERM; then not even SIGKILL, as in uninterruptible sleep. That is
# imitated by a process of another user: health.sh may not signal it, and cannot wait for its end.
printf '#!/bin/sh\ntrap "" TERM\nwhile :; do sleep 1; done\n' >bin/gpumemtopo-survey
settings limit=2
prolog
wanted 1 "a survey that ignores SIGTERM" "the survey did not end within 2 s"
if [ "$(id -u)" -eq 0 ]; then
    install -m 4755 "$unkillable" bin/gpumemtopo-survey
    settings limit=2 drain=yes "lock=/tmp/gpumemtopo-test-$$.lock"
    begin=$(date +%s)
    cp -r "$root/slurm" slurm
    chmod 1777 "$folder"
    nobody="setpriv --reuid=65534 --regid=65534 --clear-groups env -i SLURMD_NODENAME=n1 SLURM_JOB_GPUS=0
        GPUMEMTOPO_HEALTH_CONF=$folder/health.conf"
    for script in prolog.sh health.sh; do
        code=0
        rm -f scontrol.calls
        # Piped as by slurmd, which reads until all have closed.
        # shellcheck disable=SC2086 # one word per variable
        $nobody "$folder/slurm/$script" 2>&1 >/dev/null | cat >said
        grep -qF "gpumemtopo:failing:-:the driver hangs, the survey cannot be killed:-:-" said || fail "$script: $(cat said)"
    done
    grep -q 'State=DRAIN Reason=gpumemtopo:failing:-:the driver hangs' scontrol.calls || fail "not drained: $(cat said)"
    [ $(($(date +%s) - begin)) -lt 200 ] || fail "waited for a process that cannot be killed"
    chmod 755 "$folder"
    rm -f "/tmp/gpumemtopo-test-$$.lock"
    for process in /proc/[0-9]*; do
        [ "$(readlink "$process/exe" 2>/dev/null)" != "$folder/bin/gpumemtopo-survey" ] || kill -KILL "${process#/proc/}"
    done
fi

# Where anybody may create files, a link in place of the lock makes root empty what it points to, and
# one who holds the lock keeps every check from looking.
lock=$(sed -n "s/^lock=\([^ ]*\) .*/\1/p" "$root/slurm/health.sh")
[ -n "$lock" ] || fail "health.sh has no default lock"
[ -z "$(find "$(dirname "$lock")" -maxdepth 0 -perm /022)" ] || fail "the lock $lock is anybody's"

# A node that was not surveyed is named, however its srun ended.
cat >bin/sinfo <<'END'
#!/bin/sh
printf 'n1 idle gpu:2\nn2 idle gpu:2\nn3 drained gpu:2\nn4 idle (null)\nn5 allocated gpu:2\n'
END
printf '#!/bin/sh\n[ "$3" = all ] || { echo "Partition $3 not found" >&2 && exit 1; }\n' >bin/scontrol
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
printf 'rolling.sh: %s\n' 'n1: never surveyed' 'n1: not surveyed this time' 'n2: never surveyed' 'n3: drained, skipped' \
    'n5: never surveyed' >expected
sort said | diff expected - || fail "rolling.sh: $(cat said)"
code=0
PATH=$folder/bin:$PATH "$root/slurm/rolling.sh" -p none 2>said || code=$?
[ "$code" -eq 2 ] && grep -q 'partition none: Partition none not found' said || fail "unknown partition: $code, $(cat said)"
[ "$(cut -d ' ' -f 4- merged)" = gpumemtopo-rolling ] || fail "nothing yet: $(cat merged)"

[ "$(cat state/fleet.yaml)" = fleet ] || fail "no inventory for health.sh: $(ls -A state)"

# What a killed job spooled counts, and merge has no folder in a folder to warn of.
touch gpumemtopo-rolling/n2.yaml
mkdir gpumemtopo-rolling/n1.yaml.spool gpumemtopo-rolling/n2.yaml.spool.before-x
PATH=$folder/bin:$PATH "$root/slurm/rolling.sh" -p all 2>said || fail "rolling.sh returned $?"
[ "$(cut -d ' ' -f 4- merged)" = "gpumemtopo-rolling/n2.yaml gpumemtopo-rolling/n1.yaml.spool" ] ||
    fail "merged: $(cat merged)"
PATH=$folder/bin:$PATH "$root/slurm/rolling.sh" -p all -- --profile quick --config my.yaml --world=w.yaml 2>said ||
    fail "rolling.sh with flags returned $?"
[ "$(cut -d ' ' -f 4-6 merged)" = "--config my.yaml --world=w.yaml" ] || fail "judged by: $(cat merged)"
