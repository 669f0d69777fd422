# shellcheck shell=bash disable=SC2154 # kind, server and fail are those of store.sh
# Faults made on purpose in the guest, and what kvcli doctor says of each. Part of store.sh, which has `kind`, `server`
# and `fail`, and runs in the directory of the programs.

# doctor CODE CHECK TEXT MEND ARGS...: the exit code, and a finding of this check with these words in its text and in
# what mends it. Runs under the command in `under`.
under=()
doctor() {
  local code=0 said
  said=$("${under[@]}" timeout 60 ./kvcli "--device=${kind}0" "--server=$server" --deadline_ms=20000 "${@:5}" \
    --json doctor 2> /run/kvcli.err) || code=$?
  [ $code -eq "$1" ] || fail "doctor ${*:2}: exit code $code; $said $(cat /run/kvcli.err)"
  grep -F "\"check\":\"$2\"" <<< "$said" | grep -F -- "$3" | grep -qF -- "$4" ||
    fail "doctor ${*:2}: no such finding in $said"
}

doctor_of_a_running_server() {
  local route="RoCE v2)"
  if [ "$kind" = siw ]; then
    route="which needs no GID"
    # siw's rdma_connect does not return before TCP gave up.
    echo 1 > /proc/sys/net/ipv4/tcp_syn_retries
  fi
  doctor 0 route "$route" ""
  doctor 0 clock "the server's clock is 0." ""
  doctor 3 connection "nobody listens" "kvserver --listen=10.77.0.1:7999" --server=10.77.0.1:7999
  # An address of the network that nobody has: packets go out and are lost.
  doctor 3 connection "no answer" "ping 10.77.0.9" --server=10.77.0.9:7471 --deadline_ms=2000
  doctor 3 route "10.99.0.1" "ip route get 10.99.0.1" --server=10.99.0.1:7471
  ulimit -S -l 64
  under=(setpriv --bounding-set=-ipc_lock)
  doctor 3 memlock "64 KiB may be locked" "ulimit -l"
  under=()
  ulimit -S -l unlimited
}

# Takes the device away in the end.
doctor_without_a_server() {
  doctor 3 connection "nobody listens" "kvserver --listen=$server"
  if [ "$kind" = rxe ]; then
    ip link set dummy1 mtu 600
    doctor 3 mtu "packets of 512 bytes" "dev dummy1 mtu 9000"
  fi
  ip link set dummy1 down
  doctor 3 port "${kind}0/1: down" "sudo ip link set dev"
  rdma link delete "${kind}0"
  doctor 3 device "no RDMA device" "rdma link add"
}
