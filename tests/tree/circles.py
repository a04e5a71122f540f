"""Checks that no .c files of one folder need each other in a circle.

A file needs another one when it uses a function or a table that the other one defines. Definitions
are read from the sources: they begin in column 0 and are not static; a function has its opening
brace in column 0 of the line behind its parameters, a table is followed by `=`.
"""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])

# Circles that may be there, as this test names them, each with the reason.
exceptions = {}

comment_or_text = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
member_or_tag = re.compile(r"(?:\.|->|\b(?:struct|enum|union)\s)\s*\w+")
definition = re.compile(
    r"^(?!static\b)[A-Za-z_][\w \t*]*?\b(\w+)(?:\([^;{}]*\)\n\{|(?:\[\w*\])*\s*=)", re.M
)


def code_of(path):
    return comment_or_text.sub(" ", path.read_text())


def needs_of(folder):
    """For each .c file: the ones that it needs, each with a name that it uses of it. And how many
    names the folder defines."""
    code = {path.name: code_of(path) for path in sorted(folder.glob("*.c"))}
    home = {name: file for file, text in code.items() for name in definition.findall(text)}
    needs = {}
    for file, text in code.items():
        used = set(re.findall(r"\b[A-Za-z_]\w*\b", member_or_tag.sub(" ", text))) & home.keys()
        needs[file] = {home[name]: name for name in sorted(used) if home[name] != file}
    return needs, len(home)


def circles_of(needs):
    """Groups of files of which each one needs, directly or not, all others."""

    def reach(file):
        seen, todo = set(), [file]
        while todo:
            for other in needs[todo.pop()]:
                if other not in seen:
                    seen.add(other)
                    todo.append(other)
        return seen

    reached = {file: reach(file) for file in needs}
    groups = {
        frozenset(other for other in reached[file] if file in reached[other])
        for file in needs
        if file in reached[file]
    }
    return sorted(tuple(sorted(group)) for group in groups)


def main():
    problems, names, unused = [], 0, set(exceptions)
    for folder in sorted({path.parent for path in (root / "src").rglob("*.c")}):
        needs, count = needs_of(folder)
        names += count
        for circle in circles_of(needs):
            name = f"{folder.relative_to(root)}: {' '.join(circle)}"
            if name in exceptions:
                unused.discard(name)
                continue
            problems.append(f"a circle in {name}")
            for file in circle:
                for other in sorted(set(needs[file]) & set(circle)):
                    problems.append(f"    {file} uses {needs[file][other]} of {other}")
    problems += [f"no longer needed: the exception for {name}" for name in sorted(unused)]
    print("\n".join(problems) or f"no circles but {len(exceptions)} known; {names} names looked at")
    sys.exit(1 if problems or not names else 0)


main()
