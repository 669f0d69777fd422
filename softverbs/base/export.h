#ifndef SOFTVERBS_BASE_EXPORT_H_
#define SOFTVERBS_BASE_EXPORT_H_

// Marks the definition of a function of the C ABI; everything else is compiled hidden.
#define SOFTVERBS_EXPORT extern "C" __attribute__((visibility("default")))

#endif  // SOFTVERBS_BASE_EXPORT_H_
