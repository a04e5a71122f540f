"""packaging/Containerfile is built and started with podman: container.py SOURCE_ROOT WORK SURVEY_BUILD

The base image is made by debootstrap from the mirror that apt uses, so no registry is needed. It also stands for the
CUDA image: the toolkit of this machine is mounted into it while it builds. The driver is the stand-in of tests/device/cuda,
mounted where the NVIDIA container toolkit mounts the real one. Takes ten minutes, some GB below WORK and the network.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

import made

root, work, build = (pathlib.Path(path).resolve() for path in sys.argv[1:4])
made.skip_without("podman", "debootstrap", "runc", "nvcc")
if os.geteuid() != 0:
    print("only root can make the base image")
    sys.exit(made.SKIPPED)
LIBRARIES = "/usr/lib/x86_64-linux-gnu"  # where NVIDIA's toolkit mounts libraries of the driver in Debian and Ubuntu
SHARE = "/opt/gpumemtopo/share/gpumemtopo"


def mirror():
    """Address and suite of the first source of apt."""
    said = made.run("apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE)", "Created-By: Packages")
    suite = re.search(r"VERSION_CODENAME=(\w+)", pathlib.Path("/etc/os-release").read_text())[1]
    found = [line.split()[0] for line in said.splitlines() if line.endswith(" " + suite)]
    if not found:
        print(f"apt has no source of {suite}")
        sys.exit(made.SKIPPED)
    return found[0], suite


def podman(*args, **more):
    return made.run("podman", *args, env={**os.environ, "CONTAINERS_STORAGE_CONF": str(work / "storage.conf")}, **more)


def make_base(name):
    base, (address, suite) = work / "base", mirror()
    if not (base / "made").exists():
        shutil.rmtree(base, ignore_errors=True)
        done = subprocess.run(["debootstrap", "--variant=minbase", suite, base, address], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            print("the mirror was not reached:", done.stdout[-300:])
            sys.exit(made.SKIPPED)
        (base / "made").touch()
    packed = work / "base.tar"
    made.run("tar", "-C", base, "-cf", packed, ".")
    podman("import", packed, name)
    packed.unlink()


def make_image(name):
    context = work / "context"
    shutil.rmtree(context, ignore_errors=True)
    tree = work / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    made.copy_as_repository(root, tree)
    made.run("meson", "setup", work / "dist", tree, "-Dcuda=disabled", "-Dtests=disabled", "--wipe") if (work / "dist").exists() \
        else made.run("meson", "setup", work / "dist", tree, "-Dcuda=disabled", "-Dtests=disabled")
    made.run("meson", "dist", "-C", work / "dist", "--no-tests", "--formats", "xztar")
    context.mkdir()
    shutil.copy(next((work / "dist/meson-dist").glob("*.tar.xz")), context)
    cuda = pathlib.Path(shutil.which("nvcc")).resolve().parents[1]
    (work / "Cuda").write_text("FROM localhost/base\nENV PATH=/usr/local/cuda/bin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n")
    podman("build", "--isolation", "chroot", "-f", work / "Cuda", "-t", "localhost/cuda", context)
    # chroot: no features of the kernel that a container in a container lacks
    podman("build", "--isolation", "chroot", "--network", "host", "-v", f"{cuda}:/usr/local/cuda:ro", "-f", root / "packaging/Containerfile",
           "--build-arg", "CUDA_IMAGE=localhost/cuda", "--build-arg", "BASE_IMAGE=localhost/base", "--build-arg", f"CUDA_ARCH={made.CUDA_ARCH}",
           "-t", name, context)


def start(*command, mounts=(), env=(), code=(0,)):
    """Runs a command in the image. Limits are those of a process that may not raise its own."""
    flags = [word for mount in mounts for word in ("-v", mount)] + [word for value in env for word in ("-e", value)]
    return podman("--runtime", shutil.which("runc"), "run", "--rm", "--network", "host", "--cgroupns", "host", "--ulimit", "nofile=1024:1024",
                  "--ulimit", "nproc=1000:1000", *flags, "localhost/gpumemtopo", *command, code=code)


work.mkdir(parents=True, exist_ok=True)
(work / "storage.conf").write_text(f'[storage]\ndriver = "vfs"\nrunroot = "{work}/run"\ngraphroot = "{work}/graph"\n')
out = work / "out"
shutil.rmtree(out, ignore_errors=True)
out.mkdir()
try:
    make_base("localhost/base")
    make_image("localhost/gpumemtopo")
    assert "Usage: " in start(), "without a command it prints the help"
    said = start("gpumemtopo-survey", "--version")
    assert re.search(r"CUDA backend: yes", said) and re.search(r"Open MPI: \S*libmpi\.so", said) and re.search(r"MPICH: \S*libmpich\.so", said), said
    # The demo fleet, alone and with two ranks; a page of it.
    demo = ["gpumemtopo-survey", "--simulate", f"{SHARE}/fleets/demo.yaml", "--profile", "quick"]
    start(*demo, "-o", "/out/demo.yaml", "--html", "/out/demo.html", mounts=[f"{out}:/out"], code=(4,))
    assert "20 GPUs on 5 nodes" in start("gpumemtopo-report", "show", "/out/demo.yaml", mounts=[f"{out}:/out"])
    start("gpumemtopo-report", "html", "/out/demo.yaml", "-o", "/out/page.html", mounts=[f"{out}:/out"])
    assert "<html" in (out / "page.html").read_text() and "<html" in (out / "demo.html").read_text()
    start("mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", *demo, "-o", "/out/two.yaml", mounts=[f"{out}:/out"], code=(4,))
    assert "ranks: 2," in (out / "two.yaml").read_text()
    # No driver, then the driver as NVIDIA's toolkit brings it: files with its version, and a cache of ldconfig.
    assert "no NVIDIA driver" in start("gpumemtopo-survey", "-o", "/out/none.yaml", mounts=[f"{out}:/out"], code=(1,))
    stand_ins = {"libcuda": build / "tests/device/cuda/libcuda.so.1", "libnvidia-ml": build / "tests/device/cuda/nvml/libnvidia-ml.so.1"}
    driver = [f"{path.resolve()}:{LIBRARIES}/{name}.so.580.65.06:ro" for name, path in stand_ins.items()]
    start("sh", "-c", "ldconfig && gpumemtopo-survey --probes main.latency,links -o /out/gpus.yaml", mounts=[f"{out}:/out", *driver],
          env=["FAKE_CUDA_DEVICES=2", "FAKE_CUDA_MEMORY=160"], code=(0, 3))
    found = (out / "gpus.yaml").read_text()
    assert "backend: cuda" in found and "gpus: 2, measured: 2," in found, found[:600]
    # The kit has all that it needs.
    (out / "fleet.yaml").write_text(f"nodes: [{{name: n1, gpus: 2, model: {SHARE}/sim/demo-h8.yaml}}]\n")
    said = start("gpumemtopo-kit", "--simulate", "/out/fleet.yaml", "--only", "quick-1,quick-2,repeat,replay,openmpi,reports", "-o", "/out/kit.tar.gz",
                 mounts=[f"{out}:/out"])
    assert "FAILED: 0" in said and "It may be sent" in said, said
    print(said)
finally:
    podman("rm", "-af", code=range(256))
    podman("rmi", "-af", code=range(256))
