#include "engine/model/step_buffers.h"

#include "engine/model/kernel_limits.h"
#include "engine/model/sampling_lists.h"

namespace tessera {

StepBuffers::StepBuffers(Arena& arena, const ModelConfig& config, const StepLimits& limits,
                         int64_t page_size, FusedOperations& operations)
    : inputs(arena, limits, page_size),
      sampler(arena, limits.max_draws(),
              limits.max_penalized_tokens +
                  limits.max_draws() * static_cast<int64_t>(kMaxBarredTokens)),
      activations(arena, config, kernel_limits(limits, config), limits.max_draws(), operations) {}

size_t StepBuffers::size_bytes(const ModelConfig& config, const StepLimits& limits,
                               int64_t page_size, FusedOperations& operations) {
  Arena measure;
  StepBuffers(measure, config, limits, page_size, operations);
  return measure.used_bytes();
}

}  // namespace tessera
