#include "tests/kernels/random_values.h"

namespace tessera {

std::vector<double> RandomValues::normal(int64_t count, double deviation) {
  std::normal_distribution<double> distribution(0.0, deviation);
  std::vector<double> values(static_cast<size_t>(count));
  for (double& value : values) value = distribution(engine_);
  return values;
}

}  // namespace tessera
