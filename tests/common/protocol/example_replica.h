#ifndef GANNET_TESTS_COMMON_PROTOCOL_EXAMPLE_REPLICA_H_
#define GANNET_TESTS_COMMON_PROTOCOL_EXAMPLE_REPLICA_H_

#include "common/protocol/replica.h"

namespace gannet {

// The messages that docs/protocol-replica.md shows.

inline ReplicaHello ExampleHello() {
  ReplicaHello hello = NewReplicaHello();
  hello.incarnation = 0x0102030405060708;
  hello.history = 0x1112131415161718;
  hello.epoch = 4;
  hello.applied = 0x21220;
  hello.end = 0x21270;
  hello.ring_address = 0x7f0000400000;
  hello.ring_bytes = 16 << 20;
  hello.ring_rkey = 0x31323334;
  hello.layout_version = 3;
  hello.memory_bytes = 1 << 30;
  hello.workers = 2;
  SetName(&hello, "n2");
  return hello;
}

inline ReplicaWelcome ExampleWelcome() {
  ReplicaWelcome welcome = NewReplicaWelcome();
  welcome.incarnation = 0x4142434445464748;
  welcome.history = 0x1112131415161718;
  welcome.epoch = 5;
  welcome.stream_id = 0x5152535455565758;
  welcome.first_lsn = 0x21220;
  welcome.tail_end = 0x21270;
  welcome.position = 0x61620;
  welcome.version_next = 0x7172737475767778;
  welcome.clock_ms = 1'763'650'000'000;
  welcome.lease_ms = 600;
  return welcome;
}

inline Beacon ExampleBeacon() {
  Beacon beacon = NewBeacon();
  beacon.epoch = 5;
  beacon.sequence = 7;
  beacon.committed = 0x21270;
  beacon.clock_ms = 1'763'650'000'000;
  return beacon;
}

inline Beacon ExampleLastBeacon() {
  Beacon beacon = ExampleBeacon();
  beacon.header = NewBeacon(ReplicaKind::kLastBeacon).header;
  return beacon;
}

inline BeaconAnswer ExampleBeaconAnswer() {
  BeaconAnswer answer = NewBeaconAnswer();
  answer.epoch = 5;
  answer.sequence = 7;
  answer.applied = 0x21270;
  answer.consumed = 0x61670;
  return answer;
}

inline ReceiverHello ExampleReceiverHello() {
  ReceiverHello hello = NewReceiverHello();
  hello.incarnation = 0x0102030405060708;
  hello.ring_address = 0x7f0000400000;
  hello.ring_bytes = 16 << 20;
  hello.ring_rkey = 0x31323334;
  hello.layout_version = 3;
  SetName(&hello, "n7");
  return hello;
}

inline MoveClosing ExampleClosing() {
  MoveClosing closing = NewMoveClosing();
  closing.epoch = 5;
  return closing;
}

inline ReplicaResume ExampleResume() {
  ReplicaResume resume = NewReplicaResume();
  resume.incarnation = 0x0102030405060708;
  resume.epoch = 5;
  resume.lsn = 0x21220;
  resume.position = 0x61620;
  resume.ring_address = 0x7f0000400000;
  resume.ring_bytes = 16 << 20;
  resume.ring_rkey = 0x31323334;
  return resume;
}

inline MoveEnded ExampleEnded() {
  MoveEnded ended = NewMoveEnded();
  ended.epoch = 5;
  ended.revision = 19;
  ended.lsn = 0x21270;
  ended.version_next = 0x7172737475767778;
  return ended;
}

}  // namespace gannet

#endif  // GANNET_TESTS_COMMON_PROTOCOL_EXAMPLE_REPLICA_H_
