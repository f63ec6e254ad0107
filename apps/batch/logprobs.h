// Log-probabilities of an answer's tokens in OpenAI's forms.
#pragma once

#include <nlohmann/json.hpp>

#include "engine/engine.h"

namespace tessera {

// Of a chat: {"content": [{"token", "logprob", "bytes", "top_logprobs": [{"token", ...}, ...]}]},
// with an entry for every token, also of thoughts. What is no character alone is U+FFFD in
// "token"; "bytes" are exact, and none of a special token, which has no text.
nlohmann::ordered_json chat_logprobs(const Tokenizer& tokenizer, const GenerationResult& result);

// Of a completion: {"text_offset", "token_logprobs", "tokens", "top_logprobs"}, lists with an entry
// for every token. Offsets count the characters of the answer that are complete before the token.
// Alternatives are an object by text, in which tokens that look alike share an entry, that of the
// more probable one.
nlohmann::ordered_json completion_logprobs(const Tokenizer& tokenizer,
                                           const GenerationResult& result);

}  // namespace tessera
