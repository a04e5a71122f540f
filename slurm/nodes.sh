# shellcheck shell=bash
# Sourced by rolling.sh, array.sh and sweep.sh: which nodes a partition has.

# Refuses a partition that Slurm does not know: sinfo would just print nothing.
check_partition() {
    local said
    if ! said=$(scontrol show partition "$1" 2>&1); then
        echo "${0##*/}: partition $1: ${said##*error: }" >&2
        exit 2
    fi
}

# Number of GPUs in a Gres text: 8 for "gpu:h200:8(S:0-1)".
gpus_of() {
    sed 's/([^)]*)//g; s/,/\n/g' <<<"$1" | awk -F: '$1 == "gpu" {n += $NF} END {print n + 0}'
}

# gpu_nodes PARTITION [LIST]: "NODE STATE GPUS" of each node with GPUs that can run jobs. The others are named.
gpu_nodes() {
    local node state gres gpus
    while read -r node state gres; do
        gpus=$(gpus_of "$gres")
        [ "$gpus" -gt 0 ] || continue
        case $state in
        drain* | down* | fail* | error* | unk* | *'*') echo "${0##*/}: $node: $state, skipped" >&2 ;;
        *) echo "$node $state $gpus" ;;
        esac
    done < <(sinfo -h -N -p "$1" ${2:+-n "$2"} -o '%N %T %G' | sort -u)
}

# age_of INVENTORY: "29 h old"
age_of() {
    local made
    made=$(sed -n '1,2s/^gpumemtopo: {.*generated: "\([^"]*\)".*/\1/p' "$1")
    made=$(date -d "${made:-unknown}" +%s 2>/dev/null) || { echo "of unknown age" && return; }
    echo "$((($(date +%s) - made) / 3600)) h old"
}
