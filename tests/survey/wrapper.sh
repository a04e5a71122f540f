#!/bin/sh
# ./survey around a stand-in for mpirun and the program: signals, exit codes, -h.
# usage: wrapper.sh SOURCE_ROOT
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/tools" "$folder/bin" "$folder/build/src/survey"
cp "$1/survey" "$folder/survey"
echo 'setup_packages() { :; }; setup_build() { :; }' >"$folder/tools/setup.sh"
# mpirun with one rank below it; it must not be signalled itself.
cat >"$folder/bin/mpirun" <<'END'
#!/bin/sh
echo "$*" >"$MARKS/arguments"
case $* in
--version) echo "${VERSION_OF_MPIRUN:-mpirun (Open MPI) 4.1.4}"; exit 0 ;;
*--quick*) echo 3 >"$GPUMEMTOPO_EXIT_FILE"; exit 0 ;;
*--words*)
    for word in one two three; do echo "rank says $word" >>"$GPUMEMTOPO_STDERR"; done
    echo 0 >"$GPUMEMTOPO_EXIT_FILE"
    exit 0
    ;;
*--lost*) echo "words of mpirun" >&2; exit 7 ;;
*--rank-0-dies*) echo "words of mpirun" >&2; exit 0 ;;
esac
trap 'echo x >>"$MARKS/launcher_signals"' TERM
sh "$MARKS/rank" &
wait $!
END
cat >"$folder/rank" <<'END'
trap 'echo x >>"$MARKS/signals"; sleep 0.3; echo 4 >"$GPUMEMTOPO_EXIT_FILE"; exit 0' TERM
echo x >>"$MARKS/started"
for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.5 & wait $!; done
echo 0 >"$GPUMEMTOPO_EXIT_FILE"
END
printf '#!/bin/sh\necho "program $*"\n' >"$folder/build/src/survey/gpumemtopo-survey"
cat >"$folder/bin/mpiexec.hydra" <<'END'
#!/bin/sh
echo "$*" >"$MARKS/hydra"
echo 3 >"$GPUMEMTOPO_EXIT_FILE"
END
chmod +x "$folder/bin/mpiexec.hydra" "$folder/bin/mpirun" "$folder/build/src/survey/gpumemtopo-survey"
export PATH="$folder/bin:$PATH" MARKS="$folder"

fail() {
    echo "FAILED: $1"
    exit 1
}

code=0
"$folder/survey" --simulate x --quick || code=$?
[ "$code" -eq 3 ] || fail "exit code of the survey: $code"
# The page beside the inventory, unless the user names an output.
grep -q -e '--simulate x --quick --page$' "$folder/arguments" || fail "no page: $(cat "$folder/arguments")"
for output in -oy "-o y" --output=y "--html y" --quiet; do
    # shellcheck disable=SC2086 # a flag and its value
    "$folder/survey" --simulate x --quick $output || true
    ! grep -q -e --page "$folder/arguments" || fail "a page with $output"
done
# Hydra where there is no Open MPI, or where it is asked for.
[ ! -f "$folder/hydra" ] || fail "Hydra was started"
for setting in VERSION_OF_MPIRUN="HYDRA build details" GPUMEMTOPO_LAUNCHER=mpiexec.hydra; do
    code=0
    env "$setting" "$folder/survey" --simulate x --lost || code=$?
    [ "$code" -eq 3 ] && grep -q -e '-disable-auto-cleanup -n 4 .*gpumemtopo-survey --simulate x' "$folder/hydra" ||
        fail "$setting: $code"
    rm "$folder/hydra"
done
code=0
"$folder/survey" --simulate x --lost 2>"$folder/said" || code=$?
[ "$code" -eq 1 ] && grep -q 'mpirun returned 7' "$folder/said" || fail "no result: $code"
grep -q 'words of mpirun' "$folder/said" || fail "why mpirun failed is not said"
code=0
"$folder/survey" --simulate x --rank-0-dies 2>"$folder/said" || code=$?
[ "$code" -eq 1 ] || fail "rank 0 died: $code"
! grep -q 'words of mpirun' "$folder/said" || fail "words of the launcher"
[ "$("$folder/survey" -h 2>&1)" = "program -h" ] || fail "-h"

# Words in order in a file that others write too, and nowhere when stderr is closed.
sh -c 'echo before >&2; "$0/survey" --simulate x --words; echo after >&2' "$folder" 2>"$folder/said"
printf 'before\nrank says %s\nrank says %s\nrank says %s\nafter\n' one two three |
    cmp - "$folder/said" || fail "words are lost or out of order"
code=0
"$folder/survey" --simulate x --words 2>&- || code=$?
[ "$code" -eq 0 ] || fail "stderr closed: $code"
cmp "$1/survey" "$folder/survey" || fail "words went into the script"

"$folder/survey" --simulate x &
survey=$!
for _ in $(seq 100); do
    [ ! -f "$folder/started" ] || break
    sleep 0.1
done
sleep 1
kill -TERM "$survey"
code=0
wait "$survey" || code=$?
[ "$code" -eq 4 ] || fail "the report of an interrupted survey was not waited for: $code"
[ "$(wc -l <"$folder/signals")" -eq 1 ] || fail "a rank got more than one signal"
[ ! -f "$folder/launcher_signals" ] || fail "mpirun was signalled"
