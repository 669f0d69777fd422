#ifndef GANNET_COMMON_HTTP_METRIC_FAMILIES_H_
#define GANNET_COMMON_HTTP_METRIC_FAMILIES_H_

#include <prometheus/metric_family.h>

#include <string>
#include <utility>
#include <vector>

namespace gannet {

// Metrics of one moment, for the text format of Prometheus.
class MetricFamilies {
 public:
  using Labels = std::vector<prometheus::ClientMetric::Label>;

  // A value is any number. Prometheus has only doubles.
  template <class Number>
  void Counter(const char* name, const char* help, Number value) {
    Begin(prometheus::MetricType::Counter, name, help);
    Add({}, value);
  }
  template <class Number>
  void Gauge(const char* name, const char* help, Number value) {
    Begin(prometheus::MetricType::Gauge, name, help);
    Add({}, value);
  }
  // Begins a family that has several values.
  void Begin(prometheus::MetricType type, const char* name, const char* help) {
    families_.push_back({name, help, type, {}});
  }
  // Adds a value to the last family.
  template <class Number>
  void Add(Labels labels, Number value) {
    prometheus::ClientMetric metric;
    metric.label = std::move(labels);
    metric.counter.value = metric.gauge.value = static_cast<double>(value);
    Add(std::move(metric));
  }
  void Add(prometheus::ClientMetric metric) {
    families_.back().metric.push_back(std::move(metric));
  }

  std::string Text() const;

 private:
  std::vector<prometheus::MetricFamily> families_;
};

}  // namespace gannet

#endif  // GANNET_COMMON_HTTP_METRIC_FAMILIES_H_
