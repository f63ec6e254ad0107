#include "kernels/cpu/cpu_measurement.h"

#include <chrono>

#include "kernels/cpu/read_bandwidth.h"
#include "kernels/standard_attention.h"
#include "kernels/tensor/check.h"

namespace tessera {

double CpuMeasurement::read_bandwidth() { return measure_host_read_bandwidth(pool_); }

std::vector<double> CpuMeasurement::seconds(const std::function<void()>& operations,
                                            int64_t repetitions) {
  operations();
  std::vector<double> seconds;
  for (int64_t i = 0; i < repetitions; ++i) {
    const auto start = std::chrono::steady_clock::now();
    operations();
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    seconds.push_back(elapsed.count());
  }
  return seconds;
}

std::unique_ptr<StandardAttention> CpuMeasurement::make_standard_attention() {
  throw Error("standard attention is not available on cpu");
}

}  // namespace tessera
