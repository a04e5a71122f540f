"""Recipes for Spack, EasyBuild, containers and packages use options, files, flags and versions that exist:
recipes.py SOURCE_ROOT BUILD

A renamed option, file, program or package fails here. None of these tools is needed: the recipes are read as the
languages that they are written in.
"""
import pathlib
import re
import sys
import tempfile
import types

import installed
import made

root, build = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
sys.path.insert(0, str(root / "tools"))
import project  # noqa: E402
import versions  # noqa: E402

PACKAGING = root / "packaging"
SPACK = PACKAGING / "spack/spack_repo/gpumemtopo/packages/gpumemtopo/package.py"
EASYCONFIG = next(PACKAGING.glob("easybuild/*.eb"))
CONTAINERS = [PACKAGING / "Containerfile", PACKAGING / "gpumemtopo.def"]
OWN_OPTIONS = set(re.findall(r"^option\('([^']+)'", (root / "meson_options.txt").read_text(), re.M))


def check_options(name, text):
    """Options of meson that a recipe sets."""
    used = re.findall(r"-D([a-z_-]+)=", text)
    assert used, f"{name} sets no option"
    unknown = set(used) - OWN_OPTIONS
    assert not unknown, f"{name}: meson_options.txt has no {unknown}"


def load_spack():
    """Executes package.py with replacements that write down the directives."""
    said = {"version": [], "depends_on": [], "variant": [], "license": []}
    spack = types.ModuleType("spack.package")
    for word, calls in said.items():
        setattr(spack, word, lambda *args, calls=calls, **more: calls.append((args, more)))
    spack.MesonPackage = type("MesonPackage", (), {})
    spack.run_after = spack.on_package_attributes = lambda *args, **more: lambda function: function
    spack.Executable = spack.join_path = None
    sys.modules.update({"spack": types.ModuleType("spack"), "spack.package": spack})
    space = {}
    exec(compile(SPACK.read_text(encoding="utf-8"), SPACK, "exec"), space)
    return space["Gpumemtopo"], said


class Spec:
    def __init__(self, cuda, archs):
        self.cuda, self.variants = cuda, {"cuda_arch": types.SimpleNamespace(value=archs)}

    def satisfies(self, what):
        assert what == "+cuda", what
        return self.cuda


def check_spack():
    package, said = load_spack()
    variants = {args[0] for args, _ in said["variant"]}
    assert variants == {"cuda", "cuda_arch"}, variants
    for cuda, archs in ((True, ("none",)), (False, ("none",)), (True, ("80", "90"))):
        one = package()
        one.spec, one.run_tests = Spec(cuda, archs), False
        arguments = one.meson_args()
        check_options("package.py", " ".join(arguments))
        assert f"-Dcuda={'enabled' if cuda else 'disabled'}" in arguments, arguments
        chosen = [arch for arch in archs if arch != 'none'] or ['all']
        assert f"-Dcuda-arch={','.join(chosen)}" in arguments, arguments
    wanted = {args[0].split("@")[0]: more for args, more in said["depends_on"]}
    assert {"meson", "ninja", "pkgconfig", "python", "mpi", "libyaml", "cmocka", "cuda", "c"} == set(wanted), wanted
    assert wanted["cuda"]["type"] == "build", "the programs do not need CUDA to start"
    least = re.search(r"meson_version: '>=([\d.]+)'", (root / "meson.build").read_text()).group(1)
    assert any(args[0] == f"meson@{least}:" for args, _ in said["depends_on"]), f"meson_version is {least}"
    assert one.url_for_version("1.2.3").endswith("/gpumemtopo-1.2.3.tar.xz")
    repository = (SPACK.parents[2] / "repo.yaml").read_text()
    assert f"namespace: {SPACK.parents[2].name}\n" in repository, repository


def check_easyconfig(tree):
    text = EASYCONFIG.read_text(encoding="utf-8")
    space = {"SYSTEM": {"name": "system", "version": "system"}}
    exec(compile(text, EASYCONFIG, "exec"), space)
    check_options(EASYCONFIG.name, space["configopts"])
    toolchain = "-".join((space["toolchain"]["name"], space["toolchain"]["version"]))
    cuda = next(row[1] for row in space["builddependencies"] if row[0] == "CUDA")
    suffix = space["versionsuffix"] % {"cudaver": cuda}
    assert EASYCONFIG.name == f"{space['name']}-{space['version']}-{toolchain}{suffix}.eb", EASYCONFIG.name
    assert space["sources"] == ["%(name)s-%(version)s.tar.xz"], space["sources"]
    paths = space["sanity_check_paths"]
    assert paths["files"] and all((tree / name).is_file() for name in paths["files"]), paths
    assert paths["dirs"] and all((tree / name).is_dir() for name in paths["dirs"]), paths
    assert [line.split()[0] for line in space["sanity_check_commands"]] == installed.PROGRAMS
    assert "CUDA" not in [row[0] for row in space["dependencies"]], "the programs do not need CUDA to start"


def check_programs(name, text, tree):
    """Each program with a flag in a recipe exists and has that flag."""
    found = re.findall(r"(?<![\w/.-])(gpumemtopo-[a-z]+)((?: +--?[a-z][a-z-]*)*)", text.replace('", "', " "))
    assert {program for program, _ in found} >= set(installed.PROGRAMS), f"{name}: {found}"
    for program, flags in found:
        assert program in installed.PROGRAMS, f"{name}: there is no program {program}"
        helped = made.run(tree / "bin" / program, "--help")
        for flag in flags.split():
            assert re.search(rf"(?<!\S){flag}\b", helped), f"{name}: {program} has no {flag}"


def build_packages():
    """Packages that ./survey installs to build."""
    return set(re.search(r'local wanted="([^"]+)"', (root / "tools/setup.sh").read_text()).group(1).split())


def check_container(path, tree):
    text = path.read_text(encoding="utf-8")
    check_options(path.name, text)
    check_programs(path.name, re.sub(r"gpumemtopo\.(sif|def)", "", text), tree)
    first = re.search(r"apt-get install -y --no-install-recommends ([\w\s\\+.-]+)", text).group(1).split()
    missing = build_packages() - set(first)
    assert not missing, f"{path.name} does not install {missing} to build"
    assert "gpumemtopo-*.tar.xz" in text and "/opt/gpumemtopo" in text
    final = text[re.search(r"^FROM \$\{BASE_IMAGE\}|^Stage: final", text, re.M).start():]
    assert not re.search("cuda", final.replace("no CUDA", ""), re.I), f"{path.name}: CUDA in the final image"


def check_definition():
    """The sections of the Apptainer definition, as its parser would find them."""
    lines = (PACKAGING / "gpumemtopo.def").read_text(encoding="utf-8").split("\n")
    headers = [line for line in lines if re.match(r"(Bootstrap|From|Stage): \S", line)]
    assert [line.split(":")[0] for line in headers] == ["Bootstrap", "From", "Stage"] * 2, headers
    sections = [line for line in lines if line.startswith("%")]
    known = {"%files", "%post", "%environment", "%test", "%runscript", "%help"}
    assert {line.split()[0] for line in sections} == known, sections
    assert "%files from build" in sections and "Stage: build" in headers
    for line in lines:
        assert not line or line[0] in " #%" or line in headers, f"outside of a section: {line}"


def check_containerfile():
    """Each instruction is one that container builders know; stages exist before they are used."""
    text = re.sub(r"\\\n", " ", (PACKAGING / "Containerfile").read_text(encoding="utf-8"))
    lines = [line for line in text.split("\n") if line and not line.startswith("#")]
    assert {line.split()[0] for line in lines} <= {"ARG", "FROM", "RUN", "COPY", "ENV", "CMD"}, lines
    stages = re.findall(r"^FROM .* AS (\w+)$", text, re.M)
    assert set(re.findall(r"--from=(\w+)", text)) == set(stages), stages
    assert set(re.findall(r"\$\{(\w+)\}", text)) <= set(re.findall(r"^ARG (\w+)=", text, re.M))


def check_health_settings():
    """Every setting in health.conf is one that health.sh explains."""
    explained = set(re.findall(r"^#   (\w+)=", (root / "slurm/health.sh").read_text(), re.M))
    named = set(re.findall(r"^#(\w+)=", (PACKAGING / "health.conf").read_text(), re.M))
    assert named and named <= explained, named - explained


def check_documents():
    """docs/PACKAGES.md names every recipe, and no file that is not there."""
    text = (root / "docs/PACKAGES.md").read_text(encoding="utf-8")
    for path in [*CONTAINERS, SPACK, EASYCONFIG, PACKAGING / "lmod/gpumemtopo.lua", PACKAGING / "gpumemtopo.spec"]:
        name = re.sub(r"-\d+\.\d+\.\d+-", "-VERSION-", str(path.relative_to(root)))
        assert f"`{name}`" in text, f"docs/PACKAGES.md does not name {name}"


with tempfile.TemporaryDirectory() as name:
    installed.staged(build, pathlib.Path(name))
    tree = next(pathlib.Path(name).rglob("bin/gpumemtopo-survey")).parent.parent
    assert not versions.differing(root), versions.differing(root)
    assert not project.write(root, only_compare=True), "run tools/release project"
    log = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## {re.escape(versions.read(root))}, \d{{4}}-\d\d-\d\d$", log, re.M), "no section in CHANGELOG.md"
    check_spack()
    check_easyconfig(tree)
    for recipe in CONTAINERS:
        check_container(recipe, tree)
    check_definition()
    check_containerfile()
    check_options("debian/rules", (root / "debian/rules").read_text())
    check_options("gpumemtopo.spec", (PACKAGING / "gpumemtopo.spec").read_text())
    check_health_settings()
    check_documents()
