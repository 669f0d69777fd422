#ifndef GANNET_SERVER_MAIN_HTTP_GROUP_METRICS_H_
#define GANNET_SERVER_MAIN_HTTP_GROUP_METRICS_H_

#include "common/http/metric_families.h"
#include "server/main/http/server_view.h"

namespace gannet {

// Returns the labels that say which member of which group a server is. Empty: it is none.
MetricFamilies::Labels GroupLabels(const ServerView& view);
// Adds what a member of a group shows to Prometheus. Only a primary knows its backups. Each metric
// has GroupLabels, so that rules can tell groups apart. REQUIRES: view.group.
void AddGroup(const ServerView& view, MetricFamilies* to);

}  // namespace gannet

#endif  // GANNET_SERVER_MAIN_HTTP_GROUP_METRICS_H_
