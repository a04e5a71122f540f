#!/usr/bin/env bash
# Each header compiles alone, with the warnings of the build.
set -euo pipefail
cd "$1"
find src -name '*.h' ! -path 'src/device/cuda/*' -print0 |
    xargs -0 -n 1 cc -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -Isrc -fsyntax-only -x c
