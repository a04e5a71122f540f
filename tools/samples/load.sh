#!/usr/bin/env bash
# Draws docs/load.png: load.sh SURVEY REPORT SOURCE_ROOT. Surveys the fleet of load.yaml; the picture has load curves,
# maps of the die and of the memory, and a matrix of links.
set -euo pipefail
survey=$(realpath "$1") report=$(realpath "$2") root=$(realpath "$3")
cd "$root"
export GPUMEMTOPO_CONFIG_DIR=$root/configs
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
code=0
"$survey" --simulate tools/samples/load.yaml --profile full --probes load,memory.whole,links,die.map,sm --quiet \
    -o "$folder/load.yaml" || code=$?
[ "$code" -eq 3 ] # the fleet has outliers
"$report" html -o "$folder/load.html" "$folder/load.yaml"
python3 tools/samples/picture.py "$folder/load.html" docs/load.png 'article:has(details.load)' '#links h3' '#links .wide' \
    'details:has(svg.die)' 'details:has(i[title^=region])'
