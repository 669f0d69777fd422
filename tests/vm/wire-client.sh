# In the client's guest of two-guests: the programs and tests of the store against a server on another host, with its
# power going in the middle, and then on a wire that loses and delays packets both ways.
#   wire-client.sh rxe|siw PROGRAM_DIR TEST_DIR
kind=$1 programs=$2 tests=$3
software_nic_up "$kind" eth0 10.78.0.2/24 || exit 1
server=10.78.0.1:7471
# siw's rdma_connect does not return before TCP gave up, which takes two minutes when the peer has no power.
[ "$kind" != siw ] || echo 1 > /proc/sys/net/ipv4/tcp_syn_retries
export GANNET_TEST_SLOWNESS=40 GANNET_TEST_POWER=/run/share

fail() { echo "FAILED: $*"; tc -s qdisc show dev eth0; rdma -p statistic show 2> /dev/null; exit 1; }
step() { echo "== $(cut -d. -f1 /proc/uptime) s: $*"; }
wait_for_server() {
  for _ in $(seq 100); do
    timeout 20 "$programs/kvcli" --server=$server --device="${kind}0" --deadline_ms=5000 ping > /dev/null 2>&1 && return
  done
  fail "the server does not come"
}
run_test() { timeout 150 "$tests/$1" --device="${kind}0" --server=$server --gtest_brief=1 "${@:2}" || fail "$*"; }
load() {
  timeout 150 "$programs/kvload" --server=$server --device="${kind}0" --deadline_ms=60000 --records=100 "$@" \
    > /run/load 2>&1 || { cat /run/load; fail "kvload $*"; }
  grep -E "^(measured|load  )" /run/load
}

wait_for_server
step "kvcli"
timeout 60 "$programs/kvcli" --server=$server --deadline_ms=20000 put greeting hello || fail put
[ "$(timeout 60 "$programs/kvcli" --server=$server --deadline_ms=20000 get greeting)" = hello ] || fail get
step "kvcli doctor, an hour behind the server"
now=$(date +%s)
date -s "@$((now - 3600))" > /dev/null
timeout 60 "$programs/kvcli" --server=$server --device="${kind}0" --deadline_ms=20000 --json doctor > /run/doctor 2>&1
[ $? -eq 1 ] || { cat /run/doctor; fail "doctor's exit code is not 1"; }  # warnings: the clock, and the single core
grep -F '"check":"clock"' /run/doctor | grep -F '"warning"' | grep -E '3[56][0-9]{2}\.[0-9]+ s ahead' | grep -qF timedatectl ||
  { cat /run/doctor; fail "doctor does not see the clock"; }
date -s "@$(($(date +%s) + 3600))" > /dev/null
step "kvload"
load --workload=a --operations=500
load --workload=c --operations=500
step "locks"
run_test integration_mutual_exclusion_test
run_test integration_lock_failure_test
if [ "$kind" = rxe ]; then
  step "verbs of each operation, on the wire"
  GANNET_TEST_WIRE=eth0 run_test integration_verb_counts_test
fi
step "power failure of the server"
run_test vm_power_loss_test
step "loss and delay both ways"
tc qdisc add dev eth0 root netem loss 1% delay 1ms || fail "tc netem"
load --workload=a --operations=500
load --workload=c --operations=500
run_test integration_mutual_exclusion_test
tc -s qdisc show dev eth0 | grep -E "dropped [1-9]" || fail "no packet was lost: nothing is shown"
step "done"
