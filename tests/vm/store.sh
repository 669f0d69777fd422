# In a guest: the real programs on a software NIC of the kernel, found by --device=auto.
#   store.sh rxe|siw PROGRAM_DIR PROJECT_DIR
kind=$1
cd "$2" || exit 1
ip link add dummy1 type dummy
software_nic_up "$kind" dummy1 10.77.0.1/24 || exit 1
server=10.77.0.1:7471

fail() { echo "FAILED: $*"; cat /run/kvserver.log; exit 1; }
# expect CODE OUTPUT ARGS...: a kvcli command, its exit code, and the pattern of what it prints.
expect() {
  local code=0 got
  got=$(timeout 60 ./kvcli --server=$server --deadline_ms=30000 "${@:3}" 2> /run/kvcli.err) || code=$?
  # shellcheck disable=SC2053 # a pattern
  [[ $code -eq $1 && $got == $2 ]] || fail "kvcli ${*:3}: exit code $code, printed '$got'; $(cat /run/kvcli.err)"
}

./kvserver --listen=$server --memory=64M > /run/ready 2> /run/kvserver.log &
pid=$!
for _ in $(seq 600); do grep -qs READY /run/ready && break; sleep 0.1; done
[ "$(cat /run/ready)" = "READY $server device=${kind}0 kind=kernel-software" ] || fail "$(cat /run/ready)"

expect 0 '[1-9]*' put greeting hello
expect 0 hello get greeting
expect 0 mine lock greeting -- echo mine
# siw has no atomics: the server's CPU changes the lock words, and only the grant says so.
lock_mode=nic
[ "$kind" != siw ] || lock_mode=rpc-server
timeout 60 ./kvcli --server=$server --deadline_ms=30000 --json info 2> /run/kvcli.err | tee /run/info | grep -q "\"lock_mode\":\"$lock_mode\"" ||
  fail "lock mode is not $lock_mode: $(cat /run/info)"
expect 0 "" del greeting
expect 1 "" get greeting
head -c 300000 /dev/urandom > /run/value
timeout 60 ./kvcli --server=$server --deadline_ms=30000 put large - < /run/value > /run/version 2> /run/kvcli.err || fail "put of 300,000 bytes"
timeout 60 ./kvcli --server=$server --deadline_ms=30000 get large 2> /run/kvcli.err | cmp - /run/value || fail "get of 300,000 bytes"
# kvload fails by itself when a value is wrong.
timeout 100 ./kvload --server=$server --deadline_ms=30000 --workload=a --records=300 --operations=1000 || fail "kvload a"
timeout 100 ./kvload --server=$server --deadline_ms=30000 --workload=c --records=300 --operations=1000 --json=/run/c.json || fail "kvload c"
grep -q '"server_rpcs": 0,' /run/c.json || fail "GETs moved the server's RPC counter"
# More pollers than cores: all of them, the server and the kernel's threads get their turns.
for i in $(seq 12); do
  timeout 100 ./kvload --server=$server --deadline_ms=60000 --phase=run --workload=b --records=300 --depth=8 \
    --operations=500 --seed="$i" --json="/run/crowd.$i" > /dev/null 2> "/run/crowd.$i.err" &
  crowd+=($!)
done
for i in $(seq 12); do wait "${crowd[i - 1]}" || fail "kvload $i of 12 at once: $(cat "/run/crowd.$i.err")"; done
sed -n 's/.*"ops_per_second": \([0-9]*\).*/of 12 clients at once: \1 operations\/s/p' /run/crowd.*[0-9]
# Last, because it puts other values under keys of the runs before. Values that land in registered memory, and are READ from there in pieces.
timeout 100 ./kvload --server=$server --deadline_ms=60000 --workload=a --value_size=1048576 --records=4 --operations=24 --depth=2 ||
  fail "kvload a, 1 MiB"
# shellcheck source=tests/vm/doctor.sh
source "$3/tests/vm/doctor.sh"
doctor_of_a_running_server
kill $pid
wait $pid || fail "kvserver stopped with exit code $?"
[ "$kind" != rxe ] || "$3/dev" demo --built 200 || fail "dev demo"
doctor_without_a_server
