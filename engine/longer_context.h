// How a person gets a longer context than the one a model is loaded with.
#pragma once

#include <cstdint>
#include <string>

#include "engine/options.h"

namespace tessera {

// What gives more than the `context_size` tokens to which `options` have led: "a larger -c (up to
// 4096 tokens)", or "--rope-scaling auto -c N" where the model was trained for no more. "" where
// nothing does: memory holds no more, or the RoPE cannot be stretched.
std::string longer_context(const EngineOptions& options, const ModelFolder& folder,
                           int64_t context_size);

}  // namespace tessera
