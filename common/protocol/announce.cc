#include "common/protocol/announce.h"

#include <algorithm>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace gannet {
namespace {

bool IsPlain(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("._:-[]").find(c) != std::string_view::npos;
  });
}

template <size_t n>
void Put(std::string_view text, char (&out)[n]) {
  std::memcpy(out, text.data(), text.size());
}

// Takes a text that ends at its first NUL, if all bytes behind that are NUL, too.
template <size_t n>
bool Take(const char (&bytes)[n], std::string* out) {
  const size_t end = static_cast<size_t>(std::find(bytes, bytes + n, '\0') - bytes);
  if (end == n) return false;
  if (!std::all_of(bytes + end, bytes + n, [](char c) { return c == '\0'; })) return false;
  out->assign(bytes, end);
  return IsPlain(*out);
}

absl::Status Wrong(std::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("no announcement: ", std::string(what)));
}

}  // namespace

bool CanAnnounce(const ServerAnnouncement& it) {
  const auto fits = [](const std::string& text, size_t bytes) {
    return text.size() < bytes && IsPlain(text);
  };
  return fits(it.cluster, kAnnounceNameBytes) && fits(it.group, kAnnounceNameBytes) &&
         fits(it.name, kAnnounceNameBytes) && fits(it.address, kAnnounceAddressBytes) &&
         !it.address.empty();
}

AnnounceBytes EncodeAnnouncement(const ServerAnnouncement& it) {
  GANNET_CHECK(CanAnnounce(it), "an announcement that nobody can make");
  AnnounceBytes bytes{};
  bytes.magic = kAnnounceMagic;
  bytes.version = kAnnounceVersion;
  bytes.length = sizeof(AnnounceBytes);
  bytes.epoch = it.epoch;
  bytes.sequence = it.sequence;
  bytes.primary = it.primary ? 1 : 0;
  Put(it.cluster, bytes.cluster);
  Put(it.group, bytes.group);
  Put(it.name, bytes.name);
  Put(it.address, bytes.address);
  return bytes;
}

absl::StatusOr<ServerAnnouncement> DecodeAnnouncement(std::span<const std::byte> datagram) {
  AnnounceBytes bytes;
  if (datagram.size() < sizeof(bytes)) return Wrong("it is too short");
  std::memcpy(&bytes, datagram.data(), sizeof(bytes));
  if (bytes.magic != kAnnounceMagic) return Wrong("it has another magic");
  if (bytes.version != kAnnounceVersion) {
    return absl::UnimplementedError(
        absl::StrCat("an announcement of version ", bytes.version, ", not ", kAnnounceVersion));
  }
  if (bytes.length != sizeof(bytes)) return Wrong("it has another length");
  const auto is_zero = [](uint8_t byte) { return byte == 0; };
  if (bytes.primary > 1 || !std::ranges::all_of(bytes.zero, is_zero)) {
    return Wrong("bytes that must be zero are not");
  }
  ServerAnnouncement it = {
      .epoch = bytes.epoch, .sequence = bytes.sequence, .primary = bytes.primary == 1};
  if (!Take(bytes.cluster, &it.cluster) || !Take(bytes.group, &it.group) ||
      !Take(bytes.name, &it.name) || !Take(bytes.address, &it.address)) {
    return Wrong("a text has bytes that it may not have");
  }
  if (it.address.empty() || it.sequence == 0) return Wrong("it says not where, or not when");
  return it;
}

}  // namespace gannet
