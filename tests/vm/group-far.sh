# In the server's guest of two-guests: member n1 of the group of group-near.sh, and a client that reads. Obeys words in
# the files order.1, order.2 and so on of /run/share, and answers in answer.1 and so on:
#   read        starts the client
#   cut, heal   packets that this guest sends vanish, or do not any more
#   counts, end the client is asked, and the answer is its own
#   group-far.sh rxe|siw PROGRAM_DIR clean
kind=$1 programs=$2
software_nic_up "$kind" eth0 10.78.0.1/24 || exit 1
# siw's rdma_connect returns only when TCP gives up.
[ "$kind" != siw ] || echo 1 > /proc/sys/net/ipv4/tcp_syn_retries
cluster=(--etcd=http://10.78.0.2:2379 --cluster=c)

do_order() {
  case $1 in
    read)
      coproc reader { "$programs/takeover_client" --device="${kind}0" --operations=get --pause_us=20000 \
        --server=cluster:10.78.0.1:7471,10.78.0.2:7471; }
      answer=done ;;
    cut) tc qdisc add dev eth0 root netem loss 100% && answer=done ;;
    heal) tc qdisc del dev eth0 root && answer=done ;;
    *)
      echo "$1" >&"${reader[1]}"
      read -r answer <&"${reader[0]}" ;;
  esac
}

until timeout 60 "$programs/kvcli" cluster status "${cluster[@]}" > /run/status 2>&1; do sleep 0.5; done
"$programs/kvserver" --listen=10.78.0.1:7471 --device="${kind}0" --memory=64M --busy_poll_us=0 --name=n1 "${cluster[@]}" &
for ((i = 1; ; i++)); do
  until [ -e "/run/share/order.$i" ]; do sleep 0.2; done
  answer=failed
  do_order "$(cat "/run/share/order.$i")"
  echo "$answer" > /run/share/answer
  mv /run/share/answer "/run/share/to-other.answer.$i"
done
