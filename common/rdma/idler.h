#ifndef GANNET_COMMON_RDMA_IDLER_H_
#define GANNET_COMMON_RDMA_IDLER_H_

namespace gannet {

// Lets time pass for who blocks until the device has done something, instead of a sleep. For
// simulations, whose device moves only when it is stepped.
class Idler {
 public:
  virtual void Idle() = 0;

 protected:
  ~Idler() = default;
};

}  // namespace gannet

#endif  // GANNET_COMMON_RDMA_IDLER_H_
