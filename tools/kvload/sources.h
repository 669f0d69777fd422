#ifndef GANNET_TOOLS_KVLOAD_SOURCES_H_
#define GANNET_TOOLS_KVLOAD_SOURCES_H_

#include <cstdint>
#include <optional>
#include <span>

#include "tools/kvload/acknowledged_counter.h"
#include "tools/kvload/operation.h"
#include "tools/kvload/random.h"
#include "tools/kvload/trace.h"
#include "tools/kvload/value_sizes.h"
#include "tools/kvload/workload.h"
#include "tools/kvload/zipf.h"

namespace gannet::kvload {

struct Sizes {
  uint32_t key_bytes = 16;
  uint32_t value_bytes = 100;       // the largest, if there are several
  std::optional<ValueSizes> mixed;  // values of several sizes

  uint32_t ValueBytesOf(uint64_t record) const { return mixed ? mixed->Of(record) : value_bytes; }
};

// Inserts records [first, end), each once, or reads them to warm up. With a stride, uses the
// records stride * i for i in [first, end).
class LoadSource : public OperationSource {
 public:
  LoadSource(uint64_t first, uint64_t end, Sizes sizes, OpKind kind = OpKind::kInsert,
             uint64_t stride = 1)
      : kind_(kind), next_(first), end_(end), sizes_(sizes), stride_(stride) {}
  bool Next(LoadOperation& operation) override;

 private:
  const OpKind kind_;
  uint64_t next_;
  uint64_t end_;
  Sizes sizes_;
  const uint64_t stride_;
};

// Draws one of the records 0 to n - 1. REQUIRES: n > 0.
uint64_t DrawRecord(Distribution distribution, uint64_t n, const Zipf& zipf, Random& random);

// A YCSB core workload. The threads of a run share `records`. Operations use every `stride`-th of
// the records that were loaded.
class YcsbSource : public OperationSource {
 public:
  YcsbSource(const Mix& mix, uint64_t operations, Sizes sizes, uint64_t seed,
             AcknowledgedCounter& records, uint64_t stride = 1)
      : mix_(mix),
        left_(operations),
        sizes_(sizes),
        stride_(stride),
        random_(seed),
        records_(records) {}
  bool Next(LoadOperation& operation) override;
  void Inserted(uint64_t record) override { records_.Acknowledge(record); }

 private:
  OpKind ChooseKind();

  const Mix mix_;
  uint64_t left_;
  const Sizes sizes_;
  const uint64_t stride_;
  Random random_;
  const Zipf zipf_{kZipfTheta};
  AcknowledgedCounter& records_;
};

// One thread's share of a trace: the events whose key hashes to the thread, in order. So threads
// never touch the same key.
class TraceSource : public OperationSource {
 public:
  TraceSource(std::span<const TraceEvent> events, uint32_t thread, uint32_t threads)
      : events_(events), thread_(thread), threads_(threads) {}
  bool Next(LoadOperation& operation) override;

 private:
  std::span<const TraceEvent> events_;
  uint32_t thread_;
  uint32_t threads_;
};

// Replaces the GETs of another source by bare READs. The backend knows which items to READ. The
// source still draws the keys, so that the caller's work is the same as for a GET.
class RawReadSource : public OperationSource {
 public:
  explicit RawReadSource(const YcsbSource& gets) : gets_(gets) {}
  bool Next(LoadOperation& operation) override;

 private:
  YcsbSource gets_;
};

// Prepares READs of items. First comes a GET of every key, from which the backend learns the item's
// place. Then come the READs themselves, which map the pages.
class LocateSource : public OperationSource {
 public:
  explicit LocateSource(const YcsbSource& gets) : gets_(gets), reads_(gets) {}
  bool Next(LoadOperation& operation) override;

 private:
  YcsbSource gets_;
  RawReadSource reads_;
};

}  // namespace gannet::kvload

#endif  // GANNET_TOOLS_KVLOAD_SOURCES_H_
