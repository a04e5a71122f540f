"""The Debian packages: their files, installation into a scratch root, upgrade, removal: deb.py SOURCE_ROOT FOLDER"""
import os
import pathlib
import re
import sys
import tempfile

import installed
import made

made.skip_without("dh", "dpkg-buildpackage", *([] if os.geteuid() == 0 else ["fakeroot"]))
packages = made.get(sys.argv[1], sys.argv[2])
program_deb, doc_deb = packages.debs["gpumemtopo"], packages.debs["gpumemtopo-doc"]
version = made.run("dpkg-deb", "-f", program_deb, "Version").strip()
# dpkg adds these itself.
ADDED = r"usr/share/doc/[a-z-]*/(changelog.gz|copyright)|usr/share/lintian/overrides/.*|usr/share/doc-base/.*"


def contents(deb):
    lines = made.run("dpkg-deb", "-c", deb)
    rows = [line.split(maxsplit=5) for line in lines.strip().split("\n")]
    return {row[5].split(" -> ")[0].removeprefix("./"): row for row in rows if row[0][0] != "d"}


def check_contents(folder):
    """Each file that meson installs is in exactly one package, owned by root, and nothing else is."""
    wanted = {name + ".gz" if "/man/" in name else name for name in installed.staged(packages.built, folder)}
    program, doc = contents(program_deb), contents(doc_deb)
    there = {name for name in [*program, *doc] if not re.fullmatch(ADDED, name)}
    assert wanted == there, f"missing: {wanted - there}, too many: {there - wanted}"
    assert not set(program) & set(doc), set(program) & set(doc)
    assert all(name.startswith("usr/share/doc") for name in doc)
    assert all(row[1] == "root/root" for row in [*program.values(), *doc.values()])
    for name in installed.PROGRAMS:
        assert f"usr/bin/{name}" in program and f"usr/share/man/man1/{name}.1.gz" in program
        assert f"usr/share/bash-completion/completions/{name}" in program
    settings = sorted("/" + name for name in program if name.startswith("etc/"))
    with tempfile.TemporaryDirectory() as control:
        made.run("dpkg-deb", "-e", program_deb, control)
        assert sorted(pathlib.Path(control, "conffiles").read_text().split()) == settings, settings
        scripts = {path.name for path in pathlib.Path(control).iterdir()} & {"preinst", "postinst", "prerm", "postrm"}
        assert not scripts, f"the package runs {scripts}"


def check_dependencies():
    """libyaml is needed, an MPI is recommended and another one suggested; nothing of CUDA is needed or recommended."""
    needs = made.run("dpkg-deb", "-f", program_deb, "Depends", "Pre-Depends")
    assert "libyaml" in needs and not re.search("mpi|cuda|nvidia", needs), needs
    wants = made.run("dpkg-deb", "-f", program_deb, "Recommends")
    assert "openmpi-bin" in wants and not re.search("cuda|nvidia", wants), wants
    assert "mpich" in made.run("dpkg-deb", "-f", program_deb, "Suggests")


def next_version(deb, folder):
    """The same package with a higher version and other settings."""
    made.run("dpkg-deb", "-R", deb, folder)
    control = folder / "DEBIAN/control"
    control.write_text(control.read_text().replace(f"Version: {version}", f"Version: {version}+1"))
    for path in (folder / "etc/gpumemtopo").iterdir():
        path.write_text(path.read_text(encoding="utf-8") + "# newer\n", encoding="utf-8")
    made.run("dpkg-deb", "--root-owner-group", "-Znone", "-b", folder, folder.with_suffix(".deb"))
    return folder.with_suffix(".deb")


with tempfile.TemporaryDirectory() as name:
    scratch = pathlib.Path(name)
    check_contents(scratch / "staged")
    check_dependencies()
    root = installed.scratch_root(scratch / "root")
    everything = lambda: {str(path.relative_to(root)) for path in root.rglob("*")} - {"var/log/dpkg.log"}  # noqa: E731
    elsewhere = lambda: {path for path in everything() if not path.startswith("var/lib/dpkg")}  # noqa: E731
    before = elsewhere()
    installed.dpkg(root, "-i", program_deb, doc_deb)
    installed.check_needs_no_cuda(root)
    installed.check_no_build_path(root, packages.source)
    installed.check_programs(root, version)
    installed.check_mpis(root)
    newer = next_version(program_deb, scratch / "newer")
    installed.check_settings_kept(root / "etc/gpumemtopo", lambda: installed.dpkg(root, "-i", newer), "survey.yaml.dpkg-dist")
    installed.dpkg(root, "-r", "gpumemtopo", "gpumemtopo-doc")
    left = {path for path in elsewhere() - before if (root / path).is_file()}
    assert left >= {"etc/gpumemtopo/survey.yaml", "etc/gpumemtopo/health.conf"}, "settings are gone before a purge"
    assert all(path.startswith("etc/gpumemtopo/") for path in left), left
    installed.dpkg(root, "-P", "gpumemtopo", "gpumemtopo-doc")
    assert elsewhere() == before, f"left behind: {elsewhere() - before}"
