#include "softverbs/nic/net_exchange.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "softverbs/base/log.h"
#include "softverbs/base/monotonic_clock.h"
#include "softverbs/base/net_config.h"
#include "softverbs/nic/loop.h"
#include "softverbs/nic/net_key.h"

namespace softverbs {
namespace {

// How long the dialer waits for the Challenge. A stopped process may have accepted the connection,
// so the first dial does not wait long. Then the wait doubles.
constexpr int64_t kChallengeNs = 2'000'000'000;
constexpr int kDoublingsMax = 3;

bool SendAll(int socket, const void* data, size_t size) {
  // A new connection's buffer has room for these few bytes.
  return send(socket, data, size, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(size);
}

void DisableDelay(int socket) {
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

// A connection's socket, its watch and its timer. The watch keeps the object alive.
class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  explicit Exchange(UniqueFd socket) : socket_(std::move(socket)) {}
  virtual ~Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

 protected:
  void Watch(uint32_t events) {
    Loop::Get().Remove(watch_);
    watch_ = Loop::Get().Add(socket_.get(), events, [self = shared_from_this()](uint32_t) {
      const std::shared_ptr<Exchange> keep = self;  // the handler may be removed
      keep->OnEvent();
    });
  }
  void StartTimer(int64_t wait_ns) {
    Loop::Get().Cancel(std::exchange(timer_, 0));
    timer_ = Loop::Get().RunAt(MonotonicNs() + wait_ns,
                               [self = shared_from_this()] { self->Fail(ETIMEDOUT); });
  }
  void Stop() {
    Loop::Get().Remove(std::exchange(watch_, 0));
    Loop::Get().Cancel(std::exchange(timer_, 0));
  }

  // Reads what is missing of a frame. Returns true once it is complete. Reads nothing behind it.
  template <class Frame>
  bool Receive(Frame* frame) {
    auto* bytes = reinterpret_cast<uint8_t*>(frame);
    while (received_ < sizeof(*frame)) {
      const ssize_t got =
          recv(socket_.get(), bytes + received_, sizeof(*frame) - received_, MSG_DONTWAIT);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
      if (got <= 0) {
        Fail(got == 0 ? ECONNRESET : errno);
        return false;
      }
      received_ += static_cast<size_t>(got);
    }
    received_ = 0;
    return true;
  }

  virtual void OnEvent() = 0;
  virtual void Fail(int error) = 0;

  UniqueFd socket_;

 private:
  size_t received_ = 0;
  Loop::Watch watch_ = 0;
  Loop::Timer timer_ = 0;
};

int ErrorOf(NetStatus status) {
  switch (status) {
    case NetStatus::kOk:
      return 0;
    case NetStatus::kNobody:
      return ECONNREFUSED;
    case NetStatus::kBusy:
    case NetStatus::kStale:
      return EAGAIN;
    case NetStatus::kKey:
      return EACCES;
    default:
      return EPROTO;
  }
}

class Dial final : public Exchange {
 public:
  Dial(UniqueFd socket, const NetOpening& opening, std::function<void(DialResult)> done)
      : Exchange(std::move(socket)), opening_(opening), done_(std::move(done)) {}

  void Start(int dials) {
    StartTimer(kChallengeNs << std::min(dials, kDoublingsMax));
    Watch(EPOLLOUT);
  }

 private:
  void OnEvent() override {
    switch (step_) {
      case Step::kConnect:
        return OnConnected();
      case Step::kChallenge:
        if (Receive(&challenge_)) OnChallenge();
        return;
      case Step::kWelcome:
        if (Receive(&welcome_)) OnWelcome();
        return;
      case Step::kOver:
        return;
    }
  }

  void OnConnected() {
    int error = 0;
    socklen_t size = sizeof(error);
    getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return Fail(error);
    DisableDelay(socket_.get());
    if (!SendAll(socket_.get(), &opening_, sizeof(opening_))) return Fail(ECONNRESET);
    step_ = Step::kChallenge;
    Watch(EPOLLIN);
  }

  void OnChallenge() {
    if (Check(challenge_) != NetVerdict::kGood) return Fail(EPROTO);
    if (challenge_.status != NetStatus::kOk) return Fail(ErrorOf(challenge_.status));
    if (!SameMac(challenge_.mac, ChallengeMac(opening_, challenge_.nonce))) {
      Report("a host that was dialed has another key: SOFTVERBS_NET_KEY must be the same");
      return Fail(EACCES);
    }
    const Proof proof{ProofMac(opening_, challenge_.nonce)};
    if (!SendAll(socket_.get(), &proof, sizeof(proof))) return Fail(ECONNRESET);
    step_ = Step::kWelcome;
    StartTimer(kExchangeNs);
  }

  void OnWelcome() {
    if (Check(welcome_) != NetVerdict::kGood) return Fail(EPROTO);
    if (welcome_.status != NetStatus::kOk) return Fail(ErrorOf(welcome_.status));
    Stop();
    step_ = Step::kOver;
    std::exchange(done_, nullptr)({0, std::move(socket_), welcome_});
  }

  void Fail(int error) override {
    if (step_ == Step::kOver) return;
    Stop();
    step_ = Step::kOver;
    socket_.Reset();
    std::exchange(done_, nullptr)({error, UniqueFd(), {}});
  }

  enum class Step { kConnect, kChallenge, kWelcome, kOver };
  Step step_ = Step::kConnect;
  const NetOpening opening_;
  Challenge challenge_;
  Welcome welcome_;
  std::function<void(DialResult)> done_;
};

class AnsweringExchange final : public Exchange {
 public:
  using Done = std::function<void(UniqueFd, const NetCaller&)>;
  AnsweringExchange(Strangers& strangers, UniqueFd socket, const ibv_gid& own, const ibv_gid& from,
                    Decide decide, Done done)
      : Exchange(std::move(socket)),
        strangers_(strangers),
        decide_(std::move(decide)),
        done_(std::move(done)) {
    caller_.own = own;
    caller_.gid = from;
  }

  void Start() {
    const auto self = std::static_pointer_cast<AnsweringExchange>(shared_from_this());
    stranger_ = strangers_.Add(caller_.gid, MonotonicNs(), [self] { self->MakeRoom(); });
    if (stranger_ == 0) return MakeRoom();
    // Once for all that is still to come, however slowly it does.
    StartTimer(kExchangeNs);
    Watch(EPOLLIN);
  }

 private:
  void OnEvent() override {
    if (over_) return;
    if (!challenged_) {
      if (Receive(&caller_.opening)) OnOpening();
    } else if (Receive(&proof_)) {
      OnProof();
    }
  }

  void OnOpening() {
    if (Check(caller_.opening) != NetVerdict::kGood) return Fail(EPROTO);
    Challenge challenge;
    if (!FillNonce(&challenge.nonce)) return Fail(EIO);
    nonce_ = challenge.nonce;
    challenge.mac = ChallengeMac(caller_.opening, nonce_);
    if (!SendAll(socket_.get(), &challenge, sizeof(challenge))) return Fail(ECONNRESET);
    challenged_ = true;
  }

  void OnProof() {
    Welcome welcome;
    if (SameMac(proof_.mac, ProofMac(caller_.opening, nonce_))) {
      welcome = decide_(caller_);
    } else {
      Report("refused a connection of another host: it has another key, or none");
      welcome.status = NetStatus::kKey;
    }
    if (!SendAll(socket_.get(), &welcome, sizeof(welcome))) return Fail(ECONNRESET);
    if (welcome.status != NetStatus::kOk) return Fail(EACCES);
    End();
    DisableDelay(socket_.get());
    std::exchange(done_, nullptr)(std::move(socket_), caller_);
  }

  // Ends it, because there is no place for it, or others want its place. A dialer that has the key
  // tries again.
  void MakeRoom() {
    if (challenged_) {
      Welcome welcome;
      welcome.status = NetStatus::kBusy;
      SendAll(socket_.get(), &welcome, sizeof(welcome));
    } else {
      RefuseCaller(socket_.get(), NetStatus::kBusy);
    }
    Fail(EAGAIN);
  }

  void Fail(int) override {
    if (over_) return;
    End();
    socket_.Reset();
  }

  void End() {
    over_ = true;
    Stop();
    strangers_.Remove(stranger_);
  }

  Strangers& strangers_;
  Strangers::Id stranger_ = 0;
  bool challenged_ = false;
  bool over_ = false;
  NetCaller caller_{};
  NetBytes nonce_{};
  Proof proof_;
  Decide decide_;
  Done done_;
};

// Returns an invalid descriptor and sets errno if the connection cannot even begin.
UniqueFd BeginConnect(const ibv_gid& from, const ibv_gid& gid) {
  sockaddr_storage own, to;
  const socklen_t own_size = ToSocketAddress(from, 0, &own);
  const socklen_t to_size = ToSocketAddress(gid, Net()->port, &to);
  UniqueFd fd(socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return fd;
  // The peer knows us by the address that we connect from. The port is chosen by connect: several
  // connections may share it if their destinations differ.
  const int on = 1;
  setsockopt(fd.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
  const bool begun =
      bind(fd.get(), reinterpret_cast<sockaddr*>(&own), own_size) == 0 &&
      (connect(fd.get(), reinterpret_cast<sockaddr*>(&to), to_size) == 0 || errno == EINPROGRESS);
  if (!begun) {
    const int error = errno;
    fd.Reset();
    errno = error;
  }
  return fd;
}

}  // namespace

void DialHost(const ibv_gid& own, const ibv_gid& gid, const NetOpening& opening, int dials,
              std::function<void(DialResult)> done) {
  Loop::Get().Post(
      [own, gid, opening = NetOpening(opening), dials, done = std::move(done)]() mutable {
        UniqueFd socket = BeginConnect(own, gid);
        const bool ready = socket && FillNonce(&opening.nonce);
        if (!ready) return done({errno == 0 ? EIO : errno, UniqueFd(), {}});
        std::make_shared<Dial>(std::move(socket), opening, std::move(done))->Start(dials);
      });
}

void AnswerCaller(Strangers& strangers, UniqueFd socket, Decide decide,
                  std::function<void(UniqueFd, const NetCaller&)> done) {
  const auto from = PeerGid(socket.get()), own = OwnGid(socket.get());
  if (!from || !own) return;  // it has hung up
  std::make_shared<AnsweringExchange>(strangers, std::move(socket), *own, *from, std::move(decide),
                                      std::move(done))
      ->Start();
}

void RefuseCaller(int socket, NetStatus status) {
  Challenge challenge;
  challenge.status = status;
  SendAll(socket, &challenge, sizeof(challenge));
  // What was not read would make the kernel reset the connection, and the dialer lose the refusal.
  NetOpening unread;
  while (recv(socket, &unread, sizeof(unread), MSG_DONTWAIT) > 0) {
  }
}

}  // namespace softverbs
