// A program for two ranks of MPI: messages of many sizes to and fro, a sum over both ranks, and
// one-sided puts. Checks every byte. Rank 0 says how much went well.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kLargest = 1 << 20, kRounds = 20, kTag = 7 };

static unsigned char sent[kLargest], received[kLargest];
static int rank;
static int messages;

static void Fail(const char* what, int size) {
  fprintf(stderr, "rank %d: %s of %d bytes went wrong\n", rank, what, size);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void Fill(unsigned char* bytes, int size, int seed) {
  for (int i = 0; i < size; ++i) bytes[i] = (unsigned char)(i * 31 + seed);
}

// Rank 0 sends, and rank 1 sends back what it received.
static void PingPong(int size, int round) {
  Fill(sent, size, round);
  memset(received, 0, (size_t)size);
  if (rank == 0) MPI_Send(sent, size, MPI_BYTE, 1, kTag, MPI_COMM_WORLD);
  MPI_Recv(received, size, MPI_BYTE, 1 - rank, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 1) MPI_Send(received, size, MPI_BYTE, 0, kTag, MPI_COMM_WORLD);
  if (memcmp(sent, received, (size_t)size) != 0) Fail("a message", size);
  ++messages;
}

static void Sum(int count) {
  int mine[4096], all[4096];
  for (int i = 0; i < count; ++i) mine[i] = i + rank;
  MPI_Allreduce(mine, all, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < count; ++i) {
    if (all[i] != 2 * i + 1) Fail("a sum", count);
  }
}

// Each rank writes into the other's window.
static void Put(int size) {
  MPI_Win window;
  MPI_Win_create(received, kLargest, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  Fill(sent, size, rank);
  MPI_Win_fence(0, window);
  MPI_Put(sent, size, MPI_BYTE, 1 - rank, 0, size, MPI_BYTE, window);
  MPI_Win_fence(0, window);
  Fill(sent, size, 1 - rank);
  if (memcmp(sent, received, (size_t)size) != 0) Fail("a put", size);
  MPI_Win_free(&window);
}

int main(int argc, char** argv) {
  int ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks != 2) Fail("the number of ranks", ranks);
  for (int size = 1; size <= kLargest; size *= 4) {
    for (int round = 0; round < kRounds; ++round) PingPong(size, round);
  }
  Sum(1);
  Sum(4096);
  Put(64);
  Put(kLargest);
  if (rank == 0) printf("%d messages, 2 sums and 2 puts are right\n", messages);
  MPI_Finalize();
  return 0;
}
