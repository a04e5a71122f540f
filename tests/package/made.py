"""Makes the packages of this tree once for all tests: tarball, Debian packages from the tarball, RPMs from the same
build. The first test that asks makes them; the others wait for it. They are made again when a file of the tree has
changed."""
import contextlib
import fcntl
import glob
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import packages  # noqa: E402

SKIPPED = 77
# The fewest kernels, quickly compiled and compressed: what is tested is the package.
CUDA_ARCH, CFLAGS, XZ_OPT = "75", "-Og", "-0"


def skip_without(*tools):
    missing = [tool for tool in tools if not shutil.which(tool)]
    if missing:
        print("not installed:", *missing)
        sys.exit(SKIPPED)


def run(*command, code=(0,), **more):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", **more)
    if done.returncode not in code:
        raise AssertionError(f"{' '.join(map(str, command))}: exit {done.returncode}: {done.stdout[-5000:]}")
    return done.stdout


def tree_files(root):
    """Names of the files that belong to the tree."""
    if (root / ".git").exists():
        names = run("git", "-C", root, "ls-files", "-co", "--exclude-standard", "-z").split("\0")
    else:
        names = [str(path.relative_to(root)) for path in root.rglob("*")
                 if not path.relative_to(root).parts[0].startswith("build")]
    return sorted(name for name in names if name and (root / name).is_file())


def tree_hash(root):
    digest = hashlib.sha256()
    for name in tree_files(root):
        digest.update(name.encode() + b"\0" + (root / name).read_bytes())
    return digest.hexdigest()


def copy_as_repository(root, folder):
    """The tree as one commit, with what is not committed."""
    for name in tree_files(root):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / name, target)
    git = ["git", "-C", folder, "-c", "user.name=test", "-c", "user.email=test@localhost"]
    run(*git, "init", "-q")
    run(*git, "add", "-A")
    run(*git, "commit", "-q", "-m", "the tree", "--no-gpg-sign")


class Made:
    """Paths below one folder; deb and rpm are empty where the tools are missing."""

    def __init__(self, folder):
        self.folder = folder
        self.repository, self.out, self.unpacked = (folder / name for name in ("repository", "out", "unpacked"))
        self.rpm_top = folder / "rpm"

    @property
    def tarball(self):
        return next(self.out.glob("gpumemtopo-*.tar.xz"))

    @property
    def source(self):
        return next(self.unpacked.glob("gpumemtopo-*[0-9]"))

    @property
    def built(self):
        return packages.built(self.source)

    @property
    def debs(self):
        return {path.name.split("_")[0]: path for path in sorted(self.unpacked.glob("*.deb"))}

    @property
    def rpms(self):
        return sorted(pathlib.Path(name) for name in glob.glob(f"{self.rpm_top}/RPMS/*/*.rpm"))


def rpmbuild(made, top, *more):
    packages.make_rpms(made.source, made.tarball, top, CUDA_ARCH, *more)


def make_all(root, made):
    shutil.rmtree(made.folder, ignore_errors=True)
    made.unpacked.mkdir(parents=True)
    copy_as_repository(root, made.repository)
    run(sys.executable, made.repository / "tools/release", "--tarball", "--out", made.out,
        env={**os.environ, "XZ_OPT": XZ_OPT})
    run("tar", "-C", made.unpacked, "-xf", made.tarball)
    packages.make_debs(made.source, CUDA_ARCH, CFLAGS)
    rpmbuild(made, made.rpm_top)


@contextlib.contextmanager
def locked(path):
    with open(path, "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def get(root, folder):
    """A failure is kept as well, so that the other tests do not try again."""
    root, folder = pathlib.Path(root).resolve(), pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    made, state = Made(folder / "made"), folder / "state"
    with locked(folder / "lock"):
        key = tree_hash(root)
        known = state.read_text(encoding="utf-8").split("\n", 1) if state.exists() else ["", ""]
        if known[0] != key:
            failure = ""
            try:
                make_all(root, made)
            except (AssertionError, StopIteration, OSError, packages.Failed) as error:
                failure = str(error)
            state.write_text(f"{key}\n{failure}", encoding="utf-8")
            known = [key, failure]
        assert not known[1], f"the packages could not be made: {known[1]}"
    return made
