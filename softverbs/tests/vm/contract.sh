# In a guest: the verbs contract suite on a software NIC of the kernel.
#   contract.sh rxe|siw VERBS_CONTRACT_TEST
# Left out is only what is a fault of that NIC in this kernel; docs/testing-devices.md has the evidence.
kind=$1 suite=$2
case $kind in
  rxe) faults='DrainTest.WorkThatWasKeptBack*:*WindowTest.RefusesOneByte*:SecondTypeTest.IsBoundAgainAfterALocalInvalidation:SecondTypeTest.IsInvalidatedByItsPeersSend:SecondTypeTest.SendThatInvalidatesAnotherKey*' ;;
  siw) faults='*/RefusalTest.MissingRight/Read:*/RefusalTest.NoRemoteRightAtAll/Read:*.SolicitedArming*:*.InUseIsNotDestroyed' ;;
esac
ip link add contract0 type dummy
software_nic_up "$kind" contract0 10.77.0.1/24 || exit 1
timeout 150 "$suite" "--device=${kind}0" --gtest_brief=1 "--gtest_filter=-$faults"
