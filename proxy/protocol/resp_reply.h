#ifndef GANNET_PROXY_PROTOCOL_RESP_REPLY_H_
#define GANNET_PROXY_PROTOCOL_RESP_REPLY_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace gannet::proxy {

// Writes Redis' replies to a text. RESP2 and RESP3 differ in what has no value, and in maps.
class RespReply {
 public:
  RespReply(std::string* out, bool resp3) : out_(*out), resp3_(resp3) {}

  void Simple(std::string_view text) { Line('+', text); }
  void Error(std::string_view text) { Line('-', text); }
  void Integer(int64_t number) { Line(':', std::to_string(number)); }
  void Bulk(std::string_view bytes) {
    Line('$', std::to_string(bytes.size()));
    out_.append(bytes).append("\r\n");
  }
  void Null() { out_ += resp3_ ? "_\r\n" : "$-1\r\n"; }
  // Writes "no array".
  void NullArray() { out_ += resp3_ ? "_\r\n" : "*-1\r\n"; }
  // Begins an array of that many replies. A map has pairs of them.
  void Array(size_t elements) { Line('*', std::to_string(elements)); }
  void Map(size_t pairs) {
    if (!resp3_) return Array(2 * pairs);
    Line('%', std::to_string(pairs));
  }
  // Writes a text for people.
  void Text(std::string_view text) {
    if (!resp3_) return Bulk(text);
    Line('=', std::to_string(text.size() + 4));
    out_.append("txt:").append(text).append("\r\n");
  }

 private:
  void Line(char mark, std::string_view text) {
    out_ += mark;
    out_.append(text).append("\r\n");
  }

  std::string& out_;
  const bool resp3_;
};

}  // namespace gannet::proxy

#endif  // GANNET_PROXY_PROTOCOL_RESP_REPLY_H_
