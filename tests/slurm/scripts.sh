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
echo 'scontrol update NodeName=n1 State=DRAIN Reason="gpumemtopo: failing: a cause"'
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
[ "$(cat said)" = "gpumemtopo: failing: a cause" ] || fail "reason: $(cat said)"

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
printf '#!/bin/sh\necho "$*" >merged\n' >bin/gpumemtopo-report
chmod +x bin/*
PATH=$folder/bin:$PATH "$root/slurm/rolling.sh" -p all 2>said || fail "rolling.sh returned $?"
[ "$(cat said)" = "rolling.sh: n1: not surveyed this time" ] || fail "rolling.sh: $(cat said)"
[ "$(cut -d ' ' -f 4- merged)" = gpumemtopo-rolling ] || fail "nothing yet: $(cat merged)"

# What a killed job spooled counts, and merge has no folder in a folder to warn of.
touch gpumemtopo-rolling/n2.yaml
mkdir gpumemtopo-rolling/n1.yaml.spool gpumemtopo-rolling/n2.yaml.spool.before-x
PATH=$folder/bin:$PATH "$root/slurm/rolling.sh" -p all 2>said || fail "rolling.sh returned $?"
[ "$(cut -d ' ' -f 4- merged)" = "gpumemtopo-rolling/n2.yaml gpumemtopo-rolling/n1.yaml.spool" ] ||
    fail "merged: $(cat merged)"
