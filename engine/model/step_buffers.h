// The device memory of a step, from its inputs to the tokens drawn, taken once at its largest.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/model/activations.h"
#include "engine/model/sampler.h"
#include "engine/model/step_inputs.h"
#include "engine/model/step_limits.h"
#include "model_loaders/model_config.h"

namespace tessera {

struct StepBuffers {
  // Takes every tensor from `arena` (which may be measuring only).
  StepBuffers(Arena& arena, const ModelConfig& config, const StepLimits& limits, int64_t page_size,
              FusedOperations& operations);

  // Bytes that an arena needs for the above.
  static size_t size_bytes(const ModelConfig& config, const StepLimits& limits, int64_t page_size,
                           FusedOperations& operations);

  StepInputs inputs;
  Sampler sampler;
  Activations activations;
};

}  // namespace tessera
