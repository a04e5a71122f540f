"""A STAND-IN for ReFrame, which is not in Debian: the directives, hooks and sanity functions that the test of
integrations/reframe uses, and the stages run, sanity and performance for one class on this machine.

As in ReFrame, the directives are names in the body of the class, and a variable without a value must be set.
"""
import os
import subprocess
import sys
import types


class SanityError(Exception):
    """The test ran, but its result is not as it must be."""


class RequiredVariable(Exception):
    """A variable without a value."""


class Variable:
    def __init__(self, *types_, **more):
        assert set(more) <= {"value"}, more
        self.types, self.more = types_, more


class Body(dict):
    """The body of a class: directives are there without an import."""

    def __init__(self):
        super().__init__()
        self.hooks, self.performance, self.sanity = [], {}, None
        self["variable"] = Variable
        self["run_before"] = lambda stage: lambda function: self.hooks.append((stage, function)) or function
        self["sanity_function"] = self.set_sanity
        self["performance_function"] = self.add_performance

    def set_sanity(self, function):
        assert self.sanity is None, "one sanity function"
        self.sanity = function
        return function

    def add_performance(self, unit):
        def keep(function):
            self.performance[function.__name__] = (unit, function)
            return function
        return keep


class Meta(type):
    @classmethod
    def __prepare__(cls, name, bases):
        return Body()

    def __new__(cls, name, bases, body):
        directives = {"variable", "run_before", "sanity_function", "performance_function"}
        made = super().__new__(cls, name, bases, {key: value for key, value in body.items() if key not in directives})
        made.body_ = body
        return made


# Attributes of RegressionTest that may be set in a class.
KNOWN = {"descr", "valid_systems", "valid_prog_environs", "executable", "executable_opts", "postrun_cmds", "num_tasks",
         "exclusive_access", "time_limit", "keep_files", "reference"}


class RunOnlyRegressionTest(metaclass=Meta):
    executable_opts, postrun_cmds = [], []


def run_stages(test, stagedir, env, **variables):
    """What a run of the class gives: {name: (value, unit)} of its performance functions. SanityError if it fails."""
    body = test.body_
    for name, value in vars(test).items():
        plain = not callable(value) and not name.startswith("_") and name != "body_" and not isinstance(value, Variable)
        assert not plain or name in KNOWN, f"ReFrame has no attribute {name}"
    for name, value in list(vars(test).items()):
        if isinstance(value, Variable):
            if name not in variables and "value" not in value.more:
                raise RequiredVariable(name)
            variables.setdefault(name, value.more.get("value"))
            assert isinstance(variables[name], value.types), name
    assert body.sanity, "a test that only runs needs a sanity function"
    one = test()
    one.stagedir = str(stagedir)
    for name, value in variables.items():
        setattr(one, name, value)
    for stage, function in body.hooks:
        assert stage in ("init", "setup", "compile", "run", "sanity", "performance", "cleanup"), stage
        function(one)
    # The script of the job; ReFrame looks at its exit code only if told so.
    lines = [" ".join([one.executable, *one.executable_opts]), *one.postrun_cmds]
    with open(os.path.join(stagedir, "rfm_job.sh"), "w", encoding="utf-8") as file:
        file.write("#!/bin/bash\n" + "\n".join(lines) + "\n")
    with open(os.path.join(stagedir, "rfm_job.out"), "w", encoding="utf-8") as said:
        subprocess.run(["bash", "rfm_job.sh"], cwd=stagedir, env=env, check=False, stdin=subprocess.DEVNULL, stdout=said,
                       stderr=said)
    if not body.sanity(one):
        raise SanityError("the sanity function returned false")
    return {name: (function(one), unit) for name, (unit, function) in body.performance.items()}


def assert_eq(a, b, msg=None):
    if a != b:
        raise SanityError((msg or "{0} != {1}").format(a, b))
    return True


def install():
    """import reframe gives this from now on."""
    modules = {"reframe": {"simple_test": lambda test: test, "RunOnlyRegressionTest": RunOnlyRegressionTest},
               "reframe.utility": {}, "reframe.utility.sanity": {"assert_eq": assert_eq, "all": all},
               "reframe.core": {}, "reframe.core.exceptions": {"SanityError": SanityError}}
    for name, content in modules.items():
        module = types.ModuleType(name)
        module.__dict__.update(content)
        sys.modules[name] = module
        if "." in name:
            parent, _, child = name.rpartition(".")
            setattr(sys.modules[parent], child, module)
