"""The shipped configuration with another policy: what is certain is in `outliers`, however small the loss is, and what is
not is in `watch`. For tests that are about evidence, not about actions."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]


def config(folder):
    path = pathlib.Path(folder, "sure.yaml")
    shipped = (ROOT / "configs/survey.yaml").read_text()
    path.write_text(re.sub(r"(?ms)^policy:\n.*", "policy: {tell: 0 %, alert: 0 %}\n", shipped))
    return path
