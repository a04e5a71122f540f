"""Never run in Spack: a test executes it with replacements for Spack's directives.

Spack package of gpumemtopo. `tools/release` writes a copy of this file with the checksum of the tarball.

Put that copy here, then, in the folder of the tarball:
    spack repo add .../packaging/spack/spack_repo/gpumemtopo
    spack install gpumemtopo
"""
import os

from spack.package import *

try:  # Spack 1.0 and later
    from spack_repo.builtin.build_systems.meson import MesonPackage
except ImportError:  # before, spack.package has it
    pass


class Gpumemtopo(MesonPackage):
    """Measures the memory hierarchy of every NVIDIA GPU of a cluster and lists the GPUs that differ from the
    others of their model."""

    # There is no download: Spack takes the tarball from the current folder or from a mirror.
    manual_download = True
    license("BSD-3-Clause")
    url = f"file://{os.getcwd()}/gpumemtopo-0.0.0.tar.xz"

    version("0.2.0", sha256="CHECKSUM_OF_THE_TARBALL")

    variant("cuda", default=True, description="CUDA backend: needs the toolkit to build, the driver only to measure")
    variant("cuda_arch", default="none", multi=True, description="CUDA architectures; none: all that the toolkit knows",
            values=("none", "70", "75", "80", "86", "89", "90", "100", "120"))

    depends_on("c", type="build")
    depends_on("meson@1.0:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python@3:", type="build")
    depends_on("mpi")
    depends_on("libyaml")
    depends_on("cmocka", type="test")
    # The driver is loaded at run time, so the toolkit is not linked.
    depends_on("cuda@12:", type="build", when="+cuda")

    def url_for_version(self, version):
        return f"file://{os.getcwd()}/gpumemtopo-{version}.tar.xz"

    def meson_args(self):
        archs = [arch for arch in self.spec.variants["cuda_arch"].value if arch != "none"]
        return [
            "-Dcuda=" + ("enabled" if self.spec.satisfies("+cuda") else "disabled"),
            "-Dcuda-arch=" + ",".join(archs or ["all"]),
            "-Dtests=" + ("enabled" if self.run_tests else "disabled"),
        ]

    def setup_build_environment(self, env):
        if self.spec.satisfies("+cuda"):
            env.set("CUDA_HOME", self.spec["cuda"].prefix)

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_install(self):
        for name in ("gpumemtopo-survey", "gpumemtopo-report", "gpumemtopo-predict"):
            Executable(join_path(self.prefix.bin, name))("--version")
