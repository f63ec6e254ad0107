// What decides the answers of a batch besides its requests.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "apps/batch/options.h"
#include "engine/text/chat_template.h"

namespace tessera {

// One flat object: version, model (model_fingerprint), device, number format and --batch-invariant,
// the tokenizer, the chat template (ChatTemplate::fingerprint), its arguments and the context that
// were asked for, the system message, the shard and all of sampling_json. Throws Error for a folder
// that is no model.
nlohmann::json batch_settings(const BatchOptions& options, const std::vector<Message>& system);

}  // namespace tessera
