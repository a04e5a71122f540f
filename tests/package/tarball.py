"""The tarball has all files of the tree, and tools/release refuses what must not be released:
tarball.py SOURCE_ROOT FOLDER"""
import pathlib
import shutil
import sys
import tarfile
import tempfile

import made

sys.path.insert(0, str(pathlib.Path(sys.argv[1]) / "tools"))
import versions  # noqa: E402

made.skip_without("git", "meson", "xz")
root, packages = pathlib.Path(sys.argv[1]).resolve(), made.get(sys.argv[1], sys.argv[2])
version = versions.read(root)
assert packages.tarball.name == f"gpumemtopo-{version}.tar.xz", packages.tarball
names = {name.split("/", 1)[1] for name in made.run("tar", "-tf", packages.tarball).split("\n")
         if "/" in name and not name.endswith("/")}
missing, strange = set(made.tree_files(root)) - names, names - set(made.tree_files(root))
assert not missing and not strange, f"missing: {missing}, too many: {strange}"
with tarfile.open(packages.tarball) as archive:
    members = archive.getmembers()
assert len({member.mtime for member in members}) == 1 and not any(member.uid or member.gid for member in members)
assert [member.name for member in members] == sorted((member.name for member in members),
                                                     key=lambda name: name.split("/")), "not sorted by name"
sums = (packages.out / "SHA256SUMS").read_text(encoding="utf-8")
assert packages.tarball.name in sums
made.run("sha256sum", "-c", "SHA256SUMS", cwd=packages.out)
checksum = sums.split(f"  {packages.tarball.name}")[0].split("\n")[-1]
recipes = [path for path in packages.out.iterdir() if path.suffix in (".py", ".eb")]
assert len(recipes) == 2 and all(checksum in path.read_text(encoding="utf-8") for path in recipes), recipes


def refused(folder, *texts, commit=True):
    git = ["git", "-C", folder, "-c", "user.name=test", "-c", "user.email=test@localhost"]
    if commit:
        made.run(*git, "add", "-A")
        made.run(*git, "commit", "-q", "-m", "a change", "--no-gpg-sign")
    said = made.run(sys.executable, folder / "tools/release", "--tarball", "--out", folder.parent / "out", code=(1,))
    assert all(text in said for text in texts), said
    if commit:
        made.run(*git, "reset", "-q", "--hard", "HEAD^")


with tempfile.TemporaryDirectory() as name:
    copy = pathlib.Path(name) / "clone"
    made.run("git", "clone", "-q", packages.repository, copy)
    log = copy / "CHANGELOG.md"
    text = log.read_text(encoding="utf-8")
    heading = next(line for line in text.split("\n") if line.startswith("## "))
    log.write_text(text.replace(heading, "## Unreleased", 1), encoding="utf-8")
    refused(copy, "CHANGELOG.md begins with", f"## {version}")
    log.write_text(f"# Changelog\n\n{heading}\n", encoding="utf-8")
    refused(copy, f"says nothing about {version}")
    (copy / "meson.build").write_text((copy / "meson.build").read_text(encoding="utf-8").replace(version, "77.0.0", 1),
                                      encoding="utf-8")
    refused(copy, f"gpumemtopo.spec has {version}", "debian/changelog", "package.py", ".eb")
    (copy / "new.txt").write_text("", encoding="utf-8")
    refused(copy, "not committed", "new.txt", commit=False)
    (copy / "new.txt").unlink()
    refused_out = copy.parent / "out"
    refused_out.mkdir()
    (refused_out / "mine").write_text("", encoding="utf-8")
    refused(copy, "is not empty", commit=False)
    shutil.rmtree(refused_out)
    # The next version is set in all places by one command.
    log.write_text(text.replace(heading, f"## Unreleased\n\n- a change\n\n{heading}", 1), encoding="utf-8")
    made.run(sys.executable, copy / "tools/release", "version", "78.1.2")
    assert versions.read(copy) == "78.1.2" and not versions.differing(copy), versions.differing(copy)
    assert versions.changes(copy) == "\n- a change\n\n"
    made.run(sys.executable, copy / "tools/release", "version", "78.1", code=(1,))
    if shutil.which("dpkg-parsechangelog"):
        said = made.run("dpkg-parsechangelog", "-S", "Version", cwd=copy)
        assert said == "78.1.2\n", said
