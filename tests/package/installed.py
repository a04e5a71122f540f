"""What must be true of the programs wherever a package put them."""
import os
import pathlib
import re
import shutil
import subprocess

import made

PROGRAMS = ["gpumemtopo-survey", "gpumemtopo-report", "gpumemtopo-predict"]


def scratch_root(root):
    """An empty root for dpkg."""
    for folder in ("var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers", "var/log"):
        (root / folder).mkdir(parents=True)
    (root / "var/lib/dpkg/status").write_text("")
    return root


def dpkg(root, *args):
    command = ["dpkg", f"--root={root}", "--force-depends", "--force-not-root", "--force-confdef", "--force-confold"]
    env = {**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin", "DEBIAN_FRONTEND": "noninteractive"}
    made.run(*([] if os.geteuid() == 0 else ["fakeroot"]), *command, *args, env=env, stdin=subprocess.DEVNULL)


def files_below(folder):
    return sorted(str(path.relative_to(folder)) for path in pathlib.Path(folder).rglob("*")
                  if path.is_symlink() or not path.is_dir())


def staged(built, folder):
    """All files that `meson install` of a build would write, without leading slash."""
    made.run("meson", "install", "-C", built, "--destdir", folder, "--no-rebuild", "--quiet")
    return files_below(folder)


def check_needs_no_cuda(root):
    """The programs are not linked with anything of CUDA, of the driver or of an MPI."""
    for program in PROGRAMS:
        said = made.run("readelf", "-dW", root / "usr/bin" / program)
        libraries = re.findall(r"\(NEEDED\).*\[(.*)\]", said)
        assert "libc.so.6" in libraries, said
        assert not [name for name in libraries if re.search("cuda|nvidia|nvml|cudart|mpi", name)], libraries


def check_no_build_path(root, source):
    for program in PROGRAMS:
        assert str(source).encode() not in (root / "usr/bin" / program).read_bytes(), f"{program} names {source}"


def check_programs(root, version):
    """They run from there, with the files from there."""
    work = root.parent / "elsewhere"
    work.mkdir(exist_ok=True)
    env = {"PATH": "/usr/bin:/bin", "HOME": str(work)}

    def run(program, *args, code=(0,)):
        return made.run(root / "usr/bin" / program, *args, cwd=work, env=env, code=code)

    for program in PROGRAMS:
        assert version in run(program, "--version"), program
    backend = re.search("CUDA backend: (yes|no)", run("gpumemtopo-survey", "--version")).group(1)
    assert backend == ("yes" if made.packages.nvcc() else "no"), backend
    share, etc = root / "usr/share/gpumemtopo", root / "etc/gpumemtopo"
    fleet = work / "fleet.yaml"
    fleet.write_text(f"nodes:\n  - {{name: n1, gpus: 2, model: {share}/sim/demo-h8.yaml}}\n", encoding="utf-8")
    survey = ["gpumemtopo-survey", "--simulate", fleet, "--profile", "quick", "--quiet", "-o", "out.yaml"]
    run(*survey)
    run("gpumemtopo-report", "validate", "out.yaml")
    assert "Demo H8" in run("gpumemtopo-report", "show", "out.yaml")
    assert run("gpumemtopo-predict", "--list-kernels").strip()
    # Settings are read from /etc, and from nowhere else.
    settings = etc / "survey.yaml"
    before = settings.read_text(encoding="utf-8")
    settings.write_text(before + "surprise: 1\n", encoding="utf-8")
    assert "surprise" in run(*survey, code=(2,))
    settings.unlink()
    assert "survey.yaml not found" in run(*survey, code=(1, 2))
    settings.write_text(before, encoding="utf-8")
    (work / "out.yaml").unlink()


def check_mpis(root):
    """The same program surveys under the launcher of each MPI, with both plug-ins from there."""
    plugins = sorted(path.name for path in (root / "usr/lib").rglob("gpumemtopo-mpi-*.so"))
    assert plugins == ["gpumemtopo-mpi-mpich.so", "gpumemtopo-mpi-openmpi.so"], plugins
    work = root.parent / "elsewhere"
    env = {"PATH": "/usr/bin:/bin", "HOME": str(work), "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    fleet = work / "fleet.yaml"
    share = root / "usr/share/gpumemtopo"
    fleet.write_text(f"nodes:\n  - {{name: n1, gpus: 2, model: {share}/sim/demo-h8.yaml}}\n", encoding="utf-8")
    for words, mpi in ((["mpirun", "--oversubscribe"], "Open MPI"), (["mpiexec.hydra"], "MPICH")):
        if not shutil.which(words[0]):
            print(f"{words[0]} is not installed: not tried")
            continue
        said = made.run(*words, "-n", "2", root / "usr/bin/gpumemtopo-survey", "--simulate", fleet, "--probes", "main.latency",
                        "--verbose", "-o", "out.yaml", cwd=work, env=env)
        assert f": MPI: {mpi}" in said, said
        assert "ranks: 2, gpus: 2, measured: 2" in (work / "out.yaml").read_text(encoding="utf-8"), said
        (work / "out.yaml").unlink()


def check_settings_kept(etc, upgrade, kept_beside):
    """upgrade() installs a package with other settings: those that the site changed stay, those that it did not
    change become the new ones. kept_beside: the name that the new file gets."""
    ours = (etc / "survey.yaml").read_text(encoding="utf-8") + "# changed by the site\n"
    (etc / "survey.yaml").write_text(ours, encoding="utf-8")
    upgrade()
    assert (etc / "survey.yaml").read_text(encoding="utf-8") == ours, "survey.yaml was replaced"
    assert (etc / kept_beside).read_text(encoding="utf-8").endswith("# newer\n"), f"there is no {kept_beside}"
    assert (etc / "health.conf").read_text(encoding="utf-8").endswith("# newer\n"), "health.conf is the old one"
