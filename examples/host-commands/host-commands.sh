#!/bin/sh
# Shell commands on three hosts, by the command line alone: a host under maintenance, a conversation that is blocked,
# orders that are refused, turned away and cut short, and a node that is killed in the middle of one.
# sh examples/host-commands/host-commands.sh   (in a clone after npm run build; with the package HOLDFAST=holdfast sh …)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
export FLEET="$folder/fleet" HOLDFAST_ACTOR=kim NO_COLOR=1
cd "$folder"

finish() {
  status=$?
  trap - EXIT
  kill -TERM $nodes 2>/dev/null || :
  wait
  [ "$status" = 0 ] || cat -- *.log >&2
  rm -rf "$folder"
  exit "$status"
}
nodes=
trap finish EXIT
trap 'exit 130' INT TERM

# `holdfast` is what HOLDFAST says, or the program of the clone that this file is in.
mkdir bin
printf '#!/bin/sh\nexec %s "$@"\n' "${HOLDFAST:-node '$here/../../dist/cli/main.js'}" >bin/holdfast
chmod +x bin/holdfast
PATH=$folder/bin:$PATH

# Prints a command as it would be typed, and runs it.
run() {
  printf '\n$ holdfast'
  for word; do
    case $word in *' '*) printf " '%s'" "$word" ;; *) printf ' %s' "$word" ;; esac
  done
  echo
  holdfast "$@"
}

# The same for a message, whose id it keeps.
send() {
  run send "$@" >sent || : # with --wait it fails where the orders do
  cat sent
  message=$(sed -n 's/^message *//p' sent)
}

# Asks until the command succeeds.
wait_for() {
  tries=0
  until "$@"; do
    tries=$((tries + 1))
    [ "$tries" -lt 300 ] || { echo "in vain: $*" >&2 && exit 1; }
    sleep 0.1
  done
}

# Whether what `holdfast <list>` prints has all these words. It is in the file shown.
has() {
  holdfast $1 >shown 2>/dev/null || :
  shift
  for text; do grep -q -- "$text" shown || return 1; done
}

# Prints the list once it has these words.
look() {
  wait_for has "$@"
  printf '\n$ holdfast %s\n' "$1"
  sed '/^message /,/^$/d' shown
}

# Starts what runs on a host: a node that runs order.sh for each delivery, and asks it what became of one.
start() {
  verb=$1 host=$2
  shift 2
  holdfast "$verb" --host "$host" --exec "sh '$here/order.sh'" --probe "sh '$here/order.sh'" --json "$@" 2>>"$host.log" &
  nodes="$nodes $!"
}

for host in web-1 web-2 web-3; do mkdir -p "fleet/$host/packages"; done
echo 2.9 | tee fleet/web-1/packages/openssl >fleet/web-2/packages/openssl
echo 'some pages' | tee fleet/web-1/packages/site >fleet/web-3/packages/site

start dev web-1 --listen 127.0.0.1:0 # Redis, the hub and the node of web-1, in one process
wait_for grep -sq '"ready"' web-1.log
start node web-2
start node web-3
node_of_web_3=$!
wait_for grep -sq '"joined"' web-2.log

run host drain web-2
run fence block conversation:experiments --reason 'not before the holidays'

mkdir fleet/web-1/lock # somebody is at the packages of web-1
send --conversation security --to host:web-1 --to host:web-2 --to host:web-3 --key openssl-3 'upgrade openssl 3'
wait_for grep -sq '^busy' fleet/web-1/journal
rmdir fleet/web-1/lock
wait_for grep -sq '^end' fleet/web-1/journal
look "message show $message" 'web-1 .* done' 'web-2 .* parked by pause:host:web-2' 'web-3 .* terminal'
run fence lift pause host:web-2
wait_for grep -sq '^end' fleet/web-2/journal
echo "web-2 has openssl $(cat fleet/web-2/packages/openssl)"

send --conversation experiments --to host:web-1 --key rust-1 --wait 'upgrade openssl rust'

mkdir fleet/web-3/disk # on web-1 it is not mounted: the copy fails, and leaves who knows what behind
: >fleet/web-3/slow
send --conversation nightly --to host:web-1 --to host:web-3 --key backup-1 'backup site'
wait_for grep -sq '^begin .* backup' fleet/web-3/journal
kill -KILL "$node_of_web_3"
echo
echo 'the node of web-3 was killed; what it started goes on, and the next node waits for that and asks it'
mv web-3.log web-3-before.log
start node web-3
wait_for grep -sq '"joined"' web-3.log
rm fleet/web-3/slow
wait_for grep -sq '"probed"' web-3.log
look "message show $message" 'web-1 .* unknown: ' 'web-3 .* done'
run unknown ls
run attempt resolve "$message.1/1" --as terminal --evidence 'the disk of web-1 is not mounted, see its journal'

# What the hosts themselves say: which orders were begun, and whether one was begun twice.
echo
cat fleet/*/journal | sed -n 's/^begin //p' | sed 's|/[0-9]* .*||' | sort >begun
echo "orders begun: $(wc -l <begun), begun twice: $(uniq -d begun | wc -l)"
[ "$(uniq -d begun | wc -l)" -eq 0 ]
