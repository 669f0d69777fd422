#ifndef GANNET_SERVER_HTTP_GROUP_METRICS_H_
#define GANNET_SERVER_HTTP_GROUP_METRICS_H_

#include "common/http/metric_families.h"
#include "server/group/member.h"

namespace gannet {

// Adds what a member of a group shows to Prometheus. Only a primary knows its backups.
void AddGroup(const Member::Seen& it, MetricFamilies* to);

}  // namespace gannet

#endif  // GANNET_SERVER_HTTP_GROUP_METRICS_H_
