#!/bin/sh
# Converts records of versions 1 to 3 to the version of this tree: convert.sh BUILD IN.gmr OUT.gmr [IN OUT ...]
# BUILD is a build folder of this tree. The reader of versions 1 and 2 is built from the last revision that has it.
set -eu
old=ad0dcda8
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$(cd "$1" && pwd)
shift
work=$build/convert-record
ninja -C "$build" tools/convert-record/import > /dev/null
if [ ! -x "$work/export" ]; then
    rm -rf "$work"
    mkdir -p "$work/old"
    git -C "$root" archive "$old" src | tar -x -C "$work/old"
    cd "$work/old/src"
    # shellcheck disable=SC2046
    ${CC:-cc} -std=c11 -D_GNU_SOURCE -O1 -I. -DGPUMEMTOPO_SHIPPED_PLACES='"x"' -ffunction-sections \
        -Wl,--gc-sections -o "$work/export" "$here/export.c" $(ls base/*.c | grep -v yaml) inventory/*.c \
        inventory/wire/*.c inventory/yaml/scalar.c device/*.c device/replay/*.c -lm
    cd "$OLDPWD"
fi
while [ $# -ge 2 ]; do
    case $(od -An -tu4 -j8 -N4 "$1" | tr -d ' ') in
    1 | 2)
        "$work/export" "$1" | "$build/tools/convert-record/import" "$2.3"
        python3 "$here/marks.py" "$2.3" "$2"
        rm "$2.3"
        ;;
    3) python3 "$here/marks.py" "$1" "$2" ;;
    *) echo "$1: not a record of version 1, 2 or 3" >&2 && exit 1 ;;
    esac
    shift 2
done
