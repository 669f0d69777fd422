// A program of the kind that users of Redis write in C: proxy_hiredis PORT SOCKET. Talks to a
// gannet-proxy by hiredis, and exits with 0 if every answer was right.

#include <hiredis/hiredis.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

void Require(bool right, const char* what) {
  if (right) return;
  std::fprintf(stderr, "proxy_hiredis: %s\n", what);
  std::exit(1);
}

redisReply* Answer(redisContext* redis) {
  void* reply = nullptr;
  Require(redisGetReply(redis, &reply) == REDIS_OK, redis->errstr);
  return static_cast<redisReply*>(reply);
}

void Use(redisContext* redis) {
  Require(redis != nullptr && redis->err == 0, "cannot connect");
  // With a NUL in it, which a text would end at.
  const char value[] = {'a', '\0', 'b'};
  constexpr int kTimes = 1000;
  for (int i = 0; i < kTimes; ++i) {
    redisAppendCommand(redis, "SET hiredis:%d %b", i, value, sizeof(value));
    redisAppendCommand(redis, "GET hiredis:%d", i);
  }
  for (int i = 0; i < kTimes; ++i) {
    redisReply* set = Answer(redis);
    Require(set->type == REDIS_REPLY_STATUS && std::strcmp(set->str, "OK") == 0, "SET");
    redisReply* get = Answer(redis);
    Require(get->type == REDIS_REPLY_STRING && get->len == sizeof(value) &&
                std::memcmp(get->str, value, sizeof(value)) == 0,
            "GET");
    freeReplyObject(set);
    freeReplyObject(get);
  }
  auto* none = static_cast<redisReply*>(redisCommand(redis, "GET %s", "hiredis:none"));
  Require(none != nullptr && none->type == REDIS_REPLY_NIL, "GET of nothing");
  freeReplyObject(none);
  redisFree(redis);
}

}  // namespace

int main(int argc, char** argv) {
  Require(argc == 3, "usage: proxy_hiredis PORT SOCKET");
  Use(redisConnect("127.0.0.1", std::atoi(argv[1])));
  Use(redisConnectUnix(argv[2]));
  return 0;
}
