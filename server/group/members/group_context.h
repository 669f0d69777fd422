#ifndef GANNET_SERVER_GROUP_MEMBERS_GROUP_CONTEXT_H_
#define GANNET_SERVER_GROUP_MEMBERS_GROUP_CONTEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/clocks.h"
#include "common/base/random_source.h"
#include "common/protocol/connect.h"
#include "common/protocol/group_member.h"
#include "common/rdma/device.h"
#include "common/rdma/idler.h"
#include "common/rdma/listener.h"
#include "server/group/members/group_options.h"
#include "server/group/members/member_server.h"
#include "server/group/replica/group_standing.h"
#include "server/log/changes/member_disk.h"
#include "server/memory/store/store.h"

namespace gannet {

// A rail of this server, by which links of the group may go.
struct LinkRail {
  std::string address;  // where others reach it, "HOST:PORT"
  Device device;
  ibv_pd* pd = nullptr;  // for the primary's side of links
};

// What all parts of a group's member work in. It outlives them, and so does what it points to.
struct GroupContext {
  GroupOptions group;
  GroupMember self;                   // this process
  GroupStanding* standing = nullptr;  // what this server may do
  MemberServer* server = nullptr;
  Store* store = nullptr;
  MemberDisk* disk = nullptr;   // nullptr: it keeps nothing
  std::vector<LinkRail> rails;  // as the server has them
  Listener* listener = nullptr;
  Grant grant{};  // of this process, without what differs between connections
  uint32_t workers = 0;
  RandomSource* random = nullptr;
  Clocks clocks;  // the wall clock is for handshakes
  // For so long clients of a former primary may answer from copies of its items.
  int64_t former_leases_ns = 0;
  Idler* idle = nullptr;  // as that of Server::Options
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MEMBERS_GROUP_CONTEXT_H_
