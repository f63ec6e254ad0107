// What decides the answers of a batch besides its requests.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "apps/options/sampling_options.h"
#include "engine/options.h"
#include "engine/text/chat_template.h"

namespace tessera {

// One flat object: version, model (model_fingerprint), device and number format, the tokenizer, the
// chat template (ChatTemplate::fingerprint), its arguments and the context that were asked for, the
// system message and all of sampling_json. Throws Error for a folder that is no model.
nlohmann::json batch_settings(const EngineOptions& engine, const std::vector<Message>& system,
                              const SamplingOptions& sampling);

}  // namespace tessera
