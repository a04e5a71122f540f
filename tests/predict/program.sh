#!/bin/sh
# gpumemtopo-predict as users call it: exit codes, messages, formats, what-if. PREDICT SOURCE_ROOT
set -u
predict=$(realpath "$1")
h200=$2/reports/h200.yaml
demo=$2/reports/demo.yaml
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1

# expect CODE PATTERN ARGS...: the exit code, and a pattern in stdout (code 0) or stderr.
expect() {
    wanted=$1 pattern=$2
    shift 2
    "$predict" "$@" >out 2>err
    code=$?
    stream=err
    [ "$wanted" = 0 ] && stream=out
    if [ "$code" != "$wanted" ] || { [ "$pattern" ] && ! grep -q -e "$pattern" "$stream"; }; then
        echo "gpumemtopo-predict $*: exit $code, expected $wanted and \"$pattern\"; it said:"
        cat out err
        exit 1
    fi
    if [ "$wanted" != 0 ] && [ "$wanted" != 4 ] && [ -s out ]; then
        echo "gpumemtopo-predict $*: failed, and yet wrote to stdout"
        exit 1
    fi
}

expect 0 'Usage: gpumemtopo-predict' --help
expect 0 '^gpumemtopo-predict [0-9]' --version
expect 0 '^gemm_tiled ' --list-kernels
expect 2 'name a kernel or a trace'
expect 2 'inventory FILE is missing' atax1
expect 2 '"ataxx" is neither a kernel nor a file; did you mean atax1' ataxx -i "$h200"
expect 2 'no flag --whatif; did you mean --what-if' atax1 --whatif x=1 -i "$h200"
expect 2 'nothing.yaml' atax1 -i nothing.yaml
expect 2 'has no model nvidia-h201; its models: nvidia-h200' atax1 -i "$h200" -m nvidia-h201
expect 2 'given twice' atax1 -i "$h200" -o a -o b
expect 2 'same file' atax1 -i "$h200" -o "$h200"
expect 2 '--format is table, yaml, json or html, not "xml"' atax1 -i "$h200" --format xml
expect 2 '--mapping is free, rr, part1, part2 or random' atax1 -i "$h200" --mapping part3
expect 2 '--size is a whole number' atax1 -i "$h200" --size -1
expect 2 '--block is a shape' atax1 -i "$h200" --block 32y8
expect 2 'power of two or a multiple of 32' atax1 -i "$h200" --block 24
expect 2 'at most 1024 threads' atax1 -i "$h200" --block 64x32
expect 2 'size is a multiple of 16, not 100; the next one is 112' nw1 -i "$h200" --size 100
expect 2 '2dconv: with size 2 it accesses nothing; give a larger one' 2dconv -i "$h200" --size 2
expect 0 '^2dconv ' 2dconv -i "$h200" --size 3
expect 2 '--size is a whole number from 2 to' nw1 -i "$h200" --size 1
expect 2 'its block of 32x32 threads is its tile in shared memory' gemm_tiled -i "$h200" --block 16x16
expect 2 'names .* twice' mvt2 -i "$h200" -i "$h200"
expect 2 'nowhere' mvt2 -i "$h200" -o nowhere/page.html
expect 4 '2 of 68 predictions could not be made' all -i "$demo" --size 32
grep -q 'not predicted: attention: size is a multiple of 64, not 32; the next one is 64' out || { cat out; exit 1; }
[ "$(grep -c '^[a-z0-9_]* *demo-' out)" = 68 ] || { echo "33 kernels by 2 models, 2 lines of what was assumed:"; cat out; exit 1; }
mkdir a b && cp "$h200" a/same.yaml && cp "$h200" b/same.yaml
expect 0 '^mvt2 *nvidia-h200 *a/same.yaml ' mvt2 --size 64 -i a/same.yaml -i b/same.yaml
expect 2 '--latency needs --mshrs' atax1 -i "$h200" --latency 4

# Hits by size are those of the engine; where they would not be, there are none.
for writes in won rwon off; do
    expect 2 '--reuse is for --writes through' mvt2 -i "$h200" --reuse --writes $writes
    expect 0 'mvt2' mvt2 -i "$h200" --size 64 --writes $writes --format html
    ! grep -q 'L1 hits by size' out || { echo "--writes $writes, and yet a curve"; exit 1; }
done
expect 0 'L1 hits by size' mvt2 -i "$h200" --size 64 --format html
cat >curves.py <<'END'
import json, sys
held = 0
for row in json.load(open("out"))["predictions"]:
    curve = {point["bytes"]: point["hits"] for point in row["l1_curve"]}
    size, hits = row["l1"]["size_bytes"], row["l1"]["read_hits"]
    if row["what_if"] and size in curve:
        assert abs(curve[size] - hits) < 1e-5, (row["kernel"], row["model"], row["what_if"], curve[size], hits)
        held += 1
assert held > int(sys.argv[1]), held
END
sizes=l1_data.ways=0+l1_data.policy=lru+l1_data.size
expect 0 predictions 2mm gramschm covar syrk gesummv --size 64 -i "$demo" -i "$h200" --reuse --format json --what-if $sizes=2K,4K,16K,64K
python3 curves.py 20 || exit 1
expect 0 predictions embedding --size 64 -i "$h200" --reuse --format json --what-if $sizes=4K,64K # ten times as many accesses
python3 curves.py 0 || exit 1

# A value may stand directly behind a letter, as in other programs.
expect 0 '^mvt2 *nvidia-h200' mvt2 --size 64 -i"$h200" -mnvidia-h200 -j2 -ftable
expect 0 '"kernel": "mvt2"' mvt2 --size 64 -i "$h200" -fjson
expect 2 '--format is .* not "=json"' mvt2 --size 64 -i "$h200" -f=json
expect 2 '--help takes no value' -hx
expect 2 'no flag -x' -x

# What makes no sense is refused: which figure, why, and what to give instead.
no_sense() {
    pattern=$1
    shift
    expect 2 "$pattern" mvt2 --size 64 -i "$h200" "$@"
}
no_sense 'unknown key l1_data.sise; did you mean l1_data.size' --what-if l1_data.sise=1
no_sense 'unknown key l3.colour; the man page lists them' --what-if l1_data.size=64K+l3.colour=1
no_sense 'takes KEY=VALUE.* not "l1_data.size"' --what-if l1_data.size
no_sense 'takes KEY=VALUE' --what-if =64K
no_sense 'takes KEY=VALUE' --what-if l1_data.size=64K+
no_sense 'l1_data.size: a value is missing' --what-if l1_data.size=
no_sense 'l1_data.size: a value is missing' --what-if l1_data.size=1K,,
no_sense 'too long for a value' --what-if l1_data.size=11111111111111111111111111111111111111111
no_sense 'l1_data.size is there twice' --what-if l1_data.size=64K+l1_data.size=32K
no_sense 'more than 64 combinations' --what-if sms=1,2,3,4,5,6,7,8,9+blocks_per_sm=1,2,3,4,5,6,7,8
no_sense 'expected a number such as 64 or 128K, not "big"' --what-if l1_data.size=big
no_sense 'expected a number such as 64 or 128K, not "-64K"' --what-if l1_data.size=-64K
no_sense 'expected a number in GB/s or ns' --what-if main.latency=fast
no_sense 'main.latency is a number above 0' --what-if main.latency=-1
no_sense 'l1_data.size is a number above 0' --what-if l1_data.size=0
no_sense 'sms is a number above 0 and at most 4096, not 5000' --what-if sms=5000
no_sense 'what-if l1_data.line=100: model nvidia-h200: l1_data.line is a power of two, not 100; the nearest are 64 and 128' --what-if l1_data.line=100
no_sense 'l1_data.size is not a multiple of l1_data.line (128 B); the nearest ones are 99968 and 100096' --what-if l1_data.size=100000
no_sense 'l1_data.line (128 B) is larger than l1_data.size (64 B)' --what-if l1_data.size=64
no_sense 'l2.fetch (256 B) is larger than l2.line (128 B)' --what-if l2.fetch=256
no_sense 'more than 16 sectors of 32 B' --what-if l1_data.line=1K
no_sense '5 ways do not divide the 512 lines of l1_data.size; give both, such as l1_data.ways=5+l1_data.size=65280' --what-if l1_data.ways=5+l1_data.size=64K
no_sense 'l2.ways: 16 ways need as many lines, but l2.size (1024 B) has only 8' --what-if l2.size=1K
no_sense 'a tree has 1 to 31 ways, not 32' --what-if l2.policy=tree+l2.ways=32+l2.size=32M
no_sense 'a fully associative cache has one set' --what-if l1_data.sets=512
no_sense 'have tags for 2048 B, less than l1_data.size' --what-if l1_data.sets=4+l1_data.ways=4
no_sense 'are modelled for up to 32 ways, not 56' --what-if l1_data.sets=64+l1_data.ways=56
no_sense 'threads_per_sm is a multiple of 32' --what-if threads_per_sm=100
no_sense 'l1_data.policy is one of lru, fifo, .*not "best"' --what-if l1_data.policy=best
no_sense 'l2.index is one of modulo, hashed, xor, prime, smod (or smod2 to smod16: .*), not "any"' --what-if l2.index=any
no_sense 'carveout (307200 B) is more than the 233472 B .* give at most 233472' --what-if l1_data.carveout=300K
no_sense 'carveout already decides l1_data.size' --what-if l1_data.carveout=8K+l1_data.size=64K
expect 2 'L1 and shared memory do not share storage' mvt2 --size 64 -i "$demo" -m demo-t20 --what-if l1_data.carveout=8K
expect 2 'a block of gemm_tiled .* does not fit an SM, which has room for 2048 threads and 4096 B' gemm_tiled --size 64 -i "$h200" --what-if l1_data.carveout=4K

# Several figures at once, all combinations; a carve-out divides the storage of L1 and shared memory.
expect 0 '(l1_data.size=32K+l1_data.ways=4+l2.size=1M)' mvt2 --size 64 -i "$h200" \
    --what-if l1_data.size=32K,64K+l1_data.ways=4,8+l2.size=1M
[ "$(grep -c '^mvt2' out)" = 5 ] || { echo "one row and one per combination:"; cat out; exit 1; }
expect 0 predictions mvt2 --size 64 -i "$h200" --format json --what-if l1_data.carveout=0,64K,228K
python3 - <<'END' || exit 1
import json
sizes = [row["l1"]["size_bytes"] for row in json.load(open("out"))["predictions"]]
storage = sizes[0] + 32768  # the carve-out at which L1 was measured
assert sizes[1:] == [(storage - carveout) // 128 * 128 for carveout in (0, 64 << 10, 228 << 10)], sizes
END

# What one model cannot have does not stop the others; the report says so, and exit code 4.
expect 4 'warning: 1 of 4 predictions could not be made' mvt2 --size 64 -i "$demo" --what-if l1_data.carveout=16K
grep -q '^not predicted: --what-if l1_data.carveout=16K: model demo-t20: .*do not share storage' out &&
    grep -q '^mvt2 *demo-h8 .*(l1_data.carveout=16K)$' out || { cat out; exit 1; }
sed 's/^        size: {value: 24576, .*/        size: {value: null, status: failed, reason: too noisy}/' "$demo" >sizeless.yaml
expect 4 '1 of 2 predictions' mvt2 --size 64 -i sizeless.yaml
grep -q 'not predicted: sizeless.yaml: model demo-t20: l1_data.size was not measured (too noisy); --what-if l1_data.size=... gives one' out &&
    grep -q '^mvt2 *demo-h8 ' out || { cat out; exit 1; }
expect 2 'model demo-t20: l1_data.size was not measured' mvt2 --size 64 -i sizeless.yaml -m demo-t20
expect 4 '' mvt2 --size 64 -i sizeless.yaml -m demo-t20 --what-if l1_data.size=24K --quiet --format json
[ ! -s err ] || { echo "--quiet, and yet:"; cat err; exit 1; }
python3 - <<'END' || exit 1
import json
data = json.load(open("out"))
assert [row["what_if"] for row in data["predictions"]] == ["l1_data.size=24K"], data
assert [(row["model"], row["what_if"]) for row in data["not_predicted"]] == [("demo-t20", None)], data
END

# Several inventories; one without GPUs, one that is broken.
expect 0 '^mvt2 *nvidia-h200 *h200.yaml ' mvt2 --size 64 -i "$demo" -i "$h200"
grep -q '^mvt2 *demo-h8 *demo.yaml ' out || { cat out; exit 1; }
expect 2 'and the other inventories has no model nvidia-h201; its models: demo-h8, demo-t20, nvidia-h200' mvt2 -i "$demo" -i "$h200" -m nvidia-h201
awk '/^[a-z]/ {inside = 0} /^(models|gpus|nodes|outliers|watch|unmeasured):/ {print $1, "[]"; inside = 1} !inside' "$demo" >empty.yaml
expect 2 'empty.yaml has no model: no GPU was measured' mvt2 -i empty.yaml
expect 0 '^mvt2 *nvidia-h200 ' mvt2 --size 64 -i empty.yaml -i "$h200"
printf 'gpumemtopo: {schema: 1\n' >broken.yaml
expect 2 'broken.yaml:[0-9]*:[0-9]*: ' mvt2 -i "$demo" -i broken.yaml

# A figure that was not measured is named, and can be given.
sed 's/^        line: {value: 128, unit: B, .*span of.*/        line: {value: null, status: failed, reason: too few levels}/' "$h200" >lineless.yaml
expect 2 'lineless.yaml: model nvidia-h200: l1_data.line was not measured (too few levels)' atax1 --size 64 -i lineless.yaml
expect 4 predictions atax1 --size 64 -i lineless.yaml --what-if l1_data.line=128

# A quick survey lacks several figures: they are named once, with the profile that measures them.
awk '/^      l1_data:/ {l1 = 1} /^      [a-z0-9_]*:/ && !/l1_data/ {l1 = 0} !(l1 && /^        (line|fetch):/)' "$h200" >quick.yaml
expect 2 'quick.yaml: model nvidia-h200: the inventory lacks l1_data.line, l1_data.fetch; a survey with --profile standard measures them, and --what-if l1_data.line=...+l1_data.fetch=... gives them' mvt2 --size 64 -i quick.yaml
expect 4 predictions mvt2 --size 64 -i quick.yaml --what-if l1_data.line=128+l1_data.fetch=32

# A line that is no power of two is refused before anything runs.
sed '/^      l1_data:/,/^      texture:/s/^        line: {value: 128,/        line: {value: 96,/' "$h200" >odd.yaml
expect 2 'l1_data.line is 96 B, and only powers of two are modelled; --what-if l1_data.line=64 or 128' all -i odd.yaml

# A GPU that does not cache global loads in L1 has an L2 only: no figure of L1 is shown, not even 0.
python3 - "$h200" <<'END' || exit 1
import re, sys
text = open(sys.argv[1]).read()
reason = "{value: null, status: unsupported, reason: this GPU has no such cache}"
begin = text.index("\n      l1_data:\n")
end = re.compile(r"\n      \w+:\n").search(text, begin + 10).start()
rows = "".join(f"\n        {key}: {reason}" for key in ("size", "line", "fetch", "latency"))
open("no_l1.yaml", "w").write(text[:begin] + "\n      l1_data:\n        global_loads: [not_cached]" + rows + text[end:])
END
expect 0 '^mvt2 *nvidia-h200  *-  *[0-9.]*  *[0-9.]*  *- ' mvt2 --size 64 -i no_l1.yaml --mshrs 8 --writes won
grep -q '^nvidia-h200: global loads are not cached in L1' out || { cat out; exit 1; }
! grep -q 'assumed.*l1_data' out || { cat out; exit 1; }
expect 0 'global loads are not cached in L1' mvt2 --size 64 -i no_l1.yaml --format html
! grep -q 'L1 hits by size' out && grep -q 'L2 hits by size' out || { echo "a curve of an L1 that is not there"; exit 1; }
expect 0 'l1: {read_hits: null, reads: null,' 2mm mvt2 --size 64 -i no_l1.yaml --format yaml
expect 0 predictions 2mm mvt2 --size 64 -i no_l1.yaml --format json --reuse
python3 - <<'END' || exit 1
import json
rows = json.load(open("out"))["predictions"]
for row in rows:
    assert set(row["l1"].values()) == {None} and "l1_curve" not in row, row
    assert row["l2"] == row["l2_without_l1"] and row["l2"]["reads"] > 0, row
    assert row["bound"]["l1_bandwidth"] is None and row["bound"]["latency"] > 0, row
END
expect 2 'l1_data.ways: global loads are not cached in L1 on this model; l1_data.size=' mvt2 --size 64 -i no_l1.yaml --what-if l1_data.ways=4
expect 2 'the inventory lacks l1_data.line, l1_data.fetch; --what-if' mvt2 --size 64 -i no_l1.yaml --what-if l1_data.size=16K
expect 0 'l1_data.fetch=32)$' mvt2 --size 64 -i no_l1.yaml --what-if l1_data.size=16K+l1_data.line=128+l1_data.fetch=32

# Ways, index and policy are the measured ones, where the survey has them.
sed '/^      l1_data:/,/^      texture:/s/^        reach:.*/        ways: {value: 4, unit: "", spread: 0, confidence: 1, n: 1, method: x}\
        sets: {value: 512, unit: "", spread: 0, confidence: 1, n: 1, method: x}\
        index: [bits_7_to_15]\
        policy: [fifo]/' "$h200" >structured.yaml
expect 0 'assumed: l2.ways 16, l2.policy lru, l2.index hashed$' mvt2 --size 64 -i structured.yaml

# What the inventory lacks and the model assumes is told.
expect 0 'nvidia-h200: not in the inventory, assumed: .*l1_data.ways' mvt2 --size 64 -i "$h200"
expect 0 '^mvt2 .*demo-h8' mvt2 --size 64 -i "$demo"
no_sense 'l2.index is one of .*not "smod17"' --what-if l2.index=smod17
expect 0 "l1_data.index=smod3" atax1 --size 64 -i "$h200" --what-if l1_data.index=smod3+l1_data.ways=4
expect 0 "l1_data.index=smod" atax1 --size 64 -i "$h200" --what-if l1_data.index=smod
expect 0 'l1_data.size=64K' atax1 --size 64 -i "$h200" --what-if l1_data.size=64K,128K
[ "$(grep -c '^atax1 ' out)" = 3 ] || { echo "one row and one per value:"; cat out; exit 1; }

# The number of jobs changes nothing.
jobs_of() { "$predict" 2mm atax1 mvt2 --size 64 -i "$h200" --what-if l1_data.size=64K --format yaml --jobs "$1" >"jobs$1" || exit 1; }
jobs_of 1
jobs_of 2
jobs_of 100
cmp jobs1 jobs2 && cmp jobs1 jobs100 || exit 1
expect 2 '\-\-jobs is a whole number from 1 to' atax1 -i "$h200" --jobs 0

# L2 with partitions, banks and miss registers.
expect 2 '\-\-l2-banks needs miss registers of L2' mvt2 -i "$h200" --mshrs 32 --l2-banks 4x2
expect 2 '\-\-l2-banks is partitions x banks .* not "4"' mvt2 -i "$h200" --mshrs 32,32 --l2-banks 4
expect 2 '\-\-mshrs is a number from 1 to' mvt2 -i "$h200" --mshrs 32,
expect 2 '\-\-mshrs is a number from 1 to' mvt2 -i "$h200" --mshrs 0,32
expect 0 'l2_parallel: {steps: [1-9]' 2mm --size 64 -i "$h200" --mshrs 32,32 --l2-banks 8x4 --format yaml
expect 0 'l2_parallel: {steps: [1-9]' 2mm --size 64 -i no_l1.yaml --mshrs 32,1 --format yaml

# Formats agree and can be read.
for format in yaml json; do
    expect 0 predictions 2mm atax1 --size 64 -i "$h200" --what-if l1_data.policy=fifo --reuse --mshrs 32,32 --format $format
    cp out "out.$format"
done
expect 0 'kernel: "mvt2"' mvt2 --size 64 -i "$demo" --format yaml --scheduler gto --writes won --mapping rr
"$predict" mvt2 --size 64 -i "$h200" --format json -o file.json || exit 1
python3 - <<'END' || exit 1
import json
data = json.load(open("out.json"))
json.load(open("file.json"))
try:
    import yaml
    assert yaml.safe_load(open("out.yaml")) == data, "YAML and JSON differ"
except ImportError:
    pass
rows = data["predictions"]
assert [(r["kernel"], r["what_if"]) for r in rows] == [
    ("2mm", None), ("2mm", "l1_data.policy=fifo"), ("atax1", None), ("atax1", "l1_data.policy=fifo")], rows
for row in rows:
    assert 0 <= row["l1"]["read_hits"] <= 1 and 0 <= row["l2"]["hits"] <= 1
    assert row["l2"]["reads"] <= row["l1"]["reads"] >= row["l2_without_l1"]["reads"]  # requests merge
    assert row["bound"]["seconds"] == row["bound"][row["bound"]["limit"]] > 0
    curve = [point["hits"] for point in row["l1_curve"]]
    assert curve == sorted(curve) and len(curve) > 1
END

# Traces: the prediction of a trace is that of its kernel; what is no trace is refused.
for kernel in 2mm hotspot spmv embedding; do
    expect 0 accesses trace make $kernel $kernel.trace --size 256
    expect 0 '^accesses: [1-9]' trace check $kernel.trace
    for mapping in free part2; do
        expect 0 "^$kernel " $kernel --size 256 -i "$h200" --mapping $mapping
        cp out of_kernel
        expect 0 "^$kernel " $kernel.trace -i "$h200" --mapping $mapping
        cmp of_kernel out || exit 1
    done
done
expect 0 '^spmv ' spmv --size 256 -i "$demo" --what-if l1_data.size=64K,128K
cp out of_kernel
expect 0 '^spmv ' spmv.trace -i "$demo" --what-if l1_data.size=64K,128K --jobs 4 # threads share the file
cmp of_kernel out || exit 1
expect 0 'size: null' 2mm.trace -i "$h200" --format yaml
expect 0 '^name: "2mm"' trace info 2mm.trace
expect 0 'COMMAND' trace --help
expect 2 'no command "inform"; did you mean info' trace inform 2mm.trace
expect 2 'trace info takes FILE' trace info
expect 2 'trace info takes FILE' trace info 2mm.trace 2mm.trace
expect 2 'no flag --bad' trace info --bad 2mm.trace
expect 2 'trace info has no flag --size' trace info --size 4 2mm.trace
expect 2 'did you mean 2mm' trace make 2mn x.trace
expect 2 '--block is a shape' trace make 2mm x.trace --block 8y
expect 2 '--size is a whole number' trace make 2mm x.trace --size big
expect 2 'is neither a kernel nor a file' nothing.trace -i "$h200"
expect 2 'nothing.trace: cannot open' ./nothing.trace -i "$h200"
expect 2 '2mm.trace is a trace: --size is for kernels only' 2mm.trace -i "$h200" --size 64
expect 2 '2mm.trace is a trace: --block is for kernels only' 2mm.trace -i "$h200" --block 64
expect 2 'h200.yaml: byte 0: expected a trace' "$h200" -i "$h200"
expect 2 '/: expected a file' / -i "$h200"
head -c 8192 2mm.trace >cut.trace
expect 2 'cut.trace: the file is cut off or damaged: byte 4096: expected a page of kind totals' cut.trace -i "$h200"
head -c 10000 2mm.trace >cut.trace
expect 2 'cut.trace: byte 8192: expected 4096 bytes of a page, the file ends after 1808' trace info cut.trace

# Damage that only reading the accesses finds: nothing of the first blocks can be run.
cp spmv.trace damaged.trace
printf '\125' | dd of=damaged.trace bs=1 seek=5000 conv=notrunc 2>dd.log || { cat dd.log; exit 1; }
expect 0 '^name: "spmv"' trace info damaged.trace
expect 2 'damaged.trace: byte 4096: expected a page with the sum .*it is damaged' trace check damaged.trace
expect 2 'damaged.trace: byte 4096: expected a page with the sum .*it is damaged' damaged.trace -i "$h200"

# No output replaces what it must not: a trace that is read, a pipe, a device. A kernel's name is no file.
cp 2mm.trace kept.trace
expect 2 'kept.trace is a trace and --output the same file' kept.trace -i "$h200" -o ./kept.trace
cmp 2mm.trace kept.trace || exit 1
mkfifo pipe && ln -s pipe link
for out in pipe link . - ; do
    expect 2 'is not a file; a trace cannot be written to a pipe' trace make 2mm $out --size 64
done
[ -p pipe ] && [ -h link ] && [ ! -e ./- ] || { echo "the pipe was replaced:"; ls -l; exit 1; }
expect 2 'folder nowhere' trace make 2mm nowhere/x.trace --size 64
expect 0 'accesses' trace make 2mm 2mm --size 64
expect 0 'accesses' trace make 2mm 2mm --size 64
"$predict" mvt2 --size 64 -i "$h200" -o mvt2 && "$predict" mvt2 --size 64 -i "$h200" -o mvt2 || exit 1

# From text: mem_trace's lines, with warps interleaved and numbered as on an SM, and CSV tell the same.
python3 - <<'END' || exit 1
import random
random.seed(1)
n, threads, base = 16384, 256, 0x7F1200000000
warps = {}
for block in range(n // threads):
    for warp in range(threads // 32):
        first = block * threads + warp * 32
        warps[block, warp] = [(op, pc, [base + array * 4 * n + 4 * (first + lane) for lane in range(32)])
                              for op, pc, array in (("LDG.E", 16, 0), ("LDG.E", 48, 1), ("STG.E", 80, 2))]
order = [key for key in warps for _ in warps[key]]
random.shuffle(order)
place = dict.fromkeys(warps, 0)
with open("add.txt", "w") as text, open("add.csv", "w") as csv:
    text.write("------ NVBit ------\nMEMTRACE: CTX 0x01 - LAUNCH - Kernel pc 0x02 - Kernel name add(float*) - grid launch id 0 - "
               f"grid size {n // threads},1,1 - block size {threads},1,1 - nregs 12 - shmem 0 - cuda stream id 0\n")
    csv.write(f"# name: add(float*)\n# grid: {n // threads}\n# block: {threads}\n# registers: 12\n")
    csv.write("block,warp,pc,op,bytes,mask,addresses\n")
    for block, warp in order:
        op, pc, addresses = warps[block, warp][place[block, warp]]
        place[block, warp] += 1
        text.write(f"MEMTRACE: CTX 0x01 - grid_launch_id 0 - CTA {block},0,0 - warp {warp + 8 * (block % 8)} - {op} - "
                   + "".join(f"0x{a:016x} " for a in addresses) + "\n")
        csv.write(f"{block},{warp},{pc},{'load' if op[0] == 'L' else 'store'},4,0xffffffff,{' '.join(map(hex, addresses))}\n")
END
expect 0 'nvbit.trace: 1536 accesses of add(float\*)' trace convert add.txt nvbit.trace
expect 0 'csv.trace: 1536 accesses of add(float\*)' trace convert --from csv add.csv csv.trace
"$predict" trace convert --from=csv - piped.trace <add.csv >out && cmp csv.trace piped.trace || exit 1
expect 0 'pc: opcode' trace check nvbit.trace
expect 0 'pc: address' trace check csv.trace
for mapping in free random; do
    for trace in nvbit csv; do
        expect 0 '^add(float\*)' $trace.trace -i "$h200" --mapping $mapping
        cp out out.$trace
        # Two loads and a store of 64 KiB each, in sectors of 32 bytes.
        expect 0 'l1: {read_hits: 0, reads: 4096, writes: 2048,' $trace.trace -i "$h200" --mapping $mapping --format yaml
    done
    cmp out.nvbit out.csv || exit 1
done
# A leading zero makes no octal number; a file from Windows has carriage returns and a mark before the first line.
sed 's/^\([0-9]\)/00\1/' add.csv >zeros.csv
sed -e '1s/^/\xef\xbb\xbf/' -e 's/$/\r/' add.csv >windows.csv
for text in zeros windows; do
    expect 0 '1536 accesses of add(float\*)' trace convert --from csv $text.csv $text.trace
    cmp csv.trace $text.trace || exit 1
done
expect 2 '--from is nvbit or csv, not "xml"' trace convert --from xml add.csv x.trace
expect 2 '--launch is a whole number' trace convert --launch first add.txt x.trace
expect 2 'it has 1 launches' trace convert --launch 1 add.txt x.trace
expect 2 'add.csv: expected the lines of NVBit' trace convert add.csv x.trace
expect 2 'add.txt:1:1: expected the columns' trace convert --from csv add.txt x.trace
expect 2 'the two files are the same' trace convert add.txt ./add.txt
[ ! -e x.trace ] || { echo "a failed conversion left a file"; exit 1; }

# A signal leaves nothing behind, and ends the program as signals do.
python3 - "$predict" <<'END' || exit 1
import os, signal, subprocess, sys, time
def is_filled(file):
    try:
        return file.stat().st_size > 0
    except FileNotFoundError:  # that was to see whether a file can be written there
        return False
for number in signal.SIGTERM, signal.SIGINT:
    before = set(os.listdir("."))
    running = subprocess.Popen([sys.argv[1], "trace", "make", "syrk", "caught.trace", "--size", "8192"])
    while not any(file.name.startswith("caught.trace.tmp") and is_filled(file) for file in os.scandir(".")):
        assert running.poll() is None, "it ended before it wrote anything"
        time.sleep(0.01)
    running.send_signal(number)
    assert running.wait() == -number, running.returncode
    assert set(os.listdir(".")) == before, set(os.listdir(".")) - before
END

# Progress is for terminals only, and gone at the end.
python3 - "$predict" "$h200" <<'END' || exit 1
import os, pty, subprocess, sys
for quiet in False, True:
    terminal, inner = pty.openpty()
    command = [sys.argv[1], "2mm", "--size", "128", "-i", sys.argv[2], *(["--quiet"] if quiet else [])]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=inner)
    os.close(inner)
    shown = ""
    try:
        while True:  # a terminal gives its text in pieces
            shown += os.read(terminal, 65536).decode()
    except OSError:  # nothing is left
        pass
    assert done.returncode == 0, done
    assert shown == "" if quiet else shown.startswith("\r1 of 1: 2mm, ") and shown.endswith("\r\x1b[K"), repr(shown)
END
