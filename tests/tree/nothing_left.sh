#!/usr/bin/env bash
# A test that leaves a process behind fails, with the process named; others keep their exit code.
# usage: nothing_left.sh SOURCE_ROOT
set -u
run=$1/tests/nothing_left.py
fail() { echo "FAILED: $*"; exit 1; }

for code in 0 1 77; do
    "$run" sh -c "exit $code"
    [ $? -eq $code ] || fail "exit code $code"
done
"$run" sh -c 'sleep 0.5 & :' || fail "a process that ends soon"
long=1$$ # seconds: of this test alone
said=$("$run" sh -c "setsid sh -c 'sleep $long & sleep $long' & sleep 0.1" 2>&1) && fail "nothing noticed"
case $said in *"sleep $long"*) ;; *) fail "not named: $said" ;; esac
if grep -qsxz "[1]${long#1}" /proc/[0-9]*/cmdline; then fail "still there"; fi
"$run" sh -c 'kill -SEGV $$' 2>/dev/null
[ $? -eq 139 ] || fail "death by signal"
echo "nothing is left"
