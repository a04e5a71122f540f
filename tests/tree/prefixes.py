"""One prefix per module: a name that leaves its file says where it is declared.

usage: prefixes.py SOURCE_ROOT

A function or object that a header declares begins with the name of the header (or its first words: cache_report.h
may declare cache_metric), of its folder, or of a struct or enum that the header defines. So a reader finds the file of a name without a search.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1]) / "src"

# It may only shrink.
EXCEPTIONS = {}

DECLARED = re.compile(r"^(?!typedef|static|#|struct \w+ \{|enum)[a-z][\w \*]*?[ \*](\w+)(?:\[\w*\])?(?:\(|;| =)", re.M)
TYPE = re.compile(r"^(?:struct|enum|union) (\w+)(?: \{|;)", re.M)


def declared(text):
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    text = re.sub(r"\{[^{}]*\}", "{}", text)  # bodies
    text = re.sub(r"\{[^{}]*\}", "{}", text)
    types = set(TYPE.findall(re.sub(r"/\*.*?\*/", "", text, flags=re.S)))
    return types, set(DECLARED.findall(text))


def prefixes(header, types):
    folders = header.relative_to(ROOT).parts[:-1]
    parts = header.stem.split("_")
    family = {"_".join(parts[:i + 1]) for i in range(len(parts))}  # cache_report.h belongs to cache.h
    words = {*family, *folders, *types}
    return words | {word[:-1] for word in words if word.endswith("s")}


wrong, seen, failed = [], 0, False
for header in sorted(ROOT.rglob("*.h")):
    types, names = declared(header.read_text())
    allowed = prefixes(header, types)
    for name in sorted(names):
        seen += 1
        if not any(name.lower() == word or name.lower().startswith(word + "_") for word in allowed):
            wrong.append((str(header.relative_to(ROOT)), name))
for path, name in wrong:
    if name not in EXCEPTIONS.get(path, ()):
        failed = True
        print(f"src/{path}: {name} has neither its header's, its folder's nor a type's prefix")
for path, names in EXCEPTIONS.items():
    for name in names:
        if (path, name) not in wrong:
            failed = True
            print(f"prefixes.py: {path}: {name} is no exception any more")
print(f"{seen} names, {len(wrong)} of them exceptions")
sys.exit(failed or seen < 500)  # fewer: the pattern no longer fits the headers
