// The steps of a tokenizer.json: sequences of them become flat lists.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "model_loaders/json.h"
#include "model_loaders/tokenizer_json.h"

namespace tessera {

// Each reads its key of `json`, the whole document. Absent and null mean no step, but a decoder
// must be there.
std::vector<NormalizerStep> read_normalizer(const JsonObject& json);
std::vector<PreTokenizerStep> read_pre_tokenizer(const JsonObject& json);
PromptTemplate read_prompt_template(const JsonObject& json,
                                    std::span<const AddedToken> added_tokens);
std::vector<DecoderStep> read_decoder(const JsonObject& json);

}  // namespace tessera
