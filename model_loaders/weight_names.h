// Names of tensors in checkpoints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model_loaders/model_config.h"

namespace tessera {

// The pattern of a WeightNames row with the indices put in. Throws Error when the pattern has a
// place for an index that is not given, or none for one that is.
std::string weight_name(std::string_view pattern, std::optional<int64_t> layer,
                        std::optional<int64_t> expert);

// The name of a language model's tensor where the model is a part of another.
std::string prefixed(const std::string& name, NamePrefix prefix);

// What a tensor is a part of besides the language model, for people: "the vision tower". Text needs
// none of it. Empty when the name does not say so.
std::string_view skipped_part(std::string_view name);

// True for tensors that checkpoints carry and no engine needs, such as `rotary_emb.inv_freq`.
bool is_ignorable_weight(std::string_view name);

}  // namespace tessera
