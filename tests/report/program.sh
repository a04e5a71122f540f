#!/bin/sh
# gpumemtopo-report as users call it: exit codes, what goes to stdout and what to stderr.
set -u
report=$(realpath "$1")
print_rich=$(realpath "$2")
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1

# expect CODE PATTERN ARGS...: the exit code, and a pattern in stdout (code 0) or stderr; an
# empty pattern wants silence.
expect() {
    wanted=$1 pattern=$2
    shift 2
    "$report" "$@" >out 2>err
    code=$?
    stream=err
    [ "$wanted" = 0 ] && stream=out
    if [ -z "$pattern" ] && [ -s "$stream" ]; then
        echo "gpumemtopo-report $*: expected silence"
        exit 1
    fi
    if [ "$code" != "$wanted" ] || ! { [ -z "$pattern" ] || grep -q -e "$pattern" "$stream"; }; then
        echo "gpumemtopo-report $*: exit $code, expected $wanted and \"$pattern\"; it said:"
        cat out err
        exit 1
    fi
    if [ "$wanted" != 0 ] && [ -s out ]; then
        echo "gpumemtopo-report $*: failed, and yet wrote to stdout"
        exit 1
    fi
}

"$print_rich" >good.yaml || exit 1
sed 's/measured: 2,/measured: 3,/' good.yaml >contradiction.yaml
sed 's/^watch:/wach:/' good.yaml >misspelt.yaml
sed 's/schema: 1,/schema: 9,/' good.yaml >future.yaml
: >empty.yaml
head -c 1000 good.yaml >cut.yaml
printf '\000\001\377' >binary.yaml

expect 0 'Usage: gpumemtopo-report' --help
expect 0 '^gpumemtopo-report [0-9]' --version
expect 0 '^3 GPUs on 2 nodes' show good.yaml
expect 0 '^after: 2026' diff good.yaml good.yaml
expect 2 'two files' diff good.yaml
expect 2 'missing.yaml: cannot open' diff good.yaml missing.yaml
expect 2 'misspelt.yaml:[0-9]*:1: unknown key' diff misspelt.yaml good.yaml
expect 0 'Usage: gpumemtopo-report json' json --help
expect 2 'did you mean --output' json --outpt x good.yaml
expect 2 'needs a value' json good.yaml --output
expect 2 '--model is given twice; it takes ID\[,ID\]' show --compare --model a --model b good.yaml
expect 2 '--output is given twice' json good.yaml -o a -o b
expect 2 'takes no value' json --mt4g=yes good.yaml
expect 0 'schema' json good.yaml -o -
expect 0 '<!doctype html>' html good.yaml
expect 1 'cannot' html good.yaml -o missing/out.html
expect 0 '' validate good.yaml
expect 0 '' validate good.yaml good.yaml
expect 2 'Usage:'
expect 2 'did you mean "show"' shwo
expect 2 'one file' show
expect 2 'one file' show good.yaml good.yaml
expect 2 'at least one file' validate
expect 2 'missing.yaml: cannot open' validate missing.yaml
expect 2 'misspelt.yaml:[0-9]*:1: unknown key "wach"' show misspelt.yaml
expect 2 'contradiction.yaml: survey.measured is 3' validate good.yaml contradiction.yaml good.yaml
expect 2 'future.yaml:1:22: .*newer' validate future.yaml
expect 2 'empty.yaml:1:1: the file is empty' validate empty.yaml
expect 2 'cut.yaml:' validate cut.yaml
expect 2 'binary.yaml:1:1: not a YAML text file' validate binary.yaml
expect 2 'cannot read' validate .
expect 2 '/dev/zero: is a device' show /dev/zero
sed 's/: \[3051, /: [-3051, /' good.yaml >negative.yaml
sed 's/: \[3051, /: [1e308, /' good.yaml >huge.yaml
expect 2 'main.bandwidth.read is -3051, which is impossible' validate negative.yaml
expect 2 'main.bandwidth.read is 1e+308, which is impossible' validate huge.yaml
sed 's/^    model: .*/    model: other/' good.yaml >foreign.yaml
expect 2 'is of model "other", which the file does not have' validate foreign.yaml
expect 1 'skipped: foreign.yaml: .* is of model "other"' merge foreign.yaml

# An output never replaces what is read, by whatever name.
ln -s good.yaml link.yaml
cp good.yaml kept.yaml
for what in html json prometheus; do
    expect 2 'would replace good.yaml' $what good.yaml -o good.yaml
    expect 2 'would replace link.yaml' $what link.yaml -o ./good.yaml
done
expect 2 'same file' merge good.yaml -c kept.yaml -o kept.yaml
if ! cmp -s good.yaml kept.yaml; then
    echo "an input was replaced"
    exit 1
fi

if "$report" show good.yaml >/dev/full 2>err; then
    echo "a full disk went unnoticed"
    exit 1
fi
exit 0
