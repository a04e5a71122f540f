#!/usr/bin/env bash
# Draws docs/predict.png: predict.sh PREDICT SOURCE_ROOT. The page of section 6 of docs/PREDICT-TUTORIAL.md, in parts.
set -euo pipefail
predict=$(realpath "$1") root=$(realpath "$2")
cd "$root"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$predict" gesummv spmv gemm_tiled hotspot embedding --size 1024 -i reports/demo.yaml --what-if l1_data.size=128K \
    --quiet -f html -o "$folder/predict.html"
python3 tools/samples/picture.py "$folder/predict.html" docs/predict.png '#all' '#k0 h2' '#k0 .wide:has(.models)' \
    '#k0 .wide:has(.whatif)' '#k0 .reuse'
