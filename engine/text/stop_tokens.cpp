#include "engine/text/stop_tokens.h"

#include <algorithm>

#include "kernels/tensor/check.h"

namespace tessera {

std::vector<TokenId> collect_stop_tokens(const ModelFolder& folder, const Tokenizer& tokenizer,
                                         const ChatTemplate* chat_template) {
  std::vector<TokenId> tokens;
  const auto add = [&](int64_t id, std::string_view source) {
    CHECK(id >= 0 && id < folder.config.vocab_size, folder.path, "/", source, ": eos_token_id ", id,
          " is outside the vocabulary of ", folder.config.vocab_size);
    tokens.push_back(static_cast<TokenId>(id));
  };
  for (const int64_t id : folder.generation.eos_token_ids) add(id, "generation_config.json");
  for (const int64_t id : folder.config.eos_token_ids) add(id, "config.json");
  if (const auto eos = tokenizer.eos_token()) add(*eos, "tokenizer.model");
  if (chat_template != nullptr) {
    for (const TokenId id : chat_template->stop_tokens(tokenizer)) tokens.push_back(id);
  }
  std::ranges::sort(tokens);
  tokens.erase(std::ranges::unique(tokens).begin(), tokens.end());
  return tokens;
}

}  // namespace tessera
