"""Debian packages and RPMs from an unpacked tarball."""
import os
import pathlib
import shutil
import subprocess


class Failed(Exception):
    pass


def _run(*command, **more):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", **more)
    if done.returncode:
        raise Failed(f"{' '.join(map(str, command))}: exit {done.returncode}: {done.stdout[-5000:]}")


def nvcc():
    places = [os.environ.get("CUDA_HOME", "/usr/local/cuda") + "/bin", "/usr/local/cuda/bin", os.environ["PATH"]]
    return shutil.which("nvcc", path=":".join(places))


def built(source):
    """The build folder that make_debs leaves, or None."""
    return next(pathlib.Path(source).glob("obj-*"), None)


def make_debs(source, cuda_arch, cflags=""):
    """Beside the folder `source`; none without the tools of Debian. `cflags` are added to those of Debian."""
    if not shutil.which("dh") or not shutil.which("dpkg-buildpackage"):
        return []
    # Debug data would be stripped: there is no package for it.
    env = {**os.environ, "GPUMEMTOPO_CUDA_ARCH": cuda_arch, "DEB_CFLAGS_APPEND": f"-g0 {cflags}",
           "DEB_BUILD_OPTIONS": f"nocheck noautodbgsym parallel={os.cpu_count()}"}
    if not nvcc():
        env["DEB_BUILD_PROFILES"] = "pkg.gpumemtopo.nocuda"
    _run("dpkg-buildpackage", "-b", "-us", "-uc", "-d", cwd=source, env=env)
    return sorted(pathlib.Path(source).parent.glob("*.deb"))


def make_rpms(source, tarball, top, cuda_arch, *more):
    """Below the folder `top`; none without rpmbuild. Takes the build of make_debs if there is one. --nodeps: packages of
    Debian are not in the database of rpm."""
    if not shutil.which("rpmbuild"):
        return []
    _run("rpmbuild", "-bb", "--nodeps", "--define", f"_topdir {top}", "--define", f"_sourcedir {pathlib.Path(tarball).parent}",
         "--define", f"cuda_arch {cuda_arch}", "--without", "check", *more, *([] if nvcc() else ["--without", "cuda"]),
         *(["--define", f"built {built(source)}"] if built(source) else []), pathlib.Path(source) / "packaging/gpumemtopo.spec")
    return sorted(pathlib.Path(top).glob("RPMS/*/*.rpm"))
