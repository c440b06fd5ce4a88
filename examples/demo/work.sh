# What the nodes of the demo run on every payload. The begin and end marks are appended and synced to a file
# outside Redis: they are what the judge believes. Sourced by the command's shell, under `set -eu`.
set -eu
who="$HOLDFAST_ATTEMPT $HOLDFAST_DELIVERY $HOLDFAST_EPOCH $HOLDFAST_HOST/$HOLDFAST_NODE"

printf 'begin %s\n' "$who" >>"$DEMO_MARKS"
sync "$DEMO_MARKS"

case $HOLDFAST_CONVERSATION in slow/*) sleep "$DEMO_SLOW_S" ;; esac
digest=$(sha256sum)
digest=${digest%% *}

printf 'end %s %s\n' "$who" "$digest" >>"$DEMO_MARKS"
sync "$DEMO_MARKS"
printf '%s' "$digest"
