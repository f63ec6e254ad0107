// How tokens are drawn, as JSON under the names of the fields: in statistics and manifests.
#pragma once

#include <nlohmann/json.hpp>

#include "apps/options/sampling_options.h"

namespace tessera {

// Every field by its name; null where none was set and the model's own value holds.
nlohmann::json sampling_json(const SamplingOptions& options);

// What an answer was drawn with, without the seed.
nlohmann::ordered_json sampling_json(const SamplingParams& params);

}  // namespace tessera
