# In a guest: softverbs' speed beside that of the kernel's Soft-RoCE.
#   speed.sh SOFTVERBS_RUN SPEED_PY [ARG...]
run=$1 speed=$2
ip link add speed0 type dummy
ip link set speed0 mtu 4200  # packets of 4,096 bytes, as softverbs0 says it has
software_nic_up rxe speed0 10.77.0.1/24 || exit 1
ip link set lo up
timeout 1500 /usr/bin/python3 "$speed" --softverbs-run "$run" --kernel-device rxe0 "${@:3}"
