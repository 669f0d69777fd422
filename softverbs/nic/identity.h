#ifndef SOFTVERBS_NIC_IDENTITY_H_
#define SOFTVERBS_NIC_IDENTITY_H_

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdint>

namespace softverbs {

// The context and the handle that an object got when it was made. Both are public fields of the
// object, and a kernel finds the object by them. So a program that overwrites them, or passes an
// object that it destroyed and whose memory has other contents now, gets ENOENT of a kernel.
// softverbs finds objects by their address, and compares instead. Only calls that ask the kernel
// on a real device check this: making, changing, querying and destroying.
class Identity {
 public:
  // Takes over what the object's public fields say. Called once they are final.
  template <class Public>
  void Take(const Public& object) {
    context_ = object.context;
    handle_ = object.handle;
  }

  // Returns 0, or ENOENT if the public fields say something else now.
  template <class Public>
  int Check(const Public& object) const {
    return object.context == context_ && object.handle == handle_ ? 0 : ENOENT;
  }

 private:
  const ibv_context* context_ = nullptr;
  uint32_t handle_ = 0;
};

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_IDENTITY_H_
