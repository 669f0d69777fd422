#ifndef GANNET_TOOLS_KVLOAD_SOURCES_H_
#define GANNET_TOOLS_KVLOAD_SOURCES_H_

#include <cstdint>
#include <span>

#include "tools/kvload/acknowledged_counter.h"
#include "tools/kvload/operation.h"
#include "tools/kvload/random.h"
#include "tools/kvload/trace.h"
#include "tools/kvload/workload.h"
#include "tools/kvload/zipf.h"

namespace gannet::kvload {

struct Sizes {
  uint32_t key_bytes = 16;
  uint32_t value_bytes = 100;
};

// Inserts records [first, end), each once; or, to warm up, reads them.
class LoadSource : public OperationSource {
 public:
  LoadSource(uint64_t first, uint64_t end, Sizes sizes, OpKind kind = OpKind::kInsert)
      : kind_(kind), next_(first), end_(end), sizes_(sizes) {}
  bool Next(Operation& operation) override;

 private:
  const OpKind kind_;
  uint64_t next_;
  uint64_t end_;
  Sizes sizes_;
};

// A YCSB core workload. `records` is shared by the threads of a run.
class YcsbSource : public OperationSource {
 public:
  YcsbSource(const Mix& mix, uint64_t operations, Sizes sizes, uint64_t seed,
             AcknowledgedCounter& records)
      : mix_(mix), left_(operations), sizes_(sizes), random_(seed), records_(records) {}
  bool Next(Operation& operation) override;
  void Inserted(uint64_t record) override { records_.Acknowledge(record); }

 private:
  OpKind ChooseKind();
  uint64_t ChooseRecord();

  const Mix mix_;
  uint64_t left_;
  const Sizes sizes_;
  Random random_;
  const Zipf zipf_{kZipfTheta};
  AcknowledgedCounter& records_;
};

// One thread's share of a trace: the events whose block number hashes to it, in order, so that the
// threads never touch the same key. A read that misses is followed by a put.
class TraceSource : public OperationSource {
 public:
  TraceSource(std::span<const TraceEvent> events, uint32_t thread, uint32_t threads)
      : events_(events), thread_(thread), threads_(threads) {}
  bool Next(Operation& operation) override;

 private:
  std::span<const TraceEvent> events_;
  uint32_t thread_;
  uint32_t threads_;
};

// Bare READs, without a key.
class RawReadSource : public OperationSource {
 public:
  explicit RawReadSource(uint64_t operations) : left_(operations) {}
  bool Next(Operation& operation) override;

 private:
  uint64_t left_;
};

}  // namespace gannet::kvload

#endif  // GANNET_TOOLS_KVLOAD_SOURCES_H_
