"""Style and script as C strings, and the hash by which the page's policy admits the script.

embed.py STYLE.css SCRIPT.js OUT.h
"""
import base64
import hashlib
import pathlib
import sys


def literal(name, text):
    lines = [line.replace("\\", "\\\\").replace('"', '\\"') for line in text.splitlines()]
    return f"static const char {name}[] =\n" + "\n".join(f'    "{line}\\n"' for line in lines) + ";\n"


style = pathlib.Path(sys.argv[1]).read_text(encoding="ascii")
script = pathlib.Path(sys.argv[2]).read_text(encoding="ascii")
digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
pathlib.Path(sys.argv[3]).write_text(
    "/* Made from style.css and script.js. */\n" + literal("html_style", style) + literal("html_script", script)
    + f'static const char html_script_hash[] = "sha256-{digest}";\n')
