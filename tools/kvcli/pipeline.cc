#include "tools/kvcli/pipeline.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace gannet::kvcli {
namespace {

// If a value is longer than this, it is fetched again, through the other client.
constexpr size_t kValueRoom = 4096;

// Operations have deadlines of their own.
constexpr std::chrono::nanoseconds kWithoutLimit = std::chrono::hours(1);

std::string_view AnswerText(const Completion& answer, Verb verb) {
  switch (answer.code) {
    case absl::StatusCode::kAlreadyExists:
      return "the key is there";
    case absl::StatusCode::kNotFound:
      return "the key is not there";
    case absl::StatusCode::kFailedPrecondition:
      return "the version is another";
    case absl::StatusCode::kUnavailable:
      return verb == Verb::kGet ? "no answer, try again" : "not applied, try again";
    case absl::StatusCode::kUnknown:
      return "the connection broke, or too few copies are left; the write may have been applied";
    case absl::StatusCode::kDeadlineExceeded:
      return verb == Verb::kGet ? "no answer within the deadline"
                                : "no answer within the deadline; the write may have been applied";
    case absl::StatusCode::kResourceExhausted:
      return answer.index_full ? "the server's index is full; start it with more --index_slots"
                               : "the server's memory is full; start it with more --memory, or "
                                 "with --on_full=evict, which lets items go that are used little";
    default:
      return "the server refused the request; its log says why";
  }
}

}  // namespace

Pipeline::Pipeline(Shell& shell, Client& client, std::vector<std::string> servers,
                   const gannet::Options& options)
    : shell_(shell), client_(client), servers_(std::move(servers)), options_(options) {
  options_.depth = kInFlightMax;
}

bool Pipeline::Takes(const Command& command) const {
  switch (command.verb) {
    case Verb::kPut:
      return !command.value_from_stdin && command.file.empty();
    case Verb::kCompareAndSet:
      return !command.value_from_stdin && !shell_.holds(command.keys[0]);
    case Verb::kGet:
      return command.out.empty();
    case Verb::kDelete:
      return command.keys.size() == 1;
    default:
      return false;
  }
}

absl::Status Pipeline::Connect() {
  if (async_ != nullptr) return absl::OkStatus();
  GANNET_ASSIGN_OR_RETURN(async_, AsyncClient::Connect(servers_, options_));
  return absl::OkStatus();
}

void Pipeline::Run(Command command) {
  const std::string& key = command.keys[0];
  while (in_flight_ == kInFlightMax || entries_.size() == kUnshownMax || busy_keys_.contains(key)) {
    TakeAnswers(kWithoutLimit);
  }
  Entry& entry = entries_.emplace_back();
  entry.command = std::move(command);
  entry.refused = Connect();
  if (entry.refused.ok()) entry.refused = Start(entry);
  entry.done = !entry.refused.ok();
  if (entry.done) return;
  ++in_flight_;
  entry.holds_key = true;
  busy_keys_.insert(entry.command.keys[0]);
}

absl::Status Pipeline::Start(Entry& entry) {
  const Command& command = entry.command;
  const std::string& key = command.keys[0];
  const uint64_t number = first_number_ + entries_.size() - 1;
  switch (command.verb) {
    case Verb::kGet:
      entry.value.resize(kValueRoom);
      return async_->Get(key, entry.value, number);
    case Verb::kDelete:
      return async_->Delete(key, {.only_if_version = command.if_version}, number);
    default:
      return async_->Put(key, command.value,
                         {.flags = command.flags,
                          .ttl = command.ttl,
                          .only_if_absent = command.if_absent,
                          .only_if_present = command.if_present,
                          .only_if_version = command.if_version},
                         number);
  }
}

void Pipeline::Poll() { TakeAnswers(std::chrono::nanoseconds(0)); }

void Pipeline::TakeAnswers(std::chrono::nanoseconds wait) {
  if (async_ != nullptr) {
    std::array<Completion, 64> answers;
    const size_t n = in_flight_ > 0 ? async_->Wait(answers, wait) : async_->Poll(answers);
    for (size_t i = 0; i < n; ++i) OnAnswer(answers[i]);
  }
  while (!entries_.empty() && entries_.front().done) ShowFront();
}

void Pipeline::WaitOr(int fd) {
  if (async_ != nullptr && async_->Arm()) return;
  std::array<pollfd, 2> fds = {
      {{fd, POLLIN, 0}, {async_ != nullptr ? async_->fd() : -1, POLLIN, 0}}};
  poll(fds.data(), fds.size(), -1);
}

void Pipeline::OnAnswer(const Completion& answer) {
  Entry& entry = entries_[answer.user_data - first_number_];
  entry.answer = answer;
  entry.done = true;
  --in_flight_;
  // The value must be fetched again, so the next command on the key must not change it first.
  if (answer.info.value_bytes <= entry.value.size() || entry.command.verb != Verb::kGet) {
    GiveKeyBack(entry);
  }
}

void Pipeline::GiveKeyBack(Entry& entry) {
  if (std::exchange(entry.holds_key, false)) busy_keys_.erase(entry.command.keys[0]);
}

void Pipeline::ShowFront() {
  Entry& entry = entries_.front();
  worst_ = std::max(worst_, Show(entry));
  GiveKeyBack(entry);
  entries_.pop_front();
  ++first_number_;
}

absl::Status Pipeline::StatusOf(const Entry& entry) const {
  if (!entry.refused.ok()) return entry.refused;
  if (entry.answer.code == absl::StatusCode::kOk) return absl::OkStatus();
  const uint32_t server = async_->ServerOf(entry.command.keys[0]);
  std::string text = absl::StrCat(async_->Info()[server].endpoint, ": ",
                                  std::string(AnswerText(entry.answer, entry.command.verb)));
  if (entry.answer.code == absl::StatusCode::kFailedPrecondition) {
    absl::StrAppend(&text, ": ", entry.answer.info.version, " (0: absent)");
  }
  return absl::Status(entry.answer.code, text);
}

int Pipeline::Show(const Entry& entry) {
  const absl::Status status = StatusOf(entry);
  const Completion& answer = entry.answer;
  switch (entry.command.verb) {
    case Verb::kGet: {
      if (!status.ok()) return shell_.ShowGet(entry.command, status);
      if (!answer.found) return shell_.ShowGet(entry.command, std::nullopt);
      if (answer.info.value_bytes > entry.value.size()) {
        return shell_.ShowGet(entry.command, client_.Get(entry.command.keys[0]));
      }
      const auto* bytes = reinterpret_cast<const char*>(entry.value.data());
      return shell_.ShowGet(entry.command,
                            Value{std::string(bytes, answer.info.value_bytes), answer.info});
    }
    case Verb::kDelete:
      if (!status.ok()) return shell_.ShowDelete(entry.command, status);
      return shell_.ShowDelete(entry.command, answer.found);
    default:
      if (!status.ok()) return shell_.ShowPut(entry.command, status);
      return shell_.ShowPut(entry.command, answer.info.version);
  }
}

void Pipeline::Finish() {
  while (!idle()) TakeAnswers(kWithoutLimit);
}

}  // namespace gannet::kvcli
