"""An installed tree, moved elsewhere, works from any folder: install.py MESON BUILD PREFIX"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

meson, build, prefix = sys.argv[1:4]
work = pathlib.Path(tempfile.mkdtemp())
FILES = ["bin/gpumemtopo-survey", "bin/gpumemtopo-report", "bin/gpumemtopo-predict", "bin/gpumemtopo-kit", "share/gpumemtopo/survey.yaml",
         "share/gpumemtopo/models/h200.yaml", "share/gpumemtopo/fleets/demo.yaml", "share/gpumemtopo/orders/demo.yaml",
         "share/gpumemtopo/inventory.schema.json", "share/man/man1/gpumemtopo-survey.1",
         "share/man/man1/gpumemtopo-report.1", "share/man/man1/gpumemtopo-kit.1", "share/man/man1/gpumemtopo-predict.1", "share/man/man5/gpumemtopo-inventory.5",
         "share/gpumemtopo/slurm/survey.sbatch", "share/gpumemtopo/slurm/health.sh",
         "share/gpumemtopo/slurm/prolog.sh", "share/gpumemtopo/slurm/epilog.sh", "share/gpumemtopo/slurm/array.sh",
         "share/gpumemtopo/watch/gpumemtopo.rules.yml", "share/gpumemtopo/watch/dashboard.json",
         "share/gpumemtopo/integrations/check-node.sh",
         "share/bash-completion/completions/gpumemtopo-survey",
         "share/bash-completion/completions/gpumemtopo-report",
         "share/bash-completion/completions/gpumemtopo-predict"]


def run(*args, code=(0,)):
    done = subprocess.run(args, cwd=elsewhere, env={"PATH": "/usr/bin:/bin", "HOME": str(elsewhere)},
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    said = done.stdout.decode() + done.stderr.decode()
    assert done.returncode in code, f"{args}: exit {done.returncode}: {said}"
    return said


try:
    subprocess.run([meson, "install", "-C", build, "--destdir", work / "staged", "--no-rebuild", "--quiet"], check=True)
    here, elsewhere = work / "moved" / "there", work / "elsewhere"
    here.parent.mkdir()
    elsewhere.mkdir()
    shutil.move(str(work / "staged") + prefix, here)
    missing = [name for name in FILES if not (here / name).exists()]
    assert not missing, f"not installed: {missing}"
    survey, report, share = here / "bin/gpumemtopo-survey", here / "bin/gpumemtopo-report", here / "share/gpumemtopo"
    fleet = elsewhere / "fleet.yaml"
    fleet.write_text("nodes:\n  - {name: n1, gpus: 2, model: %s/sim/demo-h8.yaml}\n" % share)
    run(survey, "--simulate", fleet, "--profile", "quick", "--quiet", "-o", "out.yaml")
    run(report, "validate", "out.yaml")
    run(report, "html", "out.yaml", "-o", "out.html")
    assert "It may be sent" in run(here / "bin/gpumemtopo-kit", "--simulate", fleet, "--only", "quick-1,replay", "-o", "kit.tar.gz")
    assert "Demo H8" in run(report, "show", "out.yaml")
    assert "gpumemtopo" in run(survey, "--version")
    # Without a GPU it names a fleet that is there.
    if not list(pathlib.Path("/dev").glob("nvidia[0-9]*")):
        said = run(survey, "-o", "none.yaml", code=(1,))
        assert f"--simulate {share.resolve()}/fleets/demo.yaml surveys" in said, said
    # Its own configuration, and no other, is what it reads.
    with open(share / "survey.yaml", "a", encoding="utf-8") as file:
        file.write("surprise: 1\n")
    said = run(survey, "--simulate", fleet, "--profile", "quick", "-o", "out.yaml", code=(2,))
    assert f"{share.resolve()}/survey.yaml" in said.replace("/bin/../", "/") and "surprise" in said, said
    os.symlink(survey, elsewhere / "link")
    assert "surprise" in run(elsewhere / "link", "--simulate", fleet, "-o", "out.yaml", code=(2,))
finally:
    shutil.rmtree(work)
