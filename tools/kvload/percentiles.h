#ifndef GANNET_TOOLS_KVLOAD_PERCENTILES_H_
#define GANNET_TOOLS_KVLOAD_PERCENTILES_H_

#include <string>

#include "tools/kvload/histogram.h"

namespace gannet::kvload {

// Returns the distribution in the text format of HdrHistogram, in microseconds. Its plotter
// (hdrhistogram.github.io/HdrHistogram/plotFiles.html) takes such files. The rows come closer
// together towards 100 %: five for each halving of the distance to it.
std::string PercentilesText(const Histogram& latency_ns);

}  // namespace gannet::kvload

#endif  // GANNET_TOOLS_KVLOAD_PERCENTILES_H_
