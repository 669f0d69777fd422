#ifndef SOFTVERBS_TESTS_FUZZ_NET_STREAM_H_
#define SOFTVERBS_TESTS_FUZZ_NET_STREAM_H_

#include <cstddef>
#include <span>

namespace softverbs::fuzz {

// Takes any bytes for what another host sends, and aborts if the decoders of net_wire.h accept
// something that nobody could use safely. libFuzzer calls it (fuzz_net_stream), and corpus_test.cc
// with the files of corpus/net_stream.
void NetStreamBytes(std::span<const std::byte> bytes);

}  // namespace softverbs::fuzz

#endif  // SOFTVERBS_TESTS_FUZZ_NET_STREAM_H_
