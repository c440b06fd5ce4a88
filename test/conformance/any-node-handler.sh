#!/bin/sh
# What nodes under test run. Leaves a mark before and after its work in $1/marks, does what the first line of its payload
# says, and prints the payload.
folder=$1
input="$folder/input.$$"
cat >"$input"
read -r deed <"$input" || :
mark() { echo "$1 $HOLDFAST_ATTEMPT" >>"$folder/marks"; }

if [ "$deed" = busy ] && mkdir "$folder/was-busy" 2>/dev/null; then
  mark busy
  exit 75
fi
mark begin
case "$deed" in
  gone)
    mark end
    echo 'no such target' >&2
    exit 65
    ;;
  dies) kill -9 $$ ;;
  # Where its folder is gone, so is the test.
  waits) while [ -d "$folder" ] && [ ! -e "$folder/go" ]; do sleep 0.02; done ;;
esac
cat "$input"
mark end
