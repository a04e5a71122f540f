#!/bin/bash
# A STAND-IN for LBNL NHC, which is not in Debian: nhc_stand_in.sh SCRIPTS CONF. Like the program nhc it sources all
# scripts, then reads lines "MASK || CHECK" and calls the check if the mask fits the host name. A check that returns
# other than 0, or calls die, makes the node unhealthy (exit 1); with NHC_CHECK_ALL=1 die returns and the rest runs.
HOSTNAME=${HOSTNAME:-$(hostname -s)} NAME=nhc DEBUG=0 FAIL_CNT=0 CHECK=''
function log() { printf '%s\n' "$*"; }
function dbg() { [ "$DEBUG" = 0 ] || printf 'DEBUG:  %s\n' "$*" >&2; }
function die() {
    local RET=1
    if [[ $1 =~ ^[0-9]+$ ]]; then
        RET=$1
        shift
    fi
    CHECK_DIED=1
    log "ERROR:  $NAME:  Health check failed:  $*"
    if [[ ${NHC_CHECK_ALL:-0} == 1 ]]; then
        FAIL_CNT=$((FAIL_CNT + 1))
        return 0
    fi
    exit "$RET"
}
for script in "$1"/*.nhc; do
    # shellcheck disable=SC1090
    . "$script"
done
while read -r line; do
    [[ $line == *'||'* && $line != '#'* ]] || continue
    mask=${line%%||*} mask=${mask%% *} CHECK=${line#*||}
    # shellcheck disable=SC2053 # the mask is a pattern
    [[ $HOSTNAME == $mask ]] || continue
    CHECK_DIED=0
    eval "$CHECK"
    code=$?
    [[ $code -eq 0 || $CHECK_DIED -ne 0 ]] || die "$code" "check \"$CHECK\" returned $code"
done <"$2"
[[ $FAIL_CNT -eq 0 ]] || exit 1
exit 0
