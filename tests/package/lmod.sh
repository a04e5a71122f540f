#!/usr/bin/env bash
# The modulefile in the real Lmod: lmod.sh SOURCE_ROOT BUILD VERSION. Skipped where Lmod is not installed.
set -euo pipefail
root=$1 build=$2 version=$3
init=
for place in /usr/share/lmod/lmod/init/bash /usr/share/lmod/lmod/init/profile /opt/apps/lmod/lmod/init/bash; do
    [ -n "$init" ] || [ ! -r "$place" ] || init=$place
done
if [ -z "$init" ]; then
    echo "Lmod is not installed"
    exit 77
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
meson install -C "$build" --destdir "$scratch/staged" --no-rebuild --quiet
bin=$(dirname "$(find "$scratch/staged" -name gpumemtopo-survey -path '*/bin/*')")
export GPUMEMTOPO_ROOT=${bin%/bin}
mkdir -p "$scratch/modules/gpumemtopo"
cp "$root/packaging/lmod/gpumemtopo.lua" "$scratch/modules/gpumemtopo/$version.lua"
export HOME=$scratch LMOD_PAGER=none BASH_ENV='' MODULEPATH=$scratch/modules
unset MANPATH XDG_DATA_DIRS
set +eu # Lmod's own script does not run with them
# shellcheck disable=SC1090
. "$init"
module load "gpumemtopo/$version" >"$scratch/said" 2>&1
set -eu

fail() {
    echo "$1"
    cat "$scratch/said"
    exit 1
}
[ "$(command -v gpumemtopo-survey)" = "$bin/gpumemtopo-survey" ] || fail "gpumemtopo-survey is not in the path"
gpumemtopo-survey --version | grep -qF "$version" || fail "it has another version"
case ${MANPATH-} in
"$GPUMEMTOPO_ROOT/share/man"*) ;;
*) fail "MANPATH is ${MANPATH-}" ;;
esac
[ -f "$GPUMEMTOPO_ROOT/share/man/man1/gpumemtopo-survey.1" ] || fail "there is no man page"
[ -f "${XDG_DATA_DIRS%%:*}/bash-completion/completions/gpumemtopo-survey" ] || fail "XDG_DATA_DIRS is ${XDG_DATA_DIRS-}"
set +eu
module whatis "gpumemtopo/$version" >"$scratch/said" 2>&1
grep -qF "Version: $version" "$scratch/said" || fail "whatis has no version"
module help "gpumemtopo/$version" >"$scratch/said" 2>&1
for program in gpumemtopo-survey gpumemtopo-report gpumemtopo-predict; do
    grep -qF "$program --help" "$scratch/said" || fail "help does not name $program"
    [ -x "$bin/$program" ] || fail "there is no $program"
done
module unload gpumemtopo >"$scratch/said" 2>&1
case :$PATH: in
*":$bin:"*) fail "PATH is $PATH after unload" ;;
esac
