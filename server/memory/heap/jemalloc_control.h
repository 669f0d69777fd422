#ifndef GANNET_SERVER_MEMORY_HEAP_JEMALLOC_CONTROL_H_
#define GANNET_SERVER_MEMORY_HEAP_JEMALLOC_CONTROL_H_

#include <glog/logging.h>
#include <jemalloc/jemalloc.h>

#include <cstddef>
#include <string>

namespace gannet {

// Returns what jemalloc's mallctl says of `name`, which must exist.
template <class T>
T JemallocGet(const std::string& name) {
  T value{};
  size_t size = sizeof(value);
  CHECK_EQ(mallctl(name.c_str(), &value, &size, nullptr, 0), 0) << name;
  return value;
}

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_HEAP_JEMALLOC_CONTROL_H_
