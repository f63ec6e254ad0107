#include "apps/summarize/token_map.h"

#include <optional>

#include "engine/text/utf8.h"

namespace tessera {
namespace {

// Short enough for every tokenizer, which refuses what it cannot divide for a megabyte.
constexpr size_t kPieceBytes = 64 << 10;
// Where the tokens of a piece do not give its bytes, it is halved down to this size.
constexpr size_t kAtomBytes = 16;

size_t character_boundary(std::string_view text, size_t at) {
  while (at > 0 && at < text.size() && is_utf8_continuation(text[at])) --at;
  return at;
}

// How much of `text` is tokenised at once.
size_t piece_size(std::string_view text) {
  if (text.size() <= kPieceBytes) return text.size();
  const std::string_view window = text.substr(0, kPieceBytes);
  const size_t line_end = window.rfind('\n');
  if (line_end != std::string_view::npos) return line_end + 1;
  const size_t space = window.rfind(' ');
  if (space != std::string_view::npos && space > 0) return space;
  return character_boundary(text, kPieceBytes);
}

// The ends of tokens if together they are the bytes of `piece`, but for spaces: some tokenizers
// make one of several, and none of those at the ends. `is_first`: the space that some tokenizers
// put in front of a text is left out.
std::optional<std::vector<uint32_t>> exact_ends(const Tokenizer& tokenizer,
                                                const std::vector<TokenId>& tokens,
                                                std::string_view piece, bool is_first) {
  std::vector<uint32_t> ends;
  ends.reserve(tokens.size());
  size_t at = 0;
  for (const TokenId token : tokens) {
    const std::string bytes = tokenizer.token_bytes(token, is_first && ends.empty());
    while (!piece.substr(at).starts_with(bytes)) {
      if (!piece.substr(at).starts_with(' ')) return std::nullopt;
      ++at;
    }
    at += bytes.size();
    ends.push_back(static_cast<uint32_t>(at));
  }
  if (piece.find_first_not_of(' ', at) != std::string_view::npos) return std::nullopt;
  return ends;
}

void append_piece(const Tokenizer& tokenizer, std::string_view piece, uint32_t begin,
                  std::vector<uint32_t>& ends) {
  const std::vector<TokenId> tokens = tokenizer.encode(piece, /*at_start=*/false);
  auto own = exact_ends(tokenizer, tokens, piece, /*is_first=*/false);
  if (!own) own = exact_ends(tokenizer, tokens, piece, /*is_first=*/true);
  if (!own && piece.size() > kAtomBytes) {
    const size_t half = character_boundary(piece, piece.size() / 2);
    append_piece(tokenizer, piece.substr(0, half), begin, ends);
    append_piece(tokenizer, piece.substr(half), begin + static_cast<uint32_t>(half), ends);
    return;
  }
  if (!own) own.emplace(tokens.size(), static_cast<uint32_t>(piece.size()));
  for (const uint32_t end : *own) ends.push_back(begin + end);
}

}  // namespace

TokenMap map_tokens(const Tokenizer& tokenizer, std::string_view text,
                    const EncodeProgress& progress) {
  TokenMap map;
  for (size_t at = 0; at < text.size();) {
    const size_t size = piece_size(text.substr(at));
    append_piece(tokenizer, text.substr(at, size), static_cast<uint32_t>(at), map.ends);
    at += size;
    if (progress) progress(at, text.size());
  }
  if (!map.ends.empty()) map.ends.back() = static_cast<uint32_t>(text.size());
  return map;
}

}  // namespace tessera
