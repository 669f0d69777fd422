// Requests for keys that another group of the cluster has.

#include "server/rpc/elsewhere.h"
#include "server/rpc/requests.h"

namespace gannet {

// Refuses a request for a key whose partition this group does not serve.
//
// A lock's word is of this server, and of many keys. So an unlock is never refused.
// An answer that is remembered comes first: the request was executed, whoever has the key by now
// (docs/partitions.md, rule 12).
// A refused write puts off the later ones of its key, as the partition may be back when they are
// looked at (rule 14).
bool Requests::RefuseElsewhere(ServerConnection* connection, const RequestView& request) {
  if (!IsElsewhere(standing_, request.key) || request.key.empty() ||
      request.header.opcode == static_cast<uint8_t>(Opcode::kUnlock)) {
    return false;
  }
  context_.counters.by_opcode[request.header.opcode].Add(1);
  if (!AdmitRefused(connection, request)) return true;
  const uint64_t in_order = PutOffLater(connection, request) ? kPutOffInOrder : 0;
  RefuseAsElsewhere(*standing_, request.header, in_order, connection, &replies_);
  return true;
}

}  // namespace gannet
