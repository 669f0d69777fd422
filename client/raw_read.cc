#include "client/raw_read.h"

#include <utility>

#include "client/api/requests.h"
#include "client/engine/engine.h"

namespace gannet {

class RawReader::State {
 public:
  std::unique_ptr<Engine> engine;
  int64_t timeout_ns = 0;
};

absl::StatusOr<std::unique_ptr<RawReader>> RawReader::Connect(std::string endpoint,
                                                              Options options) {
  auto engine = ConnectEngine({.endpoints = {std::move(endpoint)},
                               .options = options,
                               .queue_pairs_max = ClientSession::kQueuePairsMax});
  if (!engine.ok()) return engine.status();
  auto state = std::make_unique<State>();
  state->engine = *std::move(engine);
  state->timeout_ns = TimeoutNs(options.deadline);
  return std::unique_ptr<RawReader>(new RawReader(std::move(state)));
}

RawReader::RawReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
RawReader::~RawReader() = default;

uint64_t RawReader::region_bytes() const { return state_->engine->session(0).view().region_bytes; }

absl::Status RawReader::Read(uint64_t offset, uint32_t bytes, uint64_t user_data) {
  Engine& engine = *state_->engine;
  if (!engine.session(0).view().Contains(offset, bytes)) {
    return absl::InvalidArgumentError("not in the region, or too long");
  }
  OpRequest request;
  request.raw_read = true;
  request.raw_offset = offset;
  request.raw_bytes = bytes;
  request.timeout_ns = state_->timeout_ns;
  request.user_data = user_data;
  if (engine.Begin(request) == kNoOp) {
    return absl::ResourceExhaustedError("Options::depth READs are in flight; poll first");
  }
  return absl::OkStatus();
}

size_t RawReader::Poll(std::span<Completion> out) {
  Engine& engine = *state_->engine;
  engine.Poll(engine.clock().MonotonicNs());
  size_t n = 0;
  while (n < out.size()) {
    const uint32_t i = engine.NextFinished();
    if (i == kNoOp) break;
    const Op& op = engine.op(i);
    out[n++] = {.user_data = op.request.user_data,
                .code = CodeOf(op.outcome),
                .found = op.found,
                .info = op.info,
                .cost = op.cost};
    engine.Release(i);
  }
  return n;
}

uint32_t RawReader::in_flight() const { return state_->engine->alive(); }

}  // namespace gannet
