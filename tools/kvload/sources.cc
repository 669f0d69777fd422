#include "tools/kvload/sources.h"

#include "common/base/align.h"
#include "common/base/hash.h"

namespace gannet::kvload {
namespace {

constexpr uint64_t kThreadSeed = 0x74687265616473ULL;

}  // namespace

void WriteKey(uint64_t record, uint32_t bytes, std::string& key) {
  key.assign(bytes, '0');
  for (auto digit = key.rbegin(); record != 0 && digit != key.rend(); ++digit) {
    *digit = static_cast<char>('0' + record % 10);
    record /= 10;
  }
}

bool LoadSource::Next(LoadOperation& operation) {
  if (next_ == end_) return false;
  operation.kind = kind_;
  operation.put_on_miss = false;
  operation.record = stride_ * next_++;
  operation.value_bytes = sizes_.ValueBytesOf(operation.record);
  WriteKey(operation.record, sizes_.key_bytes, operation.key);
  return true;
}

OpKind YcsbSource::ChooseKind() {
  int point = static_cast<int>(random_.Below(100));
  if (point < mix_.get) return OpKind::kGet;
  point -= mix_.get;
  if (point < mix_.put) return OpKind::kPut;
  point -= mix_.put;
  return point < mix_.insert ? OpKind::kInsert : OpKind::kRmw;
}

uint64_t DrawRecord(Distribution distribution, uint64_t n, const Zipf& zipf, Random& random) {
  switch (distribution) {
    case Distribution::kZipfian:
      return Scramble(zipf.Draw(n, random), n);
    case Distribution::kLatest:
      return n - 1 - zipf.Draw(n, random);
    case Distribution::kUniform:
      break;
  }
  return random.Below(n);
}

bool YcsbSource::Next(LoadOperation& operation) {
  if (left_ == 0) return false;
  --left_;
  operation.kind = ChooseKind();
  operation.put_on_miss = false;
  operation.record = operation.kind == OpKind::kInsert
                         ? records_.Take()
                         : DrawRecord(mix_.distribution, records_.acknowledged(), zipf_, random_);
  operation.record *= stride_;
  operation.value_bytes = sizes_.ValueBytesOf(operation.record);
  WriteKey(operation.record, sizes_.key_bytes, operation.key);
  return true;
}

bool TraceSource::Next(LoadOperation& operation) {
  while (!events_.empty()) {
    const TraceEvent& event = events_.front();
    events_ = events_.subspan(1);
    if (MapToRange(HashKey(event.key, kThreadSeed), threads_) != thread_) continue;
    operation.kind = event.kind;
    operation.put_on_miss = event.put_on_miss;
    operation.value_bytes = event.size;
    operation.ttl = event.ttl;
    operation.key = event.key;
    return true;
  }
  return false;
}

bool RawReadSource::Next(LoadOperation& operation) {
  if (!gets_.Next(operation)) return false;
  operation.kind = OpKind::kRawRead;
  return true;
}

bool LocateSource::Next(LoadOperation& operation) {
  return gets_.Next(operation) || reads_.Next(operation);
}

}  // namespace gannet::kvload
