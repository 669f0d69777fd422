#ifndef GANNET_TESTS_SERVER_WRITES_RECORDED_CHANGES_H_
#define GANNET_TESTS_SERVER_WRITES_RECORDED_CHANGES_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "server/log/changes/change_sink.h"
#include "server/log/changes/update_lane_inline.h"

namespace gannet {

// Records everything, at the positions 1, 2, 3 ..., until it is told to refuse. An update takes as
// many positions as a journal's record.
struct RecordedChanges : ChangeSink, ChangeRecorder {
  std::optional<ChangePlace> Reserve(const Change& change) override {
    if (refuses) return std::nullopt;
    changes.push_back((change.kind == Change::Kind::kPut ? "put " : "delete ") +
                      std::string(change.key));
    return ChangePlace{.end = ++end};
  }
  std::optional<ChangePlace> ReserveUndo(const Change& deletion,
                                         std::span<const SessionRecord> answers) override {
    if (refuses) return std::nullopt;
    for (const SessionRecord& answer : answers) RecordSession(answer);
    return Reserve(deletion);
  }
  void Fill(const Change&, const ChangePlace&) override {}
  bool BeginUpdates(UpdateLane* lane) override {
    if (refuses) return false;
    lane->Begin(end);
    if (!gives_memory) return true;
    memory.push_back(std::make_unique<std::array<std::byte, 4096>>());
    lane->UseMemory(*memory.back());
    return true;
  }
  void EndUpdates(UpdateLane* lane) override {
    lane->Seal();
    for (const PlacedUpdate& update : lane->updates()) {
      changes.push_back("update " + std::string(UpdateKeyOf(update.body)));
    }
    end = lane->position();
  }
  // Not counted as a position.
  void RecordSession(const SessionRecord& record) override {
    for (size_t i = 0; i < record.answer_count(); ++i) {
      changes.push_back("answer " + std::to_string(record.token) + "." +
                        std::to_string(record.answer(i).sequence) + " " +
                        std::to_string(record.answer(i).status) +
                        (record.undone_by == 0 ? "" : " undone"));
    }
  }
  bool Record(const Change& change) override { return Reserve(change).has_value(); }

  bool refuses = false;
  bool gives_memory = false;  // to lanes
  std::vector<std::unique_ptr<std::array<std::byte, 4096>>> memory;
  std::atomic<uint64_t> end{0};
  std::vector<std::string> changes;
};

}  // namespace gannet

#endif  // GANNET_TESTS_SERVER_WRITES_RECORDED_CHANGES_H_
