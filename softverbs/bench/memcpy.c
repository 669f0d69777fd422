// Prints how long a memcpy of BYTES takes, in microseconds: memcpy BYTES COPIES
//
// Both buffers stay the same, as perftest's do. The typical time is the median of batches.

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kBatches = 101 };

static double Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

static int Compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const size_t bytes = strtoul(argv[1], NULL, 10), copies = strtoul(argv[2], NULL, 10);
  void* const from = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  void* const to = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (from == NULL || to == NULL || copies == 0) return 1;
  memset(from, 1, bytes);
  memset(to, 2, bytes);
  double times[kBatches];
  for (int batch = 0; batch < kBatches; ++batch) {
    const double start = Now();
    for (size_t i = 0; i < copies; ++i) {
      memcpy(to, from, bytes);
      __asm__ volatile("" ::"r"(to), "r"(from) : "memory");  // each copy is made
    }
    times[batch] = (Now() - start) / (double)copies;
  }
  qsort(times, kBatches, sizeof(times[0]), Compare);
  printf("%.4f\n", times[kBatches / 2]);
  return 0;
}
