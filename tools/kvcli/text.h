#ifndef GANNET_TOOLS_KVCLI_TEXT_H_
#define GANNET_TOOLS_KVCLI_TEXT_H_

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace gannet::kvcli {

using Json = nlohmann::ordered_json;

// Writes to the standard output.
void Say(std::string_view text);
// Writes "kvcli: TEXT" to the standard error, as a line.
void Complain(std::string_view text);

// Returns "12 s", "5 min 3 s", "3 h 5 min" or "2 d 3 h".
std::string TimeText(uint64_t seconds);

// RFC 4648, with padding.
std::string Base64(std::string_view bytes);

// Returns whether `bytes` are well-formed UTF-8 (Unicode 15, table 3-7): no overlong forms, no
// surrogates.
bool IsUtf8(std::string_view bytes);

// Returns a word that SplitLine reads as these bytes: as they are if that is a plain word of text,
// otherwise in "...".
std::string Escaped(std::string_view bytes);

// Returns the JSON in one line. Bytes that are no UTF-8, as an error may quote them, are replaced.
std::string Dump(const Json& json);

// What is shown of an error: its name, and its text.
Json ErrorJson(std::string_view name, std::string_view message);

// Adds `bytes` to an object: as `name` if they are UTF-8, and as `name`_base64 if they are not, or
// if `always_base64`, so that binary survives.
void AddBytes(std::string_view name, std::string_view bytes, bool always_base64, Json& object);

// Returns an object that has only a key.
Json KeyJson(std::string_view key);

// "1.500".
std::string Seconds(std::chrono::milliseconds time);

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_TEXT_H_
