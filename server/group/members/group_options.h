#ifndef GANNET_SERVER_GROUP_MEMBERS_GROUP_OPTIONS_H_
#define GANNET_SERVER_GROUP_MEMBERS_GROUP_OPTIONS_H_

#include <string>

#include "common/cluster/group_policy.h"
#include "server/group/replica/config_store.h"
#include "server/group/replica/group_directory.h"
#include "server/group/replica/map_store.h"
#include "server/group/replica/register.h"

namespace gannet {

// A server's group, and who it is in it.
struct GroupOptions {
  ConfigStore* config_store = nullptr;  // outlives the server
  GroupDirectory* directory = nullptr;  // outlives the server
  MapStore* map_store = nullptr;        // outlives the server; nullptr: no partition moves
  std::string name;                     // the group's; empty if there is no map
  GroupTerms terms;
  GroupPolicy policy;     // what this process does of what members do alike
  std::string node;       // this server's name in the group
  std::string advertise;  // "HOST:PORT", where others reach it; empty: as it listens
  std::string auth_file;  // its first key with "replica" is shown to the primary
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MEMBERS_GROUP_OPTIONS_H_
