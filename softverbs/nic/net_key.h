#ifndef SOFTVERBS_NIC_NET_KEY_H_
#define SOFTVERBS_NIC_NET_KEY_H_

#include "softverbs/nic/net_wire.h"

namespace softverbs {

// The key of SOFTVERBS_NET_KEY=FILE, which the processes of all hosts share. Both ends of a
// connection prove that they have it, by HMAC-SHA256 over both nonces and what the NetOpening says.
// HMAC is libcrypto's, which is loaded only if there is a key: softverbs is not linked with it.
//
// Without a key every process may connect that reaches the port.

// Reads the key on first use. Ends the process with status 2, and says why, if the file cannot be
// read, others may read or write it, it is too short, or there is no libcrypto.
void LoadNetKey();

// Returns what the side that was dialed puts into its Challenge, or the dialer into its Proof.
// Zeroes without a key. REQUIRES: LoadNetKey was called.
NetBytes ChallengeMac(const NetOpening& opening, const NetBytes& nonce);
NetBytes ProofMac(const NetOpening& opening, const NetBytes& nonce);

// Compares in a time that does not depend on the bytes.
bool SameMac(const NetBytes& mac, const NetBytes& other);

// Returns random bytes. Returns false if the kernel has none.
bool FillNonce(NetBytes* nonce);

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_NET_KEY_H_
