// Token ids that JSON files of a model name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model_loaders/json.h"

namespace tessera {

inline constexpr int64_t kMaxTokenId = (int64_t{1} << 31) - 1;

// The ids under `key`, one or a list of them, that are in [0, vocab_size); none when it is absent
// or null. -1 stands for none, as some tools write it. Ids of no token, which never match anything,
// are left out with one warning. Throws Error for what is no id.
std::vector<int64_t> find_token_ids(const JsonObject& json, std::string_view key,
                                    int64_t vocab_size, std::vector<std::string>& warnings);

// The same of a key with one id.
std::optional<int64_t> find_token_id(const JsonObject& json, std::string_view key,
                                     int64_t vocab_size, std::vector<std::string>& warnings);

}  // namespace tessera
