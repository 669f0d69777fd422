// The messages between the members of a group.

#include "common/protocol/replica.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/common/protocol/example_replica.h"
#include "tests/common/protocol/golden_bytes.h"

namespace gannet {
namespace {

template <class T>
std::span<const std::byte> BytesOf(const T& message) {
  return std::as_bytes(std::span(&message, 1));
}

// Returns what the decoder finds wrong with the message after the change, or "" if nothing.
template <class T, class Decode, class Change>
std::string Wrong(T message, Decode decode, Change change) {
  change(&message);
  const auto decoded = decode(BytesOf(message));
  return decoded.ok() ? "" : std::string(decoded.status().message());
}

// Whoever changes these bytes changes the protocol, and also docs/protocol.md.
TEST(ReplicaTest, GoldenBytes) {
  EXPECT_EQ(HexOf(ExampleHello()),
            "47 4e 52 50 01 00 78 00 08 07 06 05 04 03 02 01\n"
            "18 17 16 15 14 13 12 11 04 00 00 00 00 00 00 00\n"
            "20 12 02 00 00 00 00 00 70 12 02 00 00 00 00 00\n"
            "00 00 40 00 00 7f 00 00 00 00 00 01 00 00 00 00\n"
            "34 33 32 31 03 00 00 00 00 00 00 40 00 00 00 00\n"
            "02 00 00 00 00 00 03 00 6e 32 00 00 00 00 00 00\n"
            "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00\n"
            "00 00 00 00 00 00 00 00");
  EXPECT_EQ(HexOf(ExampleWelcome()),
            "47 4e 52 50 02 00 58 00 48 47 46 45 44 43 42 41\n"
            "18 17 16 15 14 13 12 11 05 00 00 00 00 00 00 00\n"
            "58 57 56 55 54 53 52 51 20 12 02 00 00 00 00 00\n"
            "70 12 02 00 00 00 00 00 20 16 06 00 00 00 00 00\n"
            "78 77 76 75 74 73 72 71 80 54 bb a1 9a 01 00 00\n"
            "58 02 00 00 00 00 00 00");
  EXPECT_EQ(HexOf(ExampleBeacon()),
            "47 4e 52 50 03 00 28 00 05 00 00 00 00 00 00 00\n"
            "07 00 00 00 00 00 00 00 70 12 02 00 00 00 00 00\n"
            "80 54 bb a1 9a 01 00 00");
  EXPECT_EQ(HexOf(ExampleLastBeacon()),
            "47 4e 52 50 0a 00 28 00 05 00 00 00 00 00 00 00\n"
            "07 00 00 00 00 00 00 00 70 12 02 00 00 00 00 00\n"
            "80 54 bb a1 9a 01 00 00");
  EXPECT_EQ(HexOf(ExampleBeaconAnswer()),
            "47 4e 52 50 04 00 28 00 05 00 00 00 00 00 00 00\n"
            "07 00 00 00 00 00 00 00 70 12 02 00 00 00 00 00\n"
            "70 16 06 00 00 00 00 00");
  EXPECT_EQ(HexOf(ExampleReceiverHello()),
            "47 4e 52 50 07 00 50 00 08 07 06 05 04 03 02 01\n"
            "00 00 40 00 00 7f 00 00 00 00 00 01 00 00 00 00\n"
            "34 33 32 31 03 00 00 00 00 00 03 00 00 00 00 00\n"
            "6e 37 00 00 00 00 00 00 00 00 00 00 00 00 00 00\n"
            "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00");
  EXPECT_EQ(HexOf(ExampleClosing()), "47 4e 52 50 08 00 10 00 05 00 00 00 00 00 00 00");
  EXPECT_EQ(HexOf(ExampleEnded()),
            "47 4e 52 50 09 00 28 00 05 00 00 00 00 00 00 00\n"
            "13 00 00 00 00 00 00 00 70 12 02 00 00 00 00 00\n"
            "78 77 76 75 74 73 72 71");
  EXPECT_EQ(HexOf(ExampleResume()),
            "47 4e 52 50 0b 00 40 00 08 07 06 05 04 03 02 01\n"
            "05 00 00 00 00 00 00 00 20 12 02 00 00 00 00 00\n"
            "20 16 06 00 00 00 00 00 00 00 40 00 00 7f 00 00\n"
            "00 00 00 01 00 00 00 00 34 33 32 31 00 00 00 00");
}

TEST(ReplicaTest, DecodesWhatItEncoded) {
  const auto hello = DecodeReplicaHello(BytesOf(ExampleHello()));
  ASSERT_TRUE(hello.ok()) << hello.status();
  EXPECT_EQ(HexOf(*hello), HexOf(ExampleHello()));
  EXPECT_EQ(NameOf(*hello), "n2");
  const auto welcome = DecodeReplicaWelcome(BytesOf(ExampleWelcome()));
  ASSERT_TRUE(welcome.ok()) << welcome.status();
  EXPECT_EQ(HexOf(*welcome), HexOf(ExampleWelcome()));
  const auto beacon = DecodeBeacon(BytesOf(ExampleBeacon()));
  ASSERT_TRUE(beacon.ok()) << beacon.status();
  EXPECT_EQ(HexOf(*beacon), HexOf(ExampleBeacon()));
  const auto answer = DecodeBeaconAnswer(BytesOf(ExampleBeaconAnswer()));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(HexOf(*answer), HexOf(ExampleBeaconAnswer()));
  const auto receiver = DecodeReceiverHello(BytesOf(ExampleReceiverHello()));
  ASSERT_TRUE(receiver.ok()) << receiver.status();
  EXPECT_EQ(HexOf(*receiver), HexOf(ExampleReceiverHello()));
  EXPECT_EQ(NameOf(*receiver), "n7");
  const auto closing = DecodeMoveClosing(BytesOf(ExampleClosing()));
  ASSERT_TRUE(closing.ok()) << closing.status();
  EXPECT_EQ(HexOf(*closing), HexOf(ExampleClosing()));
  const auto ended = DecodeMoveEnded(BytesOf(ExampleEnded()));
  ASSERT_TRUE(ended.ok()) << ended.status();
  EXPECT_EQ(HexOf(*ended), HexOf(ExampleEnded()));
  const auto resume = DecodeReplicaResume(BytesOf(ExampleResume()));
  ASSERT_TRUE(resume.ok()) << resume.status();
  EXPECT_EQ(HexOf(*resume), HexOf(ExampleResume()));
}

TEST(ReplicaTest, EachKindOfMessageIsKnownAndNoOther) {
  ReplicaHeader header = NewBeacon().header;
  for (uint16_t kind = 0; kind < 300; ++kind) {
    header.kind = kind;
    EXPECT_EQ(KindOfReplicaMessage(BytesOf(header)).has_value(), kind >= 1 && kind <= 11) << kind;
  }
}

TEST(ReplicaTest, AMemberThatHasNothingSaysSo) {
  ReplicaHello hello = ExampleHello();
  hello.history = hello.epoch = hello.applied = hello.end = 0;
  EXPECT_TRUE(DecodeReplicaHello(BytesOf(hello)).ok());
}

template <class T, class Decode>
void ExpectOnlyWhole(const T& message, Decode decode) {
  std::vector<std::byte> longer(sizeof(message) + 8);
  std::memcpy(longer.data(), &message, sizeof(message));
  for (size_t size = 0; size <= longer.size(); ++size) {
    EXPECT_EQ(decode(std::span(longer).first(size)).ok(), size == sizeof(message)) << size;
  }
  for (size_t i = 0; i < sizeof(ReplicaHeader); ++i) {
    std::vector<std::byte> other(longer.begin(), longer.begin() + sizeof(message));
    other[i] ^= std::byte{0xff};
    EXPECT_FALSE(decode(other).ok()) << "byte " << i;
  }
}

TEST(ReplicaTest, AMessageOfAnotherLengthOrHeaderIsRefused) {
  ExpectOnlyWhole(ExampleHello(), DecodeReplicaHello);
  ExpectOnlyWhole(ExampleWelcome(), DecodeReplicaWelcome);
  ExpectOnlyWhole(ExampleBeacon(), DecodeBeacon);
  ExpectOnlyWhole(ExampleLastBeacon(), DecodeLastBeacon);
  EXPECT_FALSE(DecodeBeacon(BytesOf(ExampleLastBeacon())).ok());
  EXPECT_FALSE(DecodeLastBeacon(BytesOf(ExampleBeacon())).ok());
  EXPECT_EQ(KindOfReplicaMessage(BytesOf(ExampleLastBeacon())), ReplicaKind::kLastBeacon);
  ExpectOnlyWhole(ExampleBeaconAnswer(), DecodeBeaconAnswer);
  EXPECT_FALSE(DecodeBeacon(BytesOf(ExampleBeaconAnswer())).ok());
  ExpectOnlyWhole(ExampleReceiverHello(), DecodeReceiverHello);
  ExpectOnlyWhole(ExampleClosing(), DecodeMoveClosing);
  ExpectOnlyWhole(ExampleEnded(), DecodeMoveEnded);
  ExpectOnlyWhole(ExampleResume(), DecodeReplicaResume);
}

TEST(ReplicaTest, AHelloThatAPrimaryCouldNotUseIsRefused) {
  const auto wrong = [](auto change) { return Wrong(ExampleHello(), DecodeReplicaHello, change); };
  using Hello = ReplicaHello*;
  EXPECT_EQ(wrong([](Hello) {}), "");
  EXPECT_NE(wrong([](Hello it) { it->incarnation = 0; }), "");
  EXPECT_NE(wrong([](Hello it) { it->applied = it->end + 8; }), "");
  EXPECT_NE(wrong([](Hello it) { it->end += 1; }), "");
  EXPECT_NE(wrong([](Hello it) { it->history = 0; }), "");
  EXPECT_NE(wrong([](Hello it) { it->ring_bytes = kRingBytesMin - kRingAlignment; }), "");
  EXPECT_NE(wrong([](Hello it) { it->ring_bytes = kRingBytesMax + kRingAlignment; }), "");
  EXPECT_NE(wrong([](Hello it) { it->ring_bytes += 8; }), "");
  EXPECT_NE(wrong([](Hello it) { it->ring_address = 0; }), "");
  EXPECT_NE(wrong([](Hello it) { it->ring_address += 8; }), "");
  EXPECT_NE(wrong([](Hello it) { it->ring_address = 0 - kRingAlignment; }), "");
  EXPECT_NE(wrong([](Hello it) { it->memory_bytes = 0; }), "");
  EXPECT_NE(wrong([](Hello it) { it->workers = 0; }), "");
  EXPECT_NE(wrong([](Hello it) { it->stream_version_min = kStreamVersions.max + 1; }), "");
  EXPECT_EQ(wrong([](Hello it) { it->stream_version_max = kStreamVersions.max + 1; }), "");
  EXPECT_NE(wrong([](Hello it) { it->name[0] = '\0'; }), "");
  EXPECT_NE(wrong([](Hello it) { it->name[0] = '\n'; }), "");
  EXPECT_NE(wrong([](Hello it) { it->name[31] = 'x'; }), "");
  EXPECT_EQ(wrong([](Hello it) { SetName(it, std::string(kServerNameBytesMax, 'n')); }), "");
}

TEST(ReplicaTest, AWordOfOneThatGoesOnThatAPrimaryCouldNotUseIsRefused) {
  const auto wrong = [](auto change) {
    return Wrong(ExampleResume(), DecodeReplicaResume, change);
  };
  using Resume = ReplicaResume*;
  EXPECT_EQ(wrong([](Resume) {}), "");
  EXPECT_NE(wrong([](Resume it) { it->incarnation = 0; }), "");
  EXPECT_NE(wrong([](Resume it) { it->epoch = 0; }), "");
  EXPECT_NE(wrong([](Resume it) { it->lsn += 1; }), "");
  EXPECT_NE(wrong([](Resume it) { it->position += 4; }), "");
  EXPECT_NE(wrong([](Resume it) { it->ring_bytes += 8; }), "");
  EXPECT_NE(wrong([](Resume it) { it->ring_address = 0; }), "");
  EXPECT_NE(wrong([](Resume it) { it->reserved = 1; }), "");
}

TEST(ReplicaTest, AWelcomeThatABackupCouldNotUseIsRefused) {
  const auto wrong = [](auto change) {
    return Wrong(ExampleWelcome(), DecodeReplicaWelcome, change);
  };
  using Welcome = ReplicaWelcome*;
  EXPECT_EQ(wrong([](Welcome) {}), "");
  EXPECT_NE(wrong([](Welcome it) { it->incarnation = 0; }), "");
  EXPECT_NE(wrong([](Welcome it) { it->history = 0; }), "");
  EXPECT_NE(wrong([](Welcome it) { it->epoch = 0; }), "");
  EXPECT_NE(wrong([](Welcome it) { it->stream_id = 0; }), "");
  EXPECT_NE(wrong([](Welcome it) { it->tail_end = it->first_lsn - 8; }), "");
  EXPECT_NE(wrong([](Welcome it) { it->first_lsn -= 1; }), "");
  EXPECT_NE(wrong([](Welcome it) { it->tail_end += 1; }), "");
  EXPECT_NE(wrong([](Welcome it) { it->position += 4; }), "");
  EXPECT_NE(wrong([](Welcome it) { it->version_next = 0; }), "");
  EXPECT_NE(wrong([](Welcome it) { it->lease_ms = kPrimaryLeaseMsMin - 1; }), "");
  EXPECT_NE(wrong([](Welcome it) { it->lease_ms = kPrimaryLeaseMsMax + 1; }), "");
  EXPECT_NE(wrong([](Welcome it) { it->reserved = 1; }), "");
}

TEST(ReplicaTest, ABeaconOrAnswerOfNoEpochOrNumberOrWordIsRefused) {
  const auto wrong = [](auto change) { return Wrong(ExampleBeacon(), DecodeBeacon, change); };
  EXPECT_EQ(wrong([](Beacon*) {}), "");
  EXPECT_NE(wrong([](Beacon* it) { it->epoch = 0; }), "");
  EXPECT_NE(wrong([](Beacon* it) { it->sequence = 0; }), "");
  EXPECT_NE(wrong([](Beacon* it) { it->committed += 1; }), "");
  const auto answer = [](auto change) {
    return Wrong(ExampleBeaconAnswer(), DecodeBeaconAnswer, change);
  };
  EXPECT_EQ(answer([](BeaconAnswer*) {}), "");
  EXPECT_NE(answer([](BeaconAnswer* it) { it->epoch = 0; }), "");
  EXPECT_NE(answer([](BeaconAnswer* it) { it->sequence = 0; }), "");
  EXPECT_NE(answer([](BeaconAnswer* it) { it->applied += 1; }), "");
  EXPECT_NE(answer([](BeaconAnswer* it) { it->consumed += 4; }), "");
}

TEST(ReplicaTest, AReceiversHelloThatAPrimaryCouldNotUseIsRefused) {
  const auto wrong = [](auto change) {
    return Wrong(ExampleReceiverHello(), DecodeReceiverHello, change);
  };
  using Hello = ReceiverHello*;
  EXPECT_EQ(wrong([](Hello) {}), "");
  EXPECT_NE(wrong([](Hello it) { it->incarnation = 0; }), "");
  EXPECT_NE(wrong([](Hello it) { it->ring_bytes = kRingBytesMin - kRingAlignment; }), "");
  EXPECT_NE(wrong([](Hello it) { it->ring_bytes = kRingBytesMax + kRingAlignment; }), "");
  EXPECT_NE(wrong([](Hello it) { it->ring_bytes += 8; }), "");
  EXPECT_NE(wrong([](Hello it) { it->ring_address = 0; }), "");
  EXPECT_NE(wrong([](Hello it) { it->ring_address += 8; }), "");
  EXPECT_NE(wrong([](Hello it) { it->ring_address = 0 - kRingAlignment; }), "");
  EXPECT_NE(wrong([](Hello it) { it->stream_version_min = kStreamVersions.max + 1; }), "");
  EXPECT_EQ(wrong([](Hello it) { it->stream_version_max = kStreamVersions.max + 1; }), "");
  EXPECT_NE(wrong([](Hello it) { it->reserved = 1; }), "");
  EXPECT_NE(wrong([](Hello it) { it->name[0] = '\0'; }), "");
  EXPECT_NE(wrong([](Hello it) { it->name[0] = '\n'; }), "");
  EXPECT_NE(wrong([](Hello it) { it->name[31] = 'x'; }), "");
  EXPECT_EQ(wrong([](Hello it) { SetName(it, std::string(kServerNameBytesMax, 'n')); }), "");
}

TEST(ReplicaTest, AnEndOfPartitionsThatSaysNothingIsRefused) {
  const auto wrong = [](auto change) { return Wrong(ExampleEnded(), DecodeMoveEnded, change); };
  using Ended = MoveEnded*;
  EXPECT_EQ(wrong([](Ended) {}), "");
  EXPECT_NE(wrong([](Ended it) { it->epoch = 0; }), "");
  EXPECT_NE(wrong([](Ended it) { it->revision = 0; }), "");
  EXPECT_NE(wrong([](Ended it) { it->lsn += 1; }), "");
  EXPECT_EQ(wrong([](Ended it) { it->lsn = 0; }), "");
  EXPECT_NE(wrong([](Ended it) { it->version_next = 0; }), "");
  MoveClosing closing = ExampleClosing();
  closing.epoch = 0;
  EXPECT_FALSE(DecodeMoveClosing(BytesOf(closing)).ok());
}

}  // namespace
}  // namespace gannet
