#!/bin/sh
# gpumemtopo-report as users call it: exit codes, what goes to stdout and what to stderr.
set -u
report=$(realpath "$1")
print_rich=$(realpath "$2")
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1

# expect CODE PATTERN ARGS...: the exit code, and a pattern in stdout (code 0) or stderr; an
# empty pattern wants silence.
expect() {
    wanted=$1 pattern=$2
    shift 2
    "$report" "$@" >out 2>err
    code=$?
    stream=err
    [ "$wanted" = 0 ] && stream=out
    if [ -z "$pattern" ] && [ -s "$stream" ]; then
        echo "gpumemtopo-report $*: expected silence"
        exit 1
    fi
    if [ "$code" != "$wanted" ] || ! { [ -z "$pattern" ] || grep -q -e "$pattern" "$stream"; }; then
        echo "gpumemtopo-report $*: exit $code, expected $wanted and \"$pattern\"; it said:"
        cat out err
        exit 1
    fi
    if [ "$wanted" != 0 ] && [ -s out ]; then
        echo "gpumemtopo-report $*: failed, and yet wrote to stdout"
        exit 1
    fi
}

"$print_rich" >good.yaml || exit 1
sed 's/measured: 2,/measured: 3,/' good.yaml >contradiction.yaml
sed 's/^watch:/wach:/' good.yaml >misspelt.yaml
sed 's/schema: 4,/schema: 9,/' good.yaml >future.yaml
: >empty.yaml
head -c 1000 good.yaml >cut.yaml
printf '\000\001\377' >binary.yaml

expect 0 'Usage: gpumemtopo-report' --help
expect 0 '^gpumemtopo-report [0-9]' --version
expect 0 '^3 GPUs on 2 nodes' show good.yaml
expect 0 '^after: 2026' diff good.yaml good.yaml
expect 2 'two files' diff good.yaml
expect 2 'missing.yaml: cannot open' diff good.yaml missing.yaml
expect 2 'misspelt.yaml:[0-9]*:1: unknown key' diff misspelt.yaml good.yaml
expect 0 'Usage: gpumemtopo-report json' json --help
expect 2 'did you mean --output' json --outpt x good.yaml
expect 2 'needs a value' json good.yaml --output
expect 2 '--model is given twice; it takes ID\[,ID\]' show --compare --model a --model b good.yaml
expect 2 '--output is given twice' json good.yaml -o a -o b
expect 2 'takes no value' json --mt4g=yes good.yaml
expect 0 'schema' json good.yaml -o -
expect 0 'schema' json good.yaml -o-
expect 0 '<!doctype html>' html good.yaml
expect 1 'cannot' html good.yaml -o missing/out.html
printf 'n1 r1 s1 # a comment\n\nn2 r2\n' >racks
expect 0 'Racks and switches' html --racks racks good.yaml
expect 2 'cannot be used with --anonymous' html --racks racks --anonymous good.yaml
expect 2 'none: cannot open' html --racks none good.yaml
printf 'n1 r1\nn2\n' >racks
expect 2 'racks:2:1: expected NODE RACK' html --racks racks good.yaml
printf 'n1 r1\nn1 r2\n' >racks
expect 2 'node n1 is there twice' html --racks racks good.yaml
expect 0 '' validate good.yaml
expect 0 '' validate good.yaml good.yaml
expect 2 'Usage:'
expect 2 'did you mean "show"' shwo
expect 2 'one file' show
expect 2 'one file' show good.yaml good.yaml
expect 2 'at least one file' validate
expect 2 'missing.yaml: cannot open' validate missing.yaml
expect 2 'misspelt.yaml:[0-9]*:1: unknown key "wach"' show misspelt.yaml
expect 2 'contradiction.yaml: survey.measured is 3' validate good.yaml contradiction.yaml good.yaml
expect 2 'future.yaml:1:22: .*newer' validate future.yaml
expect 2 'empty.yaml:1:1: the file is empty' validate empty.yaml
expect 2 'cut.yaml:' validate cut.yaml
expect 2 'undrain: --drained names the list' undrain good.yaml
expect 2 'missing.txt: cannot open' undrain --drained missing.txt good.yaml
echo n1 >drained.txt
expect 2 'drained.txt:1:1: expected NODE|SECONDS|REASON, as SLURM_TIME_FORMAT=%s sinfo' undrain --drained drained.txt good.yaml
: >drained.txt
expect 0 '' undrain --drained drained.txt good.yaml
sed '1s/command: \[.*\], seed/command: [gpumemtopo-report, merge], seed/' good.yaml >fleet.yaml
expect 0 '' undrain --drained drained.txt good.yaml fleet.yaml
grep -q 'fleet.yaml was made by merge' err || { echo "undrain: a merged file is not named: $(cat err)" && exit 1; }

# A policy that makes no sense.
printf 'judge: {false_alarms: 0.01}\npolicy:\n  tell: 3 %%\n  drain: 2 %%\n' >policy.yaml
expect 2 'policy.yaml:4:10: drain from 2 % on is below tell from 3 % on: expected tell <= alert <= drain' merge -c policy.yaml good.yaml
printf 'judge: {false_alarms: 0.01}\npolicy: {degraded: reboot}\n' >policy.yaml
expect 2 'policy.yaml:2:20: expected one of nothing, tell, alert, drain; found "reboot"' merge -c policy.yaml good.yaml

# World files.
cat >world.yaml <<'EOF'
gpumemtopo_world: {schema: 2, version: 0.1.0, first: "2026-11", last: "2026-11"}
models:
  - name: A
    key: a
    populations:
      - {part: p, gpus: 3, programs: [0.1.0], drivers: ["1"], figures: {main.latency: {n: 3, median: 2, scatter: 1, spread: 1, quantiles: [1, 1, 2, 2, 2, 3, 3]}}}
EOF
sed 's/gpus: 3/gpus: -3/' world.yaml >negative.yaml
sed 's/schema: 2/schema: 3/' world.yaml >later.yaml
head -c 250 world.yaml >half.yaml
sed 's/status: ok/status: busy/' good.yaml >used.yaml
cp world.yaml huge.yaml
truncate -s 1G huge.yaml
expect 0 '' validate world.yaml
sed 's/drivers: \["1"\]/drivers: ["2"]/' world.yaml >theirs.yaml
{ echo '# a copy'; cat world.yaml; } >copy.yaml
expect 0 'n: 6, median: 2' share world.yaml theirs.yaml
expect 2 'copy.yaml: has the same figures as world.yaml: its GPUs would count twice' share world.yaml theirs.yaml copy.yaml
expect 2 'world.yaml: has the same figures as world.yaml' merge good.yaml --world world.yaml --world world.yaml
expect 2 'negative.yaml:6:.*gpus' validate negative.yaml
expect 2 'later.yaml:1:.*newer' share later.yaml
expect 2 'half.yaml:[67]:' merge good.yaml --world half.yaml
expect 2 'huge.yaml: larger than' merge good.yaml --world huge.yaml
expect 2 'huge.yaml: larger than' share world.yaml huge.yaml
expect 2 'is an inventory' merge good.yaml --world good.yaml
expect 2 'missing.yaml: cannot open' merge good.yaml --world missing.yaml
expect 2 '--world and --output name the same file' merge good.yaml --world world.yaml -o world.yaml
expect 2 'would replace world.yaml' share world.yaml -o world.yaml
expect 2 'needs a value: WORLD' merge good.yaml --world
expect 1 'nothing to share' share used.yaml
expect 2 'binary.yaml:1:1: not a YAML text file' validate binary.yaml
expect 2 'cannot read' validate .
expect 2 '/dev/zero: is a device' show /dev/zero
sed 's/: \[3051, /: [-3051, /' good.yaml >negative.yaml
sed 's/: \[3051, /: [1e308, /' good.yaml >huge.yaml
expect 2 'main.bandwidth.read is -3051, which is impossible' validate negative.yaml
expect 2 'main.bandwidth.read is 1e+308, which is impossible' validate huge.yaml
sed 's/^    model: .*/    model: other/' good.yaml >foreign.yaml
expect 2 'is of model "other", which the file does not have' validate foreign.yaml
# Results do not become newer when they are merged.
stamp=$(sed -n '1s/.*generated: "\([^"]*\)".*/\1/p' good.yaml)
"$report" merge good.yaml -o merged.yaml >/dev/null 2>&1
if [ -z "$stamp" ] || ! head -n 1 merged.yaml | grep -qF "generated: \"$stamp\""; then
    echo "merge: generated is not $stamp: $(head -n 1 merged.yaml)"
    exit 1
fi
expect 1 'skipped: foreign.yaml: .* is of model "other"' merge foreign.yaml

# merge: files that are given by mistake, or twice.
printf '\211GMR\r\n\032\n' >record.gmr
expect 1 'skipped: record.gmr: is a record: gpumemtopo-survey --replay makes' merge record.gmr
expect 1 'skipped: world.yaml: is a world file: --world judges' merge world.yaml
expect 1 'nothing to merge: no spool file and no inventory was found' merge world.yaml
expect 4 '1 file could not be read: .* so the exit code is 4' merge good.yaml world.yaml -o merged.yaml
cp good.yaml again.yaml
expect 4 ' is in good.yaml and again.yaml: the first is of the same time, comes later by name, and is used' \
    merge good.yaml again.yaml -o merged.yaml
expect 4 ' is in good.yaml and again.yaml: the first is of the same time, comes later by name, and is used' \
    merge again.yaml good.yaml -o merged.yaml

# history: several files, in any order.
sed '1s/2026-11-14T/2020-01-01T/' good.yaml >earlier.yaml
sed '1s/2026-11-14T[^,"]*/yesterday/' good.yaml >timeless.yaml
expect 0 '^before: 2020' diff earlier.yaml good.yaml
[ -s err ] && { echo "diff: a warning about the right order" && exit 1; }
expect 0 '^before: 2026' diff good.yaml earlier.yaml
grep -q 'warning: good.yaml (2026-.*) is newer than earlier.yaml (2020-.*): the older file comes first' err || {
    echo "diff: the wrong order is not told"
    exit 1
}
expect 0 '^1 survey, ' history good.yaml
expect 0 'One survey has no history' history good.yaml
expect 0 '^  1 2020-01-01T' history good.yaml earlier.yaml
expect 0 '"surveys": \[' history --json good.yaml earlier.yaml
expect 0 '^2 surveys, ' history good.yaml earlier.yaml good.yaml
grep -q 'warning: good.yaml and good.yaml are the same survey; it counts once' err || {
    echo "history: the same file twice is not told"
    exit 1
}
expect 2 'at least one file' history
# A bad file is named and left out; the others are reported.
expect_left_out() {
    rm -f history.txt
    expect 2 "$1" history good.yaml "$2" earlier.yaml -o history.txt
    grep -q 'warning: 1 of 3 files left out' err && grep -q '^2 surveys, ' history.txt && return
    echo "history: not without $2"
    cat err history.txt
    exit 1
}
expect_left_out 'timeless.yaml: gpumemtopo.generated is not a time' timeless.yaml
expect_left_out 'cut.yaml:' cut.yaml
expect_left_out 'empty.yaml:1:1: the file is empty' empty.yaml
expect_left_out 'binary.yaml:1:1: not a YAML text file' binary.yaml
expect 2 'cut.yaml:' history --anonymous good.yaml cut.yaml -o history.txt
expect 2 'empty.yaml:1:1: the file is empty' history cut.yaml empty.yaml
expect 2 'missing.yaml: cannot open' history missing.yaml

# rma: the UUID or its beginning; tests/report/daily.py looks into the archive.
uuid=$(sed -n 's/^  - uuid: \(GPU-[^ ]*\)$/\1/p' good.yaml | head -n 1)
expect 0 'Report about one GPU' rma good.yaml "$uuid" -o -
expect 2 'no GPU begins with "nobody"; ' rma good.yaml nobody -o x.tar
expect 2 'a file and a UUID' rma good.yaml
expect 2 'a file and a UUID' rma good.yaml "$uuid" "$uuid"
expect 2 'good.yaml: is not a record' rma good.yaml "$uuid" --record good.yaml -o x.tar
expect 2 'missing.gmr: cannot open' rma good.yaml "$uuid" --record missing.gmr -o x.tar
expect 2 'would replace good.yaml' rma good.yaml "$uuid" -o good.yaml
expect 2 '--record and --output name the same file' rma good.yaml "$uuid" --record cut.yaml -o cut.yaml
expect 1 'cannot' rma good.yaml "$uuid" -o missing/x.tar
if [ -e x.tar ]; then
    echo "rma: an archive, though it failed"
    exit 1
fi

# nagios: the answer is on stdout, and every failure is UNKNOWN.
plugin() { # CODE PATTERN ARGS...
    wanted=$1 pattern=$2
    shift 2
    "$report" nagios "$@" >out 2>err
    code=$?
    if [ "$code" != "$wanted" ] || ! grep -q -e "^GPUMEMTOPO $pattern" out || [ "$(wc -l <out)" != 1 ]; then
        echo "gpumemtopo-report nagios $*: exit $code, expected $wanted and \"$pattern\"; it said:"
        cat out err
        exit 1
    fi
}
plugin 3 'UNKNOWN - nagios takes one file'
plugin 3 'UNKNOWN - missing.yaml: cannot open' missing.yaml
plugin 3 'UNKNOWN - cut.yaml:' cut.yaml
plugin 3 'UNKNOWN - empty.yaml:1:1' empty.yaml
plugin 3 'UNKNOWN - nagios has no flag --max-ago; did you mean --max-age' --max-ago 1 good.yaml
plugin 3 'UNKNOWN - --max-age is a number of hours, not "-1"' --max-age -1 good.yaml
plugin 3 'UNKNOWN - the inventory is too old: ' earlier.yaml
plugin 3 'UNKNOWN - the inventory has no valid time: ' timeless.yaml
plugin 2 'CRITICAL - 1 to drain, 1 not measured, ' --max-age 0 earlier.yaml
"$report" nagios --max-age 0 good.yaml >/dev/full 2>err
if [ $? -ne 3 ]; then
    echo "nagios: a full disk went unnoticed"
    exit 1
fi

# An output never replaces what is read, by whatever name.
ln -s good.yaml link.yaml
cp good.yaml kept.yaml
for what in html json prometheus; do
    expect 2 'would replace good.yaml' $what good.yaml -o good.yaml
    expect 2 'would replace link.yaml' $what link.yaml -o ./good.yaml
done
expect 2 'same file' merge good.yaml -c kept.yaml -o kept.yaml
printf 'judge: {}\nmemery: {region: 1 GiB}\n' >key.yaml
for what in merge share; do
    expect 2 'unknown key "memery"; did you mean "memory"' $what good.yaml -c key.yaml
done
if ! cmp -s good.yaml kept.yaml; then
    echo "an input was replaced"
    exit 1
fi

if "$report" show good.yaml >/dev/full 2>err; then
    echo "a full disk went unnoticed"
    exit 1
fi
exit 0
