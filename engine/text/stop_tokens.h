// Which tokens end an answer.
#pragma once

#include <vector>

#include "engine/text/chat_template.h"
#include "engine/text/tokenizer.h"
#include "model_loaders/model_folder.h"

namespace tessera {

// Ids from generation_config.json, config.json, the tokenizer and, unless it is null, the chat
// template, sorted. Throws Error when one is not in the vocabulary.
std::vector<TokenId> collect_stop_tokens(const ModelFolder& folder, const Tokenizer& tokenizer,
                                         const ChatTemplate* chat_template);

}  // namespace tessera
