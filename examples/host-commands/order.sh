# What every host of the fleet runs for an order: sh order.sh. The order is its input, a line such as `upgrade openssl 3.0`;
# the host is a folder, $FLEET/<host>. How it exits says how it went (docs/executors.md):
#   0 done, 65 it will never work, 75 nothing was done so try again; anything else: nobody knows.
set -eu
cd "$FLEET/$HOLDFAST_HOST"
read -r verb object version || [ -n "$verb" ]

note() {
  printf '%s %s %s\n' "$1" "$HOLDFAST_ATTEMPT" "$verb $object" >>journal
  sync journal
}

# A node that was started anew asks what became of an order that it finds begun. Nothing of that one runs any more.
if [ "${HOLDFAST_PROBE-}" = 1 ]; then
  grep -q "^end $HOLDFAST_ATTEMPT " journal && exit 0
  grep -q "^begin $HOLDFAST_ATTEMPT " journal || exit 75
  exit 1
fi

case $verb in
  upgrade)
    [ -e "packages/$object" ] || exit 65 # it is not installed here, and will not be
    if ! mkdir lock 2>/dev/null; then    # somebody else is at the packages of this host
      note busy
      exit 75
    fi
    note begin
    printf '%s\n' "$version" >"packages/$object"
    rmdir lock
    ;;
  backup)
    note begin
    while [ -e slow ]; do sleep 0.1; done
    cp "packages/$object" "disk/$object" # where it cannot, this ends with 1, and whatever there is on the disk
    ;;
  *) exit 65 ;;
esac
note end
