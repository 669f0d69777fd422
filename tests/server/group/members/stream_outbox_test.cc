#include "server/group/members/stream_outbox.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <vector>

#include "tests/server/log/stream/some_records.h"

namespace gannet {
namespace {

constexpr uint64_t kStream = 5;

// Returns the first record of a ring into which an update went.
std::optional<RingRecordView> UpdateInStreamOf(uint16_t version, bool raised = false) {
  alignas(64) static std::byte ring[2 << 20];
  const RingRecord update = UpdateOf("key", "value");
  RingWriter writer(ring, kStream, /*first_lsn=*/8);
  StreamOutbox outbox(&writer, raised ? kStreamVersions.min : version, /*first_transfer=*/0);
  if (raised) outbox.RaiseTo(version);
  outbox.Add(update.change, /*position=*/1, /*committed=*/8);
  const size_t bytes = writer.end().lsn - 8;
  return DecodeRingRecord(std::span(ring, bytes), {.stream_id = kStream, .lsn = 8});
}

TEST(StreamOutboxTest, AnUpdateIsAPutInAStreamOfTheVersionBefore) {
  const auto put = UpdateInStreamOf(kStreamVersionOfUpdates - 1);
  ASSERT_TRUE(put);
  EXPECT_EQ(put->record.kind, RingRecordKind::kPut);
  EXPECT_EQ(put->record.change.value, "value");
  EXPECT_EQ(put->record.change.version, UpdateOf("key", "value").change.version);
  const auto update = UpdateInStreamOf(kStreamVersionOfUpdates);
  ASSERT_TRUE(update);
  EXPECT_EQ(update->record.kind, RingRecordKind::kUpdate);
  const auto raised = UpdateInStreamOf(kStreamVersionOfUpdates, true);
  ASSERT_TRUE(raised);
  EXPECT_EQ(raised->record.kind, RingRecordKind::kUpdate);
}

}  // namespace
}  // namespace gannet
