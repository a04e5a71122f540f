"""`gpumemtopo-report show` as people see it: width, colour only on a terminal, drawing, comparison.

show.py REPORT PRINT_RICH SURVEY SOURCE_ROOT
"""
import os
import pathlib
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unicodedata
from fcntl import ioctl
from termios import TIOCSWINSZ

report, print_rich, survey = sys.argv[1:4]
root = pathlib.Path(sys.argv[4])
folder = pathlib.Path(tempfile.mkdtemp())
ASAN = {name: value for name, value in os.environ.items() if name == "ASAN_OPTIONS"}
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def run(*args, code=0, **variables):
    variables = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", **ASAN, **variables}
    done = subprocess.run([report, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=variables)
    assert done.returncode == code, f"{args}: exit {done.returncode}: {done.stderr.decode()}"
    return (done.stderr if code else done.stdout).decode()


def on_terminal(columns, *args, **variables):
    master, slave = pty.openpty()
    ioctl(slave, TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    variables = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "TERM": "xterm", **ASAN, **variables}
    process = subprocess.Popen([report, *map(str, args)], stdout=slave, env=variables)
    os.close(slave)
    text = b""
    while True:
        try:
            more = os.read(master, 65536)
        except OSError:
            break
        if not more:
            break
        text += more
    assert process.wait() == 0
    os.close(master)
    return text.decode().replace("\r\n", "\n")


def columns_of(line):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in ESCAPE.sub("", line))


def widest(text):
    """Commands are to be copied, so they are never broken."""
    return max(columns_of(line) for line in text.splitlines() if "gpumemtopo-report " not in line)


def framed(text):
    """Every frame is closed: corners and sides stand below each other."""
    lines = [line for line in text.splitlines() if line and line[0] in "┌│└+|"]
    assert lines, text
    for line in lines:
        assert columns_of(line) == columns_of(lines[0]), f"ragged: {line}\n{text}"
        assert line[-1] in "┐│┘+|", line


rich = folder / "rich.yaml"
rich.write_bytes(subprocess.run([print_rich], check=True, stdout=subprocess.PIPE).stdout)
demo, fleet = folder / "demo.yaml", folder / "fleet.yaml"
fleet.write_text("nodes:\n" + "".join(f"  - {{name: {m}, gpus: 1, model: {root}/configs/sim/{m}.yaml}}\n"
                                      for m in ("demo-h8", "demo-t20")))
subprocess.run([survey, "--simulate", fleet, "--quiet", "-o", demo], check=True)

for path in rich, demo:
    assert "\x1b" not in run("show", path, TERM="xterm"), "colour in a pipe"
    for columns in 40, 57, 80, 200:
        for flags in [], ["--topology"], ["--compare", "--model", "nvidia-h200" if path == rich else "demo-h8"]:
            assert widest(run("show", path, "--width", columns, *flags)) <= columns, (columns, flags)
            assert widest(run("show", path, *flags, COLUMNS=str(columns))) <= columns, (columns, flags)
        assert widest(on_terminal(columns, "show", path)) <= columns
text = on_terminal(80, "show", rich)
assert "\x1b[31m" in text and "\x1b[1m" in text, "no colour on a terminal"
assert "\x1b" not in on_terminal(80, "show", rich, NO_COLOR="1")
assert "\x1b" not in on_terminal(80, "show", rich, TERM="dumb")
assert "\x1b" not in on_terminal(80, "show", rich, "--color", "never")
assert "\x1b[31m" in run("show", rich, "--color=always")
plain = ESCAPE.sub("", on_terminal(100, "show", rich))
assert plain == run("show", rich), "colour changes the text"

drawing = run("show", "--topology", "--model", "demo-h8", demo)
framed(drawing)
array = drawing[drawing.index("one array"):drawing.index("constant L1")]
for part in "L1 data", "texture", "read-only", "shared memory", "54 KiB", "line 128 B, fetch 32 B":
    assert part in array, f"{part} is not in the one array of\n{drawing}"
for part in "SM, one of 8", "constant L1.5, for 2 SMs", "L2, 2 parts", "main memory", "host link", "to GPU":
    assert part in drawing, part
assert "Demo T20" not in drawing and "Demo T20" in run("show", "--topology", demo)
other = run("show", "--model", "demo-t20", demo)
assert "one array" in other and "24 KiB, 2 per SM" in other
assert "shared memory" not in other[other.index("one array"):other.index("texture")]
ascii_drawing = run("show", "--topology", "--model", "demo-h8", demo, LC_ALL="C")
ascii_drawing.encode("ascii")
framed(ascii_drawing)
framed(run("show", "--topology", "--width", "40", demo).split("\n\n")[0])

compared = run("show", "--compare", demo)
assert "Demo H8" in compared and "Demo T20" in compared
row = next(line.split() for line in compared.splitlines() if line.startswith("memory_bytes"))
assert row == ["memory_bytes", "4", "GiB", "2", "GiB", "0.50"], row
assert re.search(r"^l2.latency_far .* unsupported$", compared, re.M), "a missing figure gets a ratio"
assert re.search(r"^  in time +[\d.]+ ns +[\d.]+ ns +[\d.]+$", compared, re.M)
same = run("show", "--compare", "--model", "demo-h8", demo, demo)
ratios = re.findall(r" (\d+\.\d\d)$", same, re.M)
assert len(ratios) > 30 and set(ratios) == {"1.00"}, ratios
assert "choose one with --model" in run("show", "--compare", demo, rich, code=2)
assert "NVIDIA H200" in run("show", "--compare", "--model", "demo-t20,nvidia-h200", demo, rich)
assert "did you mean --topology" in run("show", "--topologie", demo, code=2)
assert "--width is a number" in run("show", "--width", "3", demo, code=2)
assert "--color is auto" in run("show", "--color", "pink", demo, code=2)
assert "no model \"x\"; there is demo-h8, demo-t20" in run("show", "--model", "x", demo, code=2)
shutil.rmtree(folder)
