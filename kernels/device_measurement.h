// How fast a device is: for benchmarks, which alone include this header
// (tests/check_dependencies.py). Made by Backend::make_measurement.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace tessera {

class StandardAttention;

class DeviceMeasurement {
 public:
  virtual ~DeviceMeasurement() = default;
  DeviceMeasurement(const DeviceMeasurement&) = delete;
  DeviceMeasurement& operator=(const DeviceMeasurement&) = delete;

  // Bytes per second that reading a large buffer reaches on this device now. Takes about 0.2 s and
  // allocates.
  virtual double read_bandwidth() = 0;
  // Seconds that `operations` takes, once for each of `repetitions`, after untimed runs. It may
  // only enqueue operations of the same backend: no copy, allocation or synchronisation. CUDA
  // records them into a graph and times its replays, so that launches cost what they cost inside a
  // graph.
  virtual std::vector<double> seconds(const std::function<void()>& operations,
                                      int64_t repetitions) = 0;
  // The comparator of Operations::attention, on the same device. Throws Error where it has none.
  virtual std::unique_ptr<StandardAttention> make_standard_attention() = 0;

 protected:
  DeviceMeasurement() = default;
};

}  // namespace tessera
