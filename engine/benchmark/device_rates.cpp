#include "engine/benchmark/device_rates.h"

#include "engine/benchmark/matmul_rate.h"
#include "engine/benchmark/rest.h"
#include "engine/make_backend.h"

namespace tessera {

DeviceRates measure_device_rates(const EngineOptions& options, DType weight_dtype,
                                 const StopQuestion& should_stop) {
  constexpr int64_t kRepetitions = 3;
  const std::unique_ptr<Backend> backend = make_backend(options);
  backend->device().set_stop_question(should_stop);
  rest(backend->device());
  Operations& operations = backend->operations();
  const std::unique_ptr<DeviceMeasurement> measurement = backend->make_measurement();
  const auto product_rate = [&](DType dtype) {
    return measure_matmul_rate(operations, *measurement, dtype, kRepetitions);
  };
  // Attention multiplies activations with each other.
  return {.product_operations = product_rate(operations.weight_dtype(weight_dtype)),
          .attention_operations = product_rate(operations.activation_dtype()),
          .read_bytes = measurement->read_bandwidth()};
}

}  // namespace tessera
