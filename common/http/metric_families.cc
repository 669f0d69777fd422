#include "common/http/metric_families.h"

#include <prometheus/text_serializer.h>

#include <sstream>

namespace gannet {

std::string MetricFamilies::Text() const {
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, families_);
  return out.str();
}

}  // namespace gannet
