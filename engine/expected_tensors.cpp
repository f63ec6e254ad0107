#include "engine/expected_tensors.h"

#include "model_loaders/weight_specs.h"

namespace tessera {

std::vector<ExpectedTensor> expected_tensors(const EngineOptions& options,
                                             std::vector<std::string>& warnings) {
  validate(options);
  const ModelConfig config =
      read_model_config(resolve_model_folder(options.model, options.cache_folder, warnings),
                        options.allow_unknown_config, warnings);
  std::vector<ExpectedTensor> tensors;
  for (const WeightSpec& spec : weight_specs(config)) {
    for (const WeightSource& source : spec.sources) {
      const auto dims = source.shape.dims();
      tensors.push_back({source.name, {dims.begin(), dims.end()}});
    }
  }
  return tensors;
}

}  // namespace tessera
