#include "engine/benchmark/matmul_rate.h"

#include <algorithm>

#include "engine/benchmark/normal_pool.h"

namespace tessera {

double measure_matmul_rate(Operations& operations, DeviceMeasurement& measurement) {
  constexpr int64_t kRepetitions = 15;
  Device& device = operations.device();
  const int64_t size = device.type() == DeviceType::kCuda ? 8192 : 1024;
  const DType dtype = operations.activation_dtype();
  const size_t bytes = static_cast<size_t>(size * size) * size_of(dtype);
  const Buffer buffer = device.allocate(3 * bytes, "measuring the rate of matrix products");
  Arena arena(buffer);
  const Tensor x = arena.take("x", dtype, {size, size});
  const Tensor weight = arena.take("weight", dtype, {size, size});
  const Tensor out = arena.take("out", dtype, {size, size});
  const NormalPool pool(dtype, /*seed=*/1);
  pool.fill(device, x, 0);
  pool.fill(device, weight, NormalPool::kPeriod / 2);
  std::vector<double> seconds =
      measurement.seconds([&] { operations.linear(out, x, weight); }, kRepetitions);
  std::sort(seconds.begin(), seconds.end());
  const auto edge = static_cast<double>(size);
  return 2 * edge * edge * edge / seconds[kRepetitions / 2];
}

}  // namespace tessera
