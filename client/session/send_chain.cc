#include "client/session/send_chain.h"

#include "common/base/check.h"
#include "common/base/data_path_checks.h"

namespace gannet {

void SendChain::SetRegion(uint64_t address, uint32_t rkey, uint32_t lkey) {
  GANNET_CHECK(empty(), "a chain is built for another region");
  region_address_ = address;
  region_rkey_ = rkey;
  own_lkey_ = lkey;
  MakeReads(kMax);
}

void SendChain::MakeReads(uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) {
    Entry& entry = entries_[i];
    entry.request = ReadRequest(0, nullptr, 0, region_rkey_, 0);
    PointOn(&entry);
    entry.sge.lkey = own_lkey_;
  }
  has_others_ = false;
}

void SendChain::AddReadInto(uint32_t op, uint64_t offset, std::span<const LocalPiece> pieces) {
  GANNET_CHECK_DATA_PATH(TakesPieces(static_cast<uint32_t>(pieces.size())),
                         "a READ into too many pieces");
  Entry& entry = *next_;
  AddRead({reinterpret_cast<std::byte*>(pieces[0].address), offset, op, pieces[0].bytes,
           pieces[0].keys});
  if (pieces.size() == 1) return;
  has_others_ = true;
  entry.request.sg_list = &pieces_[pieces_used_];
  entry.request.num_sge = static_cast<int>(pieces.size());
  for (const LocalPiece& piece : pieces) {
    pieces_[pieces_used_++] = {piece.address, piece.bytes, piece.keys->lkeys[connection_->domain]};
  }
}

}  // namespace gannet
