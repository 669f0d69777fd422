#ifndef GANNET_TESTS_FUZZ_FUZZ_TARGETS_H_
#define GANNET_TESTS_FUZZ_FUZZ_TARGETS_H_

#include <cstddef>
#include <span>

#include "softverbs/tests/fuzz/require.h"

namespace gannet::fuzz {

using softverbs::fuzz::Require;
using softverbs::fuzz::RequireSameBytes;
using softverbs::fuzz::RequireWithin;
using softverbs::fuzz::TextOf;

// One function for each decoder of bytes from another machine, or from a person's file. Each takes
// any bytes, and aborts if the decoder accepts something that its users could not use safely.
// libFuzzer calls them (preset asan: build/asan/bin/fuzz), and fuzz_corpus_test replays
// tests/fuzz/corpus/<name>/.

void ConnectRequestBytes(std::span<const std::byte> bytes);
void GrantBytes(std::span<const std::byte> bytes);
void RejectBytes(std::span<const std::byte> bytes);
void RequestBytes(std::span<const std::byte> bytes);
void ReplyBytes(std::span<const std::byte> bytes);
// A message between the members of a group.
void ReplicaBytes(std::span<const std::byte> bytes);
void AnnounceBytesRead(std::span<const std::byte> bytes);
// The report of a heartbeat.
void ClientReportBytes(std::span<const std::byte> bytes);
void SuperblockBytes(std::span<const std::byte> bytes);
// An item as READ at offset 4096 of incarnation 1 for the key "key". If the first byte is odd, its
// commit word is made right, so that the fuzzer gets past the checksum.
void ItemBytesRead(std::span<const std::byte> bytes);
// A stub there; its commit word is made right as above.
void StubBytesRead(std::span<const std::byte> bytes);
// The disk behind the memory: tier 0x1122334455667788. Checksums are made right as above. A header;
// a record of version 0x1234567 and lap 3 at position 8192, of the key "key" and 20 bytes; a list
// of lap 3: entries, and the end in the last bytes.
void TierHeaderBytes(std::span<const std::byte> bytes);
void TierRecordBytesRead(std::span<const std::byte> bytes);
void TierListBytesRead(std::span<const std::byte> bytes);
// A record of the example in docs/durability-formats.md: its journal and position.
void JournalRecordBytes(std::span<const std::byte> bytes);
// A record in a ring: stream 0x1122334455667788, LSN 0x4000. If the first byte is odd, its checksum
// is made right.
void RingRecordBytes(std::span<const std::byte> bytes);

// Edits of a memory file: the first byte says whether the checksums of its headers are made right.
// Then 12 bytes for each: the number of a word, and what it is xored with.
void MemoryFileBytes(std::span<const std::byte> bytes);
// The same of a file with stubs.
void MemoryFileWithStubsBytes(std::span<const std::byte> bytes);

// The text of an auth file.
void AuthFileBytes(std::span<const std::byte> bytes);
// What an application sends to gannet-proxy.
void MemcachedTextBytes(std::span<const std::byte> bytes);
void MemcachedBinaryBytes(std::span<const std::byte> bytes);
void RespBytes(std::span<const std::byte> bytes);

// What etcd, or whatever is at its address, answers.
void EtcdAnswerBytes(std::span<const std::byte> bytes);
// What lies in etcd of a cluster.
void ClusterConfigBytes(std::span<const std::byte> bytes);
void PartitionMapBytes(std::span<const std::byte> bytes);

struct Target {
  const char* name;
  void (*run)(std::span<const std::byte> bytes);
};
inline constexpr Target kTargets[] = {
    {"connect_request", ConnectRequestBytes},
    {"grant", GrantBytes},
    {"reject", RejectBytes},
    {"request", RequestBytes},
    {"reply", ReplyBytes},
    {"replica", ReplicaBytes},
    {"announce", AnnounceBytesRead},
    {"client_report", ClientReportBytes},
    {"superblock", SuperblockBytes},
    {"item", ItemBytesRead},
    {"stub", StubBytesRead},
    {"tier_header", TierHeaderBytes},
    {"tier_record", TierRecordBytesRead},
    {"tier_list", TierListBytesRead},
    {"journal_record", JournalRecordBytes},
    {"ring_record", RingRecordBytes},
    {"memory_file", MemoryFileBytes},
    {"memory_file_with_stubs", MemoryFileWithStubsBytes},
    {"auth_file", AuthFileBytes},
    {"memcached_text", MemcachedTextBytes},
    {"memcached_binary", MemcachedBinaryBytes},
    {"resp", RespBytes},
    {"etcd_answer", EtcdAnswerBytes},
    {"cluster_config", ClusterConfigBytes},
    {"partition_map", PartitionMapBytes},
};

}  // namespace gannet::fuzz

#endif  // GANNET_TESTS_FUZZ_FUZZ_TARGETS_H_
