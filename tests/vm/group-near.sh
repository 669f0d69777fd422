# In the client's guest of two-guests: etcd, member n2 of a group, and a client that writes. n1 and a client that
# reads are in the other guest (group-far.sh). The network between the guests is cut while n1 is primary, both ways
# or one, and while it is a backup. No write may be lost, the reader may get no answer while it can only reach n1,
# whose lease is over, and n1 has to come back by itself.
#   group-near.sh rxe|siw PROGRAM_DIR
kind=$1 programs=$2
software_nic_up "$kind" eth0 10.78.0.2/24 || exit 1
[ "$kind" != siw ] || echo 1 > /proc/sys/net/ipv4/tcp_syn_retries
cluster=(--etcd=http://10.78.0.2:2379 --cluster=c)
limit_s=120  # only a hang takes so long

fail() { echo "FAILED: $*"; group; tail -n 30 /run/n2.log; exit 1; }
step() { echo "== $(cut -d. -f1 /proc/uptime) s: $*"; }
await() {  # await WHAT COMMAND...
  local end=$((SECONDS + limit_s))
  until "${@:2}"; do
    [ "$SECONDS" -lt "$end" ] || fail "$1"
    sleep 0.3
  done
}
group() { timeout 60 "$programs/kvcli" cluster status --json "${cluster[@]}" 2> /run/kvcli.err; }
in_sync() { [[ "$(group)" =~ \"in_sync\":\[([^]]*)\] ]] && [ "${BASH_REMATCH[1]}" = "$1" ]; }
both_in_sync() { in_sync '"n1","n2"' || in_sync '"n2","n1"'; }
primary_is() { group | grep -q "\"primary\":\"$1\""; }
orders=0
other() {  # has the other guest do something (group-far.sh); its answer is in $got
  orders=$((orders + 1))
  echo "$1" > /run/share/order
  mv /run/share/order "/run/share/to-other.order.$orders"
  await "no answer to $1" test -e "/run/share/answer.$orders"
  got=$(cat "/run/share/answer.$orders")
  [ "$got" != failed ] || fail "$1 in the other guest"
}
writer() {  # asks the writer; its answer is in $got
  echo "$1" >&"${writing[1]}"
  read -r -t $limit_s got <&"${writing[0]}" || fail "the writer says nothing to: $1"
}
reader_goes_on() { other counts; [ "$got" != "$before" ]; }
both_are_answered() {
  writer "answers 5"
  other counts
  before=$got
  await "the reader gets no answers" reader_goes_on
}

etcd --data-dir /run/etcd --listen-client-urls http://10.78.0.2:2379 --advertise-client-urls http://10.78.0.2:2379 \
  --listen-peer-urls http://10.78.0.2:2380 --initial-advertise-peer-urls http://10.78.0.2:2380 \
  --initial-cluster default=http://10.78.0.2:2380 > /run/etcd.log 2>&1 &
await "etcd does not come" curl -sf -o /run/health http://10.78.0.2:2379/health
timeout 60 "$programs/kvcli" cluster init "${cluster[@]}" --group=g1:n1,n2 --lease_ms=4000 > /run/init || fail "cluster init"
await "n1 is not primary" primary_is n1
"$programs/kvserver" --listen=10.78.0.2:7471 --device="${kind}0" --memory=64M --busy_poll_us=0 --name=n2 "${cluster[@]}" > /run/n2.log 2>&1 &
await "n2 is not in sync" both_in_sync
coproc writing { "$programs/takeover_client" --device="${kind}0" --operations=get,put,incr --pause_us=20000 \
  --server=cluster:10.78.0.1:7471,10.78.0.2:7471; }
other read
both_are_answered

# cut WAYS: of "far" what n1 sends, of "near" what n2 sends.
cut_and_heal() {
  [[ $1 != *far* ]] || other cut
  [[ $1 != *near* ]] || tc qdisc add dev eth0 root netem loss 100% || fail tc
  await "n1 is not out" in_sync '"n2"'
  writer "answers 5"
  # By now n1's lease is over, and nothing else answers the reader.
  other counts
  before=$got
  writer "answers 5"
  other counts
  [ "$got" = "$before" ] || fail "the reader was answered: $before, then $got"
  [[ $1 != *near* ]] || tc qdisc del dev eth0 root || fail tc
  [[ $1 != *far* ]] || other heal
  await "n1 does not come back" both_in_sync
  both_are_answered
}
hand_over_to_n1() {
  timeout 100 "$programs/kvcli" cluster handover g1 n1 --wait=90s "${cluster[@]}" || fail handover
  await "n2 is not in sync" both_in_sync
  both_are_answered
}

step "both ways, n1 is primary"
cut_and_heal "far near"
step "both ways, n1 is a backup"
cut_and_heal "far near"
for way in far near; do
  hand_over_to_n1
  step "what $way sends, n1 is primary"
  cut_and_heal $way
done
step "what the clients saw"
writer end
wrote=$got
other end
for seen in "$wrote" "$got"; do
  echo "$seen"
  for bad in lost twice wrong; do [[ $seen == *"\"$bad\":0"* ]] || fail "$bad: $seen"; done
done
step "done"
