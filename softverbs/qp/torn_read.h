#ifndef SOFTVERBS_QP_TORN_READ_H_
#define SOFTVERBS_QP_TORN_READ_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace softverbs {

// A READ that is executed in several steps, its aligned 8-byte words in any order. It is a fault
// that every reader of memory in use must withstand. Up to kUnitBytes of the answer are shuffled
// together.
class TornRead {
 public:
  static constexpr uint32_t kUnitBytes = 1 << 20;
  static constexpr size_t kSteps = 4;

  // For the bytes [begin, begin + size) of an answer. The first of them lies at `from`.
  TornRead(const uint8_t* from, uint32_t begin, uint32_t size, uint64_t seed);

  uint32_t begin() const { return begin_; }
  uint32_t end() const { return begin_ + static_cast<uint32_t>(bytes_.size()); }
  bool Done() const { return next_ == order_.size(); }
  // Returns the answer's bytes from `offset` on. REQUIRES: Done().
  const uint8_t* At(uint32_t offset) const { return bytes_.data() + (offset - begin_); }

  // Copies one step's worth of words. `from` is where byte begin() is.
  void Step(const uint8_t* from);

 private:
  struct Piece {
    uint32_t at;
    uint32_t size;
  };

  const uint32_t begin_;
  std::vector<uint8_t> bytes_;
  std::vector<Piece> order_;
  size_t next_ = 0;
};

}  // namespace softverbs

#endif  // SOFTVERBS_QP_TORN_READ_H_
