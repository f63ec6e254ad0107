// Sampling options as JSON, for whatever compares them: a batch and its resumption.
#pragma once

#include <nlohmann/json.hpp>

#include "apps/sampling_options.h"

namespace tessera {

// Every field by its name; null where none was set and the model's own value holds.
nlohmann::json sampling_json(const SamplingOptions& options);

}  // namespace tessera
