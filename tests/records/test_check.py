"""The check of recorded surveys itself, on a simulated GPU: what it must accept and refuse.

usage: test_check.py PROGRAM SOURCE_ROOT
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

PROGRAM, ROOT = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()


def expect(folder, code, text, *more):
    done = subprocess.run([sys.executable, ROOT / "tests/records/check.py", PROGRAM, ROOT, folder,
                           *more], capture_output=True, text=True)
    if done.returncode != code or text not in done.stdout:
        sys.exit(f"FAILED: expected {code} and \"{text}\":\n{done.returncode}\n{done.stdout}"
                 f"{done.stderr}")


def main():
    with tempfile.TemporaryDirectory(prefix="gpumemtopo-records-") as there:
        folder = pathlib.Path(there)
        fleet = folder / "fleet"
        fleet.write_text(f"nodes: [{{name: n1, model: {ROOT}/tests/survey/tiny.yaml, gpus: 1}}]\n")
        expect(folder, 77, "no records")
        record, golden = folder / "a.gmr", folder / "a.yaml"
        os.environ["ASAN_OPTIONS"] = "detect_leaks=0"
        subprocess.run([PROGRAM, "--simulate", fleet, "--record", record, "-o", "/dev/null",
                        "--quiet", "--profile", "quick"], check=True)
        expect(folder, 1, "no a.yaml beside it")
        expect(folder, 0, "a.yaml: written", "--update")
        expect(folder, 0, "a.gmr: ok")
        text = golden.read_text()
        other = re.sub(r"(latency: {value: )(\d)", lambda m: m[1] + str(9 - int(m[2])), text, count=1)
        golden.write_text(other)
        expect(folder, 1, "another inventory than the golden one")
        golden.write_text(text)
        whole = record.read_bytes()
        record.write_bytes(whole[:-1])
        expect(folder, 1, "not replayed: gpumemtopo-survey: error: ")
        record.write_bytes(whole)
        (folder / "b.yaml").write_text(text)
        expect(folder, 1, "b.yaml: no record beside it")
        (folder / "b.yaml").unlink()
        record.rename(folder / "standard.gmr")
        golden.rename(folder / "standard.yaml")
        expect(folder, 0, "standard.gmr: ok")
        with open(folder / "standard.gmr", "ab") as file:
            file.truncate(5 << 20)
        expect(folder, 1, "at most 4194304 for a standard record")


main()
