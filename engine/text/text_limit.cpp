#include "engine/text/text_limit.h"

#include "engine/options.h"
#include "engine/text/tokenizer.h"
#include "kernels/tensor/checked_math.h"

namespace tessera {

void TextLimit::check(std::string_view name, uint64_t bytes) const {
  if (!max_token_bytes) return;
  const auto longest = static_cast<uint64_t>(*max_token_bytes);
  if (bytes / longest <= static_cast<uint64_t>(context_size)) return;
  throw PromptTooLong(
      concat(name, ": ", bytes, " bytes are at least ", bytes / longest,
             " tokens (none is longer than ", longest, " bytes), the context holds ", context_size),
      "use a longer context (see --ctx-size), a model that has one, or a shorter text");
}

TextLimit read_text_limit(const EngineOptions& options) {
  const ModelFolder folder = read_model_folder(options);
  return {.context_size = options.context_size > 0 ? options.context_size
                                                   : folder.config.max_position_embeddings,
          .max_token_bytes = Tokenizer::load(folder)->max_token_bytes()};
}

}  // namespace tessera
