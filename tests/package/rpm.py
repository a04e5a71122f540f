"""The RPMs: rpm.py files|root SOURCE_ROOT FOLDER. files: their lists and what they require; root: installation into a
scratch root, upgrade, removal."""
import os
import pathlib
import re
import sys
import tempfile

import installed
import made

made.skip_without("rpmbuild", "rpm")
mode = sys.argv[1]
if mode == "root" and os.geteuid() != 0:
    print("rpm installs into another root as root only")
    sys.exit(made.SKIPPED)
packages = made.get(sys.argv[2], sys.argv[3])


def rpm(*args):
    """Its warnings are about the missing database of the machine."""
    said = made.run("rpm", *args)
    return [line for line in said.split("\n") if line and not re.match("rpm: |warning: ", line)]


def named(name, paths):
    return next(path for path in paths if rpm("-qp", "--qf", "%{NAME}\n", path) == [name])


def check_files():
    program, doc = named("gpumemtopo", packages.rpms), named("gpumemtopo-doc", packages.rpms)

    def files(package):
        rows = [line.split(" ", 1) for line in rpm("-qp", "--qf", "[%{FILEMODES:perms} %{FILENAMES}\n]", package)]
        names = {name[1:] for mode, name in rows if mode[0] != "d" and "/.build-id/" not in name}
        licences = {name for name in names if name.startswith("usr/share/licenses/")}
        assert len(licences) == 1, f"{package} has no licence: {licences}"
        return names - licences

    with tempfile.TemporaryDirectory() as name:
        built = packages.built or next(packages.rpm_top.glob("BUILD/*/build-rpm"))
        wanted = set(installed.staged(built, pathlib.Path(name) / "staged"))
    there = {re.sub(r"(/man/.*)\.gz$", r"\1", path) for path in files(program) | files(doc)}
    assert wanted == there, f"missing: {wanted - there}, too many: {there - wanted}"
    assert not files(program) & files(doc)
    assert all(path.startswith("usr/share/doc") for path in files(doc))
    assert {path[1:] for path in rpm("-qpc", program)} == {path for path in wanted if path.startswith("etc/")}
    needs = "\n".join(rpm("-qp", "--requires", program))
    assert "libyaml" in needs and not re.search("mpi|cuda|nvidia", needs), needs
    assert "openmpi" in rpm("-qp", "--recommends", program) and "mpich" in rpm("-qp", "--suggests", program)
    assert not rpm("-qp", "--scripts", program)
    assert rpm("-qp", "--qf", "%{ARCH}\n", doc) == ["noarch"]


def check_root(scratch):
    root, newer = scratch / "root", scratch / "newer"
    root.mkdir()
    version = rpm("-qp", "--qf", "%{VERSION}\n", packages.rpms[0])[0]
    append = "; ".join(f"echo '# newer' >>%{{buildroot}}/etc/gpumemtopo/{name}" for name in ("survey.yaml", "health.conf"))
    made.rpmbuild(packages, newer, "--define", "dist .2", "--define", f"__spec_install_post {append}")
    files = lambda: {path for path in installed.files_below(root) if "/rpm/" not in path}  # noqa: E731
    rpm("--root", root, "--initdb")
    before = files()
    rpm("--root", root, "--nodeps", "-i", *packages.rpms)
    installed.check_needs_no_cuda(root)
    installed.check_no_build_path(root, packages.source)
    installed.check_programs(root, version)
    installed.check_mpis(root)
    installed.check_settings_kept(
        root / "etc/gpumemtopo", lambda: rpm("--root", root, "--nodeps", "-U", *newer.glob("RPMS/*/*.rpm")),
        "survey.yaml.rpmnew")
    rpm("--root", root, "--nodeps", "-e", "gpumemtopo", "gpumemtopo-doc")
    left = files() - before
    # What the site has changed is its own.
    assert left == {"etc/gpumemtopo/survey.yaml.rpmsave", "etc/gpumemtopo/survey.yaml.rpmnew"}, left
    folders = {str(path.relative_to(root)) for path in root.rglob("gpumemtopo") if path.is_dir()}
    assert folders == {"etc/gpumemtopo"}, folders


if mode == "files":
    check_files()
else:
    with tempfile.TemporaryDirectory() as name:
        check_root(pathlib.Path(name))
