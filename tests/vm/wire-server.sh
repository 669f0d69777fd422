# In the server's guest of two-guests: kvserver until the power goes.
#   wire-server.sh rxe|siw PROGRAM_DIR clean|lossy
software_nic_up "$1" eth0 10.78.0.1/24 || exit 1
[ "$3" = clean ] || tc qdisc add dev eth0 root netem loss 1% delay 1ms || exit 1
"$2/kvserver" --listen=10.78.0.1:7471 --device="${1}0" --memory=64M
