"""Makes a man page from its template: make.py TEMPLATE VERSION OUT PROGRAM

@VERSION@ is replaced; a line @options@ or @options COMMAND@ by the flags of the program or of that command, which the
program prints from its table.
"""
import os
import re
import subprocess
import sys

template, version, out, program = sys.argv[1:]


def flags(match):
    command = [program, *match[1].split(), "--help=man"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})
    return done.stdout.decode().rstrip("\n")


with open(template, encoding="utf-8") as page:
    text = page.read().replace("@VERSION@", version)
with open(out, "w", encoding="utf-8") as page:
    page.write(re.sub(r"^@options ?(\w*)@$", flags, text, flags=re.M))
