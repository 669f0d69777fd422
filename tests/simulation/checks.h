#ifndef GANNET_TESTS_SIMULATION_CHECKS_H_
#define GANNET_TESTS_SIMULATION_CHECKS_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace gannet::simulation {

// The invariants of every run. Each can be switched off by name (Run::Options::off), for a known
// bug that is not mended yet.
enum class Check : uint8_t {
  kLinearizable,       // what clients saw of each key fits some order (docs/consistency.md)
  kWritesInOrder,      // one client's writes of one key are applied in the order of their begin
  kVersionsUnique,     // a version names one write, also across restarts of the server
  kValues,             // a value that is read was written, and is whole
  kLocksExclude,       // two acquisitions of a lock never hold it at once
  kLocksHaveHolders,   // in the end each lock word is held by a client that knows of it
  kEndsByDeadline,     // each operation ends in the first Poll after its deadline, or earlier
  kEndsOnce,           // each operation is reported once
  kRoomComesBack,      // a client that has few operations alive can begin others before long
  kHealthyConnection,  // nobody loses a connection without a fault, a stall or a restart
  kPatience,           // an operation that has seconds succeeds if nothing is wrong
  kEverythingBack,     // in the end all slots, credits and buffers are free
  kConnects,           // a client of a healthy server is connected before long
  kAnswers,            // no answer says that server or client have a bug
  kExpiry,             // nobody reads an item past its time to live
  kRoom,               // a store that could make room refuses no write
  kRefusals,           // a refused client leaves nothing behind
  kAccepts,            // clients that connect keep nobody waiting
  kSiege,              // peers that take no replies keep nobody waiting, and are disconnected
  kOnce,               // an increment or an append is done once
  kEnds,               // a run ends
  kOneLease,           // no two servers of a group have a lease at once
  kWhole,              // a group is whole again once nothing is wrong
  kMinCopies,          // what is acknowledged has as many copies as the group wants
  kFoundedOnce,        // a group that has been founded is not founded again, whatever etcd loses
  kStays,              // no process ends by what etcd has that is not so
  kCopies,             // in the end all members have the same items
  kOneOwner,           // no servers of two groups serve a partition at once
  kMoves,              // in the end each partition that was to move has moved, or was given up
  kOnePlace,           // in the end each key is in one group
  kPlacesKept,         // a move makes no GET of what did not move more expensive
  kCount,
};

inline constexpr std::array<const char*, static_cast<size_t>(Check::kCount)> kCheckNames = {
    "Linearizable",   "WritesInOrder",
    "VersionsUnique", "Values",
    "LocksExclude",   "LocksHaveHolders",
    "EndsByDeadline", "EndsOnce",
    "RoomComesBack",  "HealthyConnection",
    "Patience",       "EverythingBack",
    "Connects",       "Answers",
    "Expiry",         "Room",
    "Refusals",       "Accepts",
    "Siege",          "Once",
    "Ends",           "OneLease",
    "Whole",          "MinCopies",
    "FoundedOnce",    "Stays",
    "Copies",         "OneOwner",
    "Moves",          "OnePlace",
    "PlacesKept"};

inline const char* NameOf(Check check) { return kCheckNames[static_cast<size_t>(check)]; }

}  // namespace gannet::simulation

#endif  // GANNET_TESTS_SIMULATION_CHECKS_H_
