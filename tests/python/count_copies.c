/* Counts the bytes that a process copies by memcpy and memmove in pieces of at least kPiece bytes, if it is
 * preloaded. The device of softverbs stands for the hardware, and copies by neither. */
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { kPiece = 1024 };

static _Atomic uint64_t copied;

uint64_t copied_bytes(void) { return copied; }

static void* copy(void* to, const void* from, size_t n) {
  if (n >= kPiece) copied += n;
  void* const begin = to;
  if ((uintptr_t)to <= (uintptr_t)from) {
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n)::"memory");
  } else {
    unsigned char* t = (unsigned char*)to + n - 1;
    const unsigned char* f = (const unsigned char*)from + n - 1;
    __asm__ volatile("std; rep movsb; cld" : "+D"(t), "+S"(f), "+c"(n)::"memory");
  }
  return begin;
}

void* memcpy(void* to, const void* from, size_t n) { return copy(to, from, n); }
void* memmove(void* to, const void* from, size_t n) { return copy(to, from, n); }
