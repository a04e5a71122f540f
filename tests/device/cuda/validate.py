#!/usr/bin/env python3
"""tools/gpu-validate on canned output of ncu: validate.py ROOT PROGRAM MODEL.

PROGRAM is validate_kernels; on a simulated GPU of the file MODEL it must claim something of every
counter that the tool knows.
"""
import importlib.machinery
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT, PROGRAM, MODEL = sys.argv[1:4]
TOOL = pathlib.Path(ROOT) / "tools/gpu-validate"
loader = importlib.machinery.SourceFileLoader("gpu_validate", str(TOOL))
sys.dont_write_bytecode = True
tool = importlib.util.module_from_spec(importlib.util.spec_from_loader("gpu_validate", loader))
loader.exec_module(tool)

CLAIMS = """launch,kernel,what,counter,claimed,whole
1,stream_read_cg,main read stream,dram_read_bytes,2000000,2000000
1,stream_read_cg,main read stream,dram_write_bytes,0,2000000
2,chase_global_ca,L1 chase,l1_hits,800,1000
2,chase_global_ca,L1 chase,texture_hits,10,1000
"""
COLUMNS = ["dram__bytes_read.sum", "dram__bytes_write.sum",
           "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum"]


def line(values):
    return ",".join(f'"{value}"' for value in values) + "\n"


def page(*launches):
    """As ncu writes it: messages, head, units, one line per launch with separated thousands."""
    text = "==PROF== Connected to process 7 (validate_kernels)\n"
    text += line(["ID", "Process ID", "Kernel Name", "Grid Size", *COLUMNS])
    text += line(["", "", "", "", "byte", "byte", "sector"])
    for number, (kernel, blocks, *values) in enumerate(launches):
        text += line([number, 7, kernel, f"({blocks}, 1, 1)", *values])
    return text


WARM = ("stream_read_cg_16_8", 264, "1,000,000", "0", "0")
STREAM = ("stream_read_cg_16_8", 264, "1,990,000", "20,000", "0")
GOOD = page(WARM, STREAM, ("chase_global_ca", 132, "64", "n/a", "801"))
AGAIN = page(WARM, STREAM, ("chase_global_ca", 132, "0", "0", "1"), ("chase_global_ca", 264, "64", "0", "800"))
BAD = page(WARM, ("stream_read_cg_16_8", 264, "1,950,000", "0", "0"), ("chase_global_ca", 132, "64", "0", "801"))


def check(condition, text):
    if not condition:
        sys.exit(f"FAILED: {text}")


def compared(text):
    return tool.compare(tool.read_claims(CLAIMS), tool.merge_repeats(tool.read_counters(text)))


def check_verdicts():
    good, bad = compared(GOOD), compared(BAD)
    check(compared(AGAIN) == good, "a chase that was launched twice")
    check([row[-1] for row in good] == ["agree", "agree", "agree", "not counted"], good)
    check(tool.exit_code(good) == 0, good)
    check([row[-1] for row in bad] == ["**differ**", "agree", "agree", "not counted"], bad)
    check(tool.exit_code(bad) == 1 and abs(bad[0][4] + 0.025) < 1e-9, bad)
    check("| main read stream | dram read bytes | 2,000,000 | 1,950,000 | -2.50 % | **differ** |" in
          tool.table(bad), tool.table(bad))
    check(tool.exit_code([row for row in good if row[-1] == "not counted"]) == 1, "nothing was compared")


def check_sums():
    launch = {"dram__bytes_read.sum": "1,000", "lts__t_sectors_op_read_lookup_miss.sum": "20",
              "lts__t_sectors_srcunit_tex_op_read_lookup_miss.sum": "8"}
    check(tool.counted_by(launch, "dram_read_bytes_for_sms") is None, "a sum of which a part is missing")
    launch["lts__t_sectors_srcunit_ltcfabric_lookup_miss.sum"] = "2"
    check(tool.counted_by(launch, "dram_read_bytes_for_sms") == 680, "10 sectors are not the SMs'")


def check_mismatches():
    for text, why in ((page(WARM), "1 launches were counted, 3 were meant"),
                      (page(WARM, WARM, WARM), "launch 2 was of stream_read_cg_16_8"),
                      ("", "0 launches")):
        try:
            compared(text)
        except tool.Mismatch as said:
            check(why in str(said), said)
        else:
            check(False, f"nothing noticed: {why}")


def check_program(folder):
    """All claims are of known counters and in the order of launches; counters that say the same agree."""
    fleet = folder / "fleet.yaml"
    fleet.write_text(f"seed: 1\nnodes:\n  - {{name: n1, model: {MODEL}, gpus: 1}}\n")
    subprocess.run([PROGRAM, folder / "claims.csv", fleet], check=True)
    claims = tool.read_claims((folder / "claims.csv").read_text())
    check({claim["counter"] for claim in claims} == set(tool.COUNTERS), "not every counter has a claim")
    launches = [{} for _ in range(int(claims[-1]["launch"]) + 1)]
    for claim in claims:
        first, *others = tool.COUNTERS[claim["counter"]].items()
        check(0 <= float(claim["claimed"]) <= float(claim["whole"]), claim)
        launches[int(claim["launch"])]["Kernel Name"] = claim["kernel"]
        launches[int(claim["launch"])][first[0]] = str(float(claim["claimed"]) / first[1])
        launches[int(claim["launch"])].update({metric: "0" for metric, _ in others})
    rows = tool.compare(claims, launches)
    check(all(row[-1] == "agree" for row in rows) and tool.exit_code(rows) == 0, rows)


def stand_in(folder, name, text):
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)


def validate(folder, **env):
    return subprocess.run([sys.executable, TOOL, folder / "out", PROGRAM], capture_output=True, text=True,
                          env={**os.environ, **env})


def check_whole(folder):
    """From the command line, with stand-ins for ncu and nvidia-smi."""
    bare = validate(folder, PATH=str(folder))
    check(bare.returncode == 77 and bare.stderr.count("\n") == 1 and "ncu" in bare.stderr, bare)
    path = f"{folder}:{os.environ['PATH']}"
    (folder / "claims").write_text(CLAIMS)
    (folder / "page").write_text(BAD)
    stand_in(folder, "ncu", f"""#!/bin/sh
[ "$1" != --version ] || {{ echo 'Version 2024.3.2.0 (build 1)'; exit 0; }}
while [ $# -gt 2 ]; do [ "$1" != --log-file ] || log=$2; shift; done
cp {folder}/page "$log"
cp {folder}/claims "$2"
""")
    stand_in(folder, "nvidia-smi", "#!/bin/sh\nexit 9\n")
    bare = validate(folder, PATH=path)
    check(bare.returncode == 77 and bare.stderr.count("\n") == 1 and "no NVIDIA GPU" in bare.stderr, bare)
    stand_in(folder, "nvidia-smi", "#!/bin/sh\necho 'NVIDIA T1, 570.1'\n")
    done = validate(folder, PATH=path)
    text = (folder / "out/VALIDATION.md").read_text()
    check(done.returncode == 1 and "**differ**" in done.stdout, done)
    check(text.startswith("# Validation") and "- GPU: NVIDIA T1\n- driver: 570.1\n" in text, text)
    check("2 of 4 claims agree, 1 differ, 1 were not counted" in text and "Not run yet" not in text, text)
    check("does not have for this GPU: l1tex__t_sectors_pipe_tex_mem_texture_lookup_hit.sum" in text, text)
    (folder / "page").write_text("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n")
    done = validate(folder, PATH=path)
    check(done.returncode == 77 and "permission" in done.stderr, done)


check_verdicts()
check_sums()
check_mismatches()
with tempfile.TemporaryDirectory() as name:
    check_program(pathlib.Path(name))
    check_whole(pathlib.Path(name))
print("claims and counters are compared")
