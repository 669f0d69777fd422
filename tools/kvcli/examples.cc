#include "tools/kvcli/examples.h"

namespace gannet::kvcli {

const char* ExamplesOf(Verb verb) {
  switch (verb) {
    case Verb::kPut:
      return "Examples:\n"
             "  put color blue --ttl=1h\n"
             "  put model --file=weights.bin\n";
    case Verb::kGet:
      return "Examples:\n"
             "  get color\n"
             "  get model --out=weights.bin\n";
    case Verb::kMultiGet:
      return "Example:\n  mget color shape\n";
    case Verb::kCompareAndSet:
      return "Example:\n  cas color 0 blue      only if there is no such key\n";
    case Verb::kMultiPut:
      return "Example:\n  mput color blue shape round\n";
    case Verb::kAppend:
      return "Example:\n  append log \"one more line\\n\"\n";
    case Verb::kPrepend:
      return "Example:\n  prepend log \"one more line\\n\"\n";
    case Verb::kIncr:
      return "Example:\n  incr visits 10 --ttl=1d\n";
    case Verb::kDecr:
      return "Example:\n  decr seats 2 --if_present\n";
    case Verb::kTouch:
      return "Example:\n  touch session:7 30m\n";
    case Verb::kGetAndTouch:
      return "Example:\n  gat session:7 30m\n";
    case Verb::kLock:
      return "Example:\n  lock job --lease=10m -- ./nightly-job\n";
    case Verb::kSlowLog:
      return "Example:\n  slowlog --keys\n";
    case Verb::kScan:
      return "Examples:\n"
             "  scan --prefix=session: --limit=20\n"
             "  scan --match='user:*:name' --values --rate=1000\n";
    case Verb::kBigKeys:
      return "Example:\n  bigkeys --count=3\n";
    case Verb::kHotKeys:
      return "Example:\n  hotkeys --count=20\n";
    case Verb::kMemory:
      return "Example:\n  memory --prefix=session:\n";
    case Verb::kWatch:
      return "Example:\n  watch color --every=1s\n";
    case Verb::kTop:
      return "Examples:\n"
             "  top\n"
             "  top --interval=10s --count=6\n"
             "  top --hotkeys=5\n";
    case Verb::kCluster:
      return "Examples:\n"
             "  cluster init --etcd=http://127.0.0.1:2379 --cluster=c --group=g1:n1,n2,n3\n"
             "  cluster status --etcd=http://127.0.0.1:2379 --cluster=c\n"
             "  cluster handover g1 n2 --etcd=http://127.0.0.1:2379 --cluster=c\n";
    case Verb::kDiscover:
      return "Example:\n  discover --wait=10s\n";
    case Verb::kUpgradeCheck:
      return "Example:\n  upgrade-check /dev/shm/gannet --kvserver=/opt/new/bin/kvserver\n";
    case Verb::kGenKey:
      return "Example:\n  genkey --id=7 --read\n";
    case Verb::kLatency:
      return "Example:\n  latency --count=10000\n";
    default:
      return "";
  }
}

}  // namespace gannet::kvcli
