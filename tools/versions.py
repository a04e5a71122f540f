"""The version of the project. It is in meson.build; these other files repeat it, because their tools read nothing
else. tools/release sets and compares them, and so does the test package_recipes."""
import datetime
import pathlib
import re

# file (a pattern), what stands around the version
PLACES = [
    ("debian/changelog", r"\A(gpumemtopo \()([^)]+)(\))"),
    ("packaging/gpumemtopo.spec", r"^(Version: +)(\S+)()$"),
    ("packaging/spack/spack_repo/gpumemtopo/packages/gpumemtopo/package.py", r'^(    version\(")([^"]+)(")'),
    ("packaging/easybuild/gpumemtopo-*.eb", r"^(version = ')([^']+)(')$"),
]
MAIN = ("meson.build", r"^(  version: ')([^']+)(',)$")
HEADING = r"^## (\S+), (\d{4}-\d\d-\d\d)$"


class Problem(Exception):
    pass


def _find(root, pattern, expression):
    found = sorted(pathlib.Path(root).glob(pattern))
    if len(found) != 1:
        raise Problem(f"{pattern}: {len(found)} files instead of one")
    text = found[0].read_text(encoding="utf-8")
    matches = list(re.finditer(expression, text, re.M))
    if len(matches) != 1:
        raise Problem(f"{found[0]}: the version is in {len(matches)} places instead of one ({expression})")
    return found[0], text, matches[0]


def read(root):
    return _find(root, *MAIN)[2].group(2)


def differing(root):
    """Texts about files that have another version than meson.build."""
    version, problems = read(root), []
    for pattern, expression in PLACES:
        path, _, match = _find(root, pattern, expression)
        name = path.relative_to(root)
        if match.group(2) != version:
            problems.append(f"{name} has {match.group(2)}, meson.build {version}")
        if "*" in pattern and f"-{version}-" not in path.name:
            problems.append(f"{name} does not have {version} in its name")
    return problems


def changes(root):
    """What CHANGELOG.md says about this version; a Problem if there is no section with date and content, or if it
    is not the first one."""
    version = read(root)
    text = pathlib.Path(root, "CHANGELOG.md").read_text(encoding="utf-8")
    sections = re.split(r"^(?=## )", text, flags=re.M)[1:]
    head, _, body = sections[0].partition("\n") if sections else ("", "", "")
    match = re.match(HEADING, head)
    if not match or match.group(1) != version:
        raise Problem(f"CHANGELOG.md begins with \"{head}\" instead of \"## {version}, YYYY-MM-DD\"")
    datetime.date.fromisoformat(match.group(2))
    if not re.search(r"^- ", body, re.M):
        raise Problem(f"CHANGELOG.md says nothing about {version}")
    return body


def _debian_entry(version, now):
    day = now.strftime("%a, %d %b %Y %H:%M:%S +0000")
    return (f"gpumemtopo ({version}) unstable; urgency=medium\n\n  * CHANGELOG.md says what is new.\n\n"
            f" -- gpumemtopo maintainers <maintainers@gpumemtopo.invalid>  {day}\n\n")


def write(root, version):
    """Sets the version everywhere. "## Unreleased" of CHANGELOG.md becomes the section of this version."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise Problem(f"\"{version}\" is not a version as 1.2.3")
    root, old, now = pathlib.Path(root), read(root), datetime.datetime.now(datetime.timezone.utc)
    for pattern, expression in [MAIN, *PLACES]:
        path, text, match = _find(root, pattern, expression)
        if pattern == "debian/changelog" and match.group(2) != version:
            path.write_text(_debian_entry(version, now) + text, encoding="utf-8")
            continue
        path.write_text(text[:match.start(2)] + version + text[match.end(2):], encoding="utf-8")
        if "*" in pattern:
            path.rename(path.with_name(path.name.replace(f"-{old}-", f"-{version}-")))
    log = root / "CHANGELOG.md"
    text = log.read_text(encoding="utf-8")
    log.write_text(re.sub(r"^## Unreleased$", f"## {version}, {now:%Y-%m-%d}", text, count=1, flags=re.M),
                   encoding="utf-8")
