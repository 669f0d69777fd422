#ifndef SOFTVERBS_BASE_THREAD_ANNOTATIONS_H_
#define SOFTVERBS_BASE_THREAD_ANNOTATIONS_H_

// Attributes that say which lock guards what. Clang checks them (-Wthread-safety, an error in its
// presets): whoever uses a guarded member without the lock does not compile. Other compilers ignore
// them.

#if defined(__clang__)
#define SV_ATTRIBUTE(attribute) __attribute__((attribute))
#else
#define SV_ATTRIBUTE(attribute)
#endif

// On classes: a lock, and an object that holds a lock while it lives.
#define SV_CAPABILITY SV_ATTRIBUTE(capability("mutex"))
#define SV_SCOPED_CAPABILITY SV_ATTRIBUTE(scoped_lockable)

// On members and globals: they are used only with the lock held.
#define SV_GUARDED_BY(lock) SV_ATTRIBUTE(guarded_by(lock))

// On functions: the caller holds the lock; the function takes it, takes it if it returns true, or
// releases it; from the call on, the compiler believes that the lock is held.
#define SV_REQUIRES(...) SV_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define SV_ACQUIRE(...) SV_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define SV_TRY_ACQUIRE(...) SV_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))
#define SV_RELEASE(...) SV_ATTRIBUTE(release_capability(__VA_ARGS__))
#define SV_ASSERT_HELD(...) SV_ATTRIBUTE(assert_capability(__VA_ARGS__))

// On functions that the check cannot follow. A comment says why.
#define SV_UNCHECKED SV_ATTRIBUTE(no_thread_safety_analysis)

#endif  // SOFTVERBS_BASE_THREAD_ANNOTATIONS_H_
