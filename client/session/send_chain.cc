#include "client/session/send_chain.h"

namespace gannet {

void SendChain::SetRegion(uint64_t address, uint32_t rkey, uint32_t lkey) {
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

}  // namespace gannet
