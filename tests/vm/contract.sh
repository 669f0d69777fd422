# In a guest: the verbs contract suite on a software NIC of the kernel.
#   contract.sh rxe|siw TEST...
kind=$1
shift
ip link add dummy0 type dummy
software_nic_up "$kind" dummy0 10.77.0.1/24 || exit 1
export VERBS_CONTRACT_ADDRESS=10.77.0.1
failed=0
for test in "$@"; do
  timeout 100 "$test" --gtest_brief=1 || { echo "FAILED: $test"; failed=1; }
done
exit $failed
