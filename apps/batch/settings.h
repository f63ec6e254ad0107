// What decides the answers of a batch besides its requests.
#pragma once

#include <nlohmann/json.hpp>

#include "apps/batch/options.h"
#include "apps/files/conversation.h"

namespace tessera {

// One flat object: version, model (model_fingerprint), device, number format and --batch-invariant,
// the tokenizer, the chat template (ChatTemplate::fingerprint), its arguments and the context that
// were asked for, the system message, the conversation of --kv, the shard and all of sampling_json.
// Throws Error for a folder that is no model.
nlohmann::json batch_settings(const BatchOptions& options, const Conversation& opening);

}  // namespace tessera
