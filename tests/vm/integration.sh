# In a guest: tests of the store, on a software NIC of the kernel. A device that is missing is a failure: nothing
# here may end up on softverbs.
#   integration.sh rxe|siw TEST[=FILTER]...    FILTER: of GoogleTest
kind=$1
shift
ip link add dummy1 type dummy
software_nic_up "$kind" dummy1 10.77.0.1/24 || exit 1
# Emulated: counts are cut to this part.
export GANNET_TEST_SLOWNESS=40
failed=0
for wanted in "$@"; do
  test=${wanted%%=*} filter=${wanted#"${wanted%%=*}"}
  echo "== ${test##*/}"
  time timeout 600 "$test" "--device=${kind}0" "--gtest_filter${filter:-=*}" --gtest_brief=1 || { echo "FAILED: $test"; failed=1; }
done
exit $failed
