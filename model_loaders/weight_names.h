// Names of tensors in checkpoints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tessera {

// The pattern of a WeightNames row with the indices put in. Throws Error when the pattern has a
// place for an index that is not given, or none for one that is.
std::string weight_name(std::string_view pattern, std::optional<int64_t> layer,
                        std::optional<int64_t> expert);

// True for tensors that checkpoints carry and no engine needs, such as `rotary_emb.inv_freq`.
bool is_ignorable_weight(std::string_view name);

}  // namespace tessera
