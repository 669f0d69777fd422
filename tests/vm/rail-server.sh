# In the server's guest of two-guests with two wires: kvserver with a rail on each.
#   rail-server.sh rxe PROGRAM_DIR clean
software_nic_up "$1" eth0 10.78.0.1/24 0 || exit 1
software_nic_up "$1" eth1 10.78.1.1/24 1 || exit 1
"$2/kvserver" --listen=10.78.0.1:7471,10.78.1.1:7471 --device="${1}0" --memory=64M
