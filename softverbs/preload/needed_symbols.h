#ifndef SOFTVERBS_PRELOAD_NEEDED_SYMBOLS_H_
#define SOFTVERBS_PRELOAD_NEEDED_SYMBOLS_H_

namespace softverbs::preload {

// Opens this library once more, as dlopen does.
void* OpenThisLibrary(int flags);
// Returns a handle of this library for dlsym. It is never closed.
void* ThisLibrary();

// Ends the process if a loaded program or library needs a function of libibverbs or librdmacm that
// this library does not have. Such a function is bound to the real library if that is new enough,
// which would take objects of this device for its own, and crash. The message has the function's
// name and version.
//
// Parts of rdma-core itself may need more: what this library has is called in their place.
void CheckNeededSymbols();

}  // namespace softverbs::preload

#endif  // SOFTVERBS_PRELOAD_NEEDED_SYMBOLS_H_
