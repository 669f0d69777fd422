# In the client's guest of two-guests with two wires: load b on both rails, whose wires are cut and healed in its middle,
# one after the other. Nothing fails, and a rail that came back carries its part again.
#   rail-client.sh rxe PROGRAM_DIR
kind=$1 programs=$2
software_nic_up "$kind" eth0 10.78.0.2/24 0 || exit 1
software_nic_up "$kind" eth1 10.78.1.2/24 1 || exit 1
server=10.78.0.1:7471

fail() { echo "FAILED: $*"; cat /run/load; rdma link; rdma -p statistic show 2> /dev/null; exit 1; }
step() { echo "== $(cut -d. -f1 /proc/uptime) s: $*"; }
sent() { cat "/sys/class/infiniband/${kind}$1/ports/1/hw_counters/sent_pkts"; }
# Prints which part of the packets each rail sends, in percent, over two seconds.
shares() {
  local before0 before1 of0 of1
  before0=$(sent 0) before1=$(sent 1)
  sleep 2
  of0=$(($(sent 0) - before0)) of1=$(($(sent 1) - before1))
  [ $((of0 + of1)) -gt 0 ] || fail "nothing is sent"
  echo "$((of0 * 100 / (of0 + of1))) $((of1 * 100 / (of0 + of1)))"
}
# both_carry WHEN: expects that both rails carry their part, in 30 s at most. Prints after how many.
both_carry() {
  local began=$SECONDS now of0 of1
  while [ $((SECONDS - began)) -lt 30 ]; do
    kill -0 $load 2> /dev/null || fail "kvload ended early"
    now=$(shares)
    read -r of0 of1 <<< "$now"
    [ "$of0" -lt 45 ] || [ "$of1" -lt 45 ] || { step "$1: $of0 % and $of1 % after $((SECONDS - began)) s (aim: 5)"; return; }
  done
  fail "$1: the rails carry ${now/ / % and } %"
}

touch /run/load
for _ in $(seq 100); do
  timeout 20 "$programs/kvcli" --server=$server --deadline_ms=5000 ping > /dev/null 2>&1 && break
done
timeout 100 "$programs/kvload" --server=$server --deadline_ms=60000 --phase=load --records=300 > /run/load 2>&1 || fail "kvload"
timeout 300 "$programs/kvload" --server=$server --deadline_ms=60000 --phase=run --workload=b --records=300 --depth=8 \
  --seconds=200 --operations=100000000 --on_server_loss=wait --json=/run/b.json > /run/load 2>&1 &
load=$!
both_carry "at the start"
# The wire is cut, and not the interface set down: Soft-RoCE's CM hears nothing any more after it could not send
# (docs/testing-devices.md).
for interface in eth1 eth0; do
  tc qdisc add dev $interface root netem loss 100% || fail "tc"
  sleep 3
  kill -0 $load 2> /dev/null || fail "kvload ended early"
  now=$(shares)
  step "$interface is cut off: ${now/ / % and } %"
  tc qdisc del dev $interface root
  both_carry "$interface is back"
done
kill -INT $load
wait $load
[ $? -eq 130 ] || fail "kvload: exit code $?"
sed -n 's/^  "\(operations\|ops_per_second\|longest_stall_ms\|wrong_values\)": \(.*\),/\1 \2/p' /run/b.json
grep -q '"wrong_values": 0,' /run/b.json || fail "wrong values"
grep -q '"errors": {},' /run/b.json || fail "failed operations: $(grep -A3 '"errors"' /run/b.json)"
step "done"
