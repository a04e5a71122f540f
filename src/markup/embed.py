"""A style or a script as a C string; of a script also the hash by which a page's policy admits it.

embed.py NAME FILE OUT.h
"""
import base64
import hashlib
import pathlib
import sys

name, source = sys.argv[1], pathlib.Path(sys.argv[2])
text = source.read_text(encoding="ascii")
lines = [line.replace("\\", "\\\\").replace('"', '\\"') for line in text.splitlines()]
header = f"/* Made from {source.name}. */\nstatic const char {name}[] =\n"
header += "\n".join(f'    "{line}\\n"' for line in lines) + ";\n"
if source.suffix == ".js":
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    header += f'static const char {name}_hash[] = "sha256-{digest}";\n'
pathlib.Path(sys.argv[3]).write_text(header)
