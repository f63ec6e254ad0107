#include "engine/benchmark/read_bandwidth.h"

#include "engine/benchmark/rest.h"
#include "engine/make_backend.h"
#include "kernels/device_measurement.h"

namespace tessera {

double measure_read_bandwidth(const EngineOptions& options, const StopQuestion& should_stop) {
  const std::unique_ptr<Backend> backend = make_backend(options);
  backend->device().set_stop_question(should_stop);
  rest(backend->device());  // a model's memory may just have been freed
  return backend->make_measurement()->read_bandwidth();
}

}  // namespace tessera
