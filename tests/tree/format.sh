#!/usr/bin/env bash
# Every C file is as clang-format leaves it. Skipped where clang-format is absent.
set -euo pipefail
cd "$1"
command -v clang-format >/dev/null || exit 77
find src tests \( -name '*.c' -o -name '*.h' \) -print0 | xargs -0 clang-format --dry-run -Werror
