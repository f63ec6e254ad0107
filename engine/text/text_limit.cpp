#include "engine/text/text_limit.h"

namespace tessera {

void TextLimit::check(std::string_view name, uint64_t bytes) const {
  if (!max_token_bytes) return;
  const auto longest = static_cast<uint64_t>(*max_token_bytes);
  if (bytes / longest <= static_cast<uint64_t>(context_size)) return;
  throw PromptTooLong(
      concat(name, ": ", bytes, " bytes are at least ", bytes / longest,
             " tokens (none is longer than ", longest, " bytes), the context holds ", context_size),
      hint());
}

std::string TextLimit::hint() const {
  return concat(longer_context.empty() ? "" : longer_context + " takes more; ",
                "tessera summarize reads texts of any length in parts; chat, generate and batch "
                "leave the middle out with --on-overflow middle");
}

}  // namespace tessera
