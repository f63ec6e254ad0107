#include "engine/benchmark/matmul_rate.h"

#include <algorithm>

#include "engine/benchmark/normal_pool.h"

namespace tessera {

double measure_matmul_rate(Operations& operations, DeviceMeasurement& measurement,
                           DType weight_dtype, int64_t repetitions) {
  Device& device = operations.device();
  const int64_t size = device.type() == DeviceType::kCuda ? 8192 : 1024;
  const DType dtype = operations.activation_dtype();
  const auto elements = static_cast<size_t>(size * size);
  const Buffer buffer = device.allocate(elements * (2 * size_of(dtype) + size_of(weight_dtype)),
                                        "measuring the rate of matrix products");
  Arena arena(buffer);
  const Tensor x = arena.take("x", dtype, {size, size});
  const Tensor weight = arena.take("weight", weight_dtype, {size, size});
  const Tensor out = arena.take("out", dtype, {size, size});
  NormalPool(dtype, /*seed=*/1).fill(device, x, 0);
  NormalPool(weight_dtype, /*seed=*/1).fill(device, weight, NormalPool::kPeriod / 2);
  std::vector<double> seconds =
      measurement.seconds([&] { operations.linear(out, x, weight); }, repetitions);
  std::sort(seconds.begin(), seconds.end());
  const auto edge = static_cast<double>(size);
  return 2 * edge * edge * edge / seconds[seconds.size() / 2];
}

}  // namespace tessera
