#!/usr/bin/env python3
"""Finds the CUDA toolkits to build with: toolkits.py. Prints a line for each, "13.0 /usr/local/cuda/bin/nvcc ARGUMENT...".

The first one is that of CUDA_HOME, else the newest one, whatever the order of PATH. The second one is of CUDA 11:
that of CUDA11_HOME, else the newest one; there is none if the first one is of CUDA 11. The arguments are what
nvcc needs to find a host compiler that it supports. A toolkit that compiles nothing is named on stderr.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HOST_COMPILERS = [[], ['-ccbin', 'g++-11'], ['-ccbin', 'clang-14'], ['-allow-unsupported-compiler']]


def candidates():
    """All nvcc of this machine by their real path, each once."""
    folders = [pathlib.Path(home) / 'bin' for home in
               [os.environ.get('CUDA_HOME'), os.environ.get('CUDA11_HOME'), '/usr/local/cuda'] if home]
    folders += sorted(pathlib.Path('/usr/local').glob('cuda-*/bin'))
    folders += [pathlib.Path(folder) for folder in os.environ.get('PATH', '').split(':') if folder]
    folders += [pathlib.Path('/usr/bin')]
    found = {}
    for folder in folders:
        nvcc = folder / 'nvcc'
        if os.access(nvcc, os.X_OK):
            found.setdefault(nvcc.resolve(), nvcc)
    return found.values()


def environment(nvcc):
    """Debian's nvcc looks for ptxas in PATH, where that of another toolkit may come first."""
    return dict(os.environ, PATH=f'{nvcc.parent}:{os.environ.get("PATH", "")}')


def version(nvcc):
    text = subprocess.run([nvcc, '--version'], capture_output=True, text=True, check=False).stdout
    release = re.search(r'release (\d+)\.(\d+)', text)
    return (int(release[1]), int(release[2])) if release else (0, 0)


def host_arguments(nvcc):
    """The first arguments with which it compiles an empty file; None if there are none."""
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / 'empty.cu'
        source.write_text('#include <stdint.h>\n')
        for arguments in HOST_COMPILERS:
            if subprocess.run([nvcc, *arguments, '-fatbin', '-std=c++17', '-o', f'{folder}/empty.fatbin', source],
                              env=environment(nvcc), capture_output=True, check=False).returncode == 0:
                return arguments
    return None


def choose(found, variable, versions):
    """The toolkit that the variable names, else the newest one of these versions; None if there is none."""
    home = os.environ.get(variable)
    fitting = [nvcc for nvcc in found if versions(found[nvcc])]
    chosen = [nvcc for nvcc in fitting if home and nvcc.parent == pathlib.Path(home) / 'bin']
    if home and not chosen:
        print(f'{variable}={home}: there is no nvcc of the wanted version', file=sys.stderr)
    chosen += sorted(fitting, key=found.get, reverse=True)
    return chosen[0] if chosen else None


def main():
    found = {nvcc: version(nvcc) for nvcc in candidates()}
    first = choose(found, 'CUDA_HOME', lambda v: v > (0, 0))
    second = choose(found, 'CUDA11_HOME', lambda v: v[0] == 11) if first and found[first][0] > 11 else None
    for nvcc in filter(None, [first, second]):
        arguments = host_arguments(nvcc)
        if arguments is None:
            print(f'{nvcc} finds no host compiler that it supports', file=sys.stderr)
        else:
            print('.'.join(map(str, found[nvcc])), nvcc, *arguments)


main()
