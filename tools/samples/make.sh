#!/usr/bin/env bash
# Makes the samples in reports/: make.sh SURVEY REPORT SOURCE_ROOT FOLDER [PREDICT]. Surveys the demo fleet and writes
# a page of each inventory in FOLDER. Inventories of real GPUs are not changed. If FOLDER is reports/ itself,
# it also checks the quotations in documents and draws the pictures of README.md, docs/report.md and
# docs/PREDICT-TUTORIAL.md.
set -euo pipefail
survey=$(realpath "$1") report=$(realpath "$2") root=$(realpath "$3") folder=$(realpath "$4")
predict=$(realpath "${5:-.}") # for the pictures
cd "$root" # so that the inventory has no path of this machine in it
export GPUMEMTOPO_CONFIG_DIR=$root/configs
code=0
"$survey" --simulate configs/fleets/demo.yaml --quiet -o - >"$folder/demo.yaml.new" || code=$?
[ "$code" -eq 3 ] || [ "$code" -eq 4 ] # the fleet has outliers and a GPU that crashes
mv "$folder/demo.yaml.new" "$folder/demo.yaml"
for inventory in "$folder"/*.yaml; do
    "$report" html -o "${inventory%.yaml}.html" "$inventory"
done
if [ "$folder" = "$root/reports" ]; then
    python3 "$root/tools/samples/readme.py" "$report" "$root"
    python3 "$root/tools/samples/picture.py" reports/demo.html docs/report.png
    "$root/tools/samples/load.sh" "$survey" "$report" "$root"
    "$root/tools/samples/predict.sh" "$predict" "$root"
fi
