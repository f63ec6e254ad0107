#include "model_loaders/token_ids.h"

#include <algorithm>

#include "kernels/tensor/check.h"

namespace tessera {
namespace {

constexpr int64_t kNone = -1;

}  // namespace

std::vector<int64_t> find_token_ids(const JsonObject& json, std::string_view key,
                                    int64_t vocab_size, std::vector<std::string>& warnings) {
  std::vector<int64_t> ids = json.find_integers(key, kNone, kMaxTokenId);
  const auto is_no_token = [&](int64_t id) { return id >= vocab_size; };
  if (const auto first = std::ranges::find_if(ids, is_no_token); first != ids.end()) {
    warnings.push_back(concat(json.path(), ": ", json.field(key), ' ', *first,
                              " is no token of a vocabulary of ", vocab_size,
                              "; taken as if it were not there"));
  }
  std::erase_if(ids, [&](int64_t id) { return id == kNone || is_no_token(id); });
  return ids;
}

std::optional<int64_t> find_token_id(const JsonObject& json, std::string_view key,
                                     int64_t vocab_size, std::vector<std::string>& warnings) {
  if (!json.find_integer(key, kNone, kMaxTokenId)) return std::nullopt;
  const std::vector<int64_t> ids = find_token_ids(json, key, vocab_size, warnings);
  return ids.empty() ? std::nullopt : std::optional(ids.front());
}

}  // namespace tessera
