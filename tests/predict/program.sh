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
    if [ "$code" != "$wanted" ] || ! grep -q -e "$pattern" "$stream"; then
        echo "gpumemtopo-predict $*: exit $code, expected $wanted and \"$pattern\"; it said:"
        cat out err
        exit 1
    fi
    if [ "$wanted" != 0 ] && [ -s out ]; then
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
expect 2 'has no model nvidia-h201; did you mean nvidia-h200' atax1 -i "$h200" -m nvidia-h201
expect 2 'given twice' atax1 -i "$h200" -i "$h200"
expect 2 'same file' atax1 -i "$h200" -o "$h200"
expect 2 '--format is one of table, yaml, json, not "xml"' atax1 -i "$h200" --format xml
expect 2 '--mapping is one of' atax1 -i "$h200" --mapping part3
expect 2 '--size is a number' atax1 -i "$h200" --size -1
expect 2 '--block is a shape' atax1 -i "$h200" --block 32y8
expect 2 'power of two or a multiple of 32' atax1 -i "$h200" --block 24
expect 2 'at most 1024 threads' atax1 -i "$h200" --block 64x32
expect 2 'size is a multiple of 16' nw1 -i "$h200" --size 100
expect 2 '--latency needs --mshrs' atax1 -i "$h200" --latency 4
expect 2 'unknown key l1_data.sise; did you mean l1_data.size' atax1 -i "$h200" --what-if l1_data.sise=1
expect 2 'KEY=VALUE' atax1 -i "$h200" --what-if l1_data.size
expect 2 'a value is missing' atax1 -i "$h200" --what-if l1_data.size=1K,,
expect 2 'expected a number' mvt2 --size 64 -i "$h200" --what-if l1_data.size=big
expect 2 'h200.yaml: model nvidia-h200: l1_data.line is a power of two' mvt2 --size 64 -i "$h200" --what-if l1_data.line=100
expect 2 'h200.yaml: model nvidia-h200: l1_data: fetch <= line <= size' mvt2 --size 64 -i "$h200" --what-if l1_data.size=64
expect 2 'l2.ways: it has only' mvt2 --size 64 -i "$h200" --what-if l2.size=1K
expect 2 'l1_data.size is a number above 0' mvt2 --size 64 -i "$h200" --what-if l1_data.size=0
expect 2 'no such word' mvt2 --size 64 -i "$h200" --what-if l1_data.policy=best

# A figure that was not measured is named, and can be given.
sed 's/^        line: {value: 128, unit: B, .*span of.*/        line: {value: null, status: failed, reason: too few levels}/' "$h200" >lineless.yaml
expect 2 'lineless.yaml: model nvidia-h200: l1_data.line was not measured (too few levels)' atax1 --size 64 -i lineless.yaml

# Ways, index and policy are the measured ones, where the survey has them.
sed '/^      l1_data:/,/^      texture:/s/^        reach:.*/        ways: {value: 4, unit: "", spread: 0, confidence: 1, n: 1, method: x}\
        sets: {value: 512, unit: "", spread: 0, confidence: 1, n: 1, method: x}\
        index: [bits_7_to_15]\
        policy: [fifo]/' "$h200" >structured.yaml
expect 0 'assumed: l2.ways 16, l2.policy lru, l2.index hashed$' mvt2 --size 64 -i structured.yaml

# What the inventory lacks and the model assumes is told.
expect 0 'nvidia-h200: not in the inventory, assumed: .*l1_data.ways' mvt2 --size 64 -i "$h200"
expect 0 '^mvt2 .*demo-h8' mvt2 --size 64 -i "$demo"
expect 0 'l1_data.size=64K' atax1 --size 64 -i "$h200" --what-if l1_data.size=64K,128K
[ "$(grep -c '^atax1' out)" = 3 ] || { echo "one row and one per value:"; cat out; exit 1; }

# Formats agree and can be read.
for format in yaml json; do
    expect 0 predictions 2mm atax1 --size 64 -i "$h200" --what-if l1_data.policy=fifo --reuse --mshrs 32 --format $format
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
    assert row["l2"]["reads"] <= row["l1"]["reads"] == row["l2_without_l1"]["reads"]
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
expect 0 'size: null' 2mm.trace -i "$h200" --format yaml
expect 0 '^name: "2mm"' trace info 2mm.trace
expect 0 'COMMAND' trace --help
expect 2 'no command "inform"; did you mean info' trace inform 2mm.trace
expect 2 'trace info takes FILE' trace info
expect 2 'trace info takes FILE' trace info 2mm.trace 2mm.trace
expect 2 'no flag --bad' trace info --bad 2mm.trace
expect 2 '--size is for trace make' trace info --size 4 2mm.trace
expect 2 'did you mean 2mm' trace make 2mn x.trace
expect 2 '--block is a shape' trace make 2mm x.trace --block 8y
expect 2 '--size is a number' trace make 2mm x.trace --size big
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
expect 2 '--from is one of nvbit, csv, not "xml"' trace convert --from xml add.csv x.trace
expect 2 '--launch is a number' trace convert --launch first add.txt x.trace
expect 2 'it has 1 launches' trace convert --launch 1 add.txt x.trace
expect 2 'add.csv: expected the lines of NVBit' trace convert add.csv x.trace
expect 2 'add.txt:1:1: expected the columns' trace convert --from csv add.txt x.trace
expect 2 'the two files are the same' trace convert add.txt ./add.txt
[ ! -e x.trace ] || { echo "a failed conversion left a file"; exit 1; }
