#include "engine/text/tokenizer_json/unigram_model.h"

#include <algorithm>
#include <string>
#include <unordered_set>

#include "engine/text/sentencepiece_model.h"
#include "engine/text/utf8.h"
#include "kernels/tensor/check.h"
#include "model_loaders/printable.h"

namespace tessera {
namespace {

constexpr size_t kPieceBytesBetweenPauses = 1 << 16;
// How much less likely than every piece a character is that is none.
constexpr double kUnknownPenalty = 10.0;

// Those that text may become.
std::vector<PieceTrie::Piece> text_pieces(const TokenizerJson& json, const Vocabulary& vocabulary) {
  std::vector<PieceTrie::Piece> pieces;
  std::unordered_set<std::string_view> texts;
  texts.reserve(json.model.vocabulary.size());
  for (const auto& [piece, id] : json.model.vocabulary) {
    CHECK(texts.insert(piece).second, json.path, ": model.vocab: ", printable(piece),
          " is there twice");
    const bool is_special = vocabulary.tokens[static_cast<size_t>(id)].is_special;
    if (!is_special && !piece.empty() && piece != json.model.unknown_token) {
      pieces.push_back({piece, id});
    }
  }
  return pieces;
}

}  // namespace

UnigramModel::UnigramModel(const TokenizerJson& json, const Vocabulary& vocabulary)
    : pieces_(text_pieces(json, vocabulary)), scores_(json.model.scores) {
  unknown_score_ = std::ranges::min(scores_) - kUnknownPenalty;
  byte_ids_.fill(kNoToken);
  for (const auto& [piece, id] : json.model.vocabulary) {
    if (piece == json.model.unknown_token) unknown_token_ = id;
    longest_piece_ = std::max(longest_piece_, piece.size());
    if (!json.model.has_byte_fallback) continue;
    if (const auto byte = byte_of_piece(piece)) byte_ids_[static_cast<unsigned char>(*byte)] = id;
  }
}

std::optional<int64_t> UnigramModel::max_token_bytes() const {
  if (std::ranges::find(byte_ids_, kNoToken) != byte_ids_.end()) return std::nullopt;
  return static_cast<int64_t>(longest_piece_);
}

void UnigramModel::find_ways(std::string_view word, const Pause& pause, Memory& memory) const {
  memory.ways.assign(word.size() + 1, {});
  size_t next_pause = kPieceBytesBetweenPauses;
  for (size_t begin = 0, character_bytes = 0; begin < word.size(); begin += character_bytes) {
    if (begin >= next_pause) {
      pause();
      next_pause += kPieceBytesBetweenPauses;
    }
    character_bytes = utf8_character_bytes(word[begin]);
    const double score = memory.ways[begin].score;
    // Of two equal sums the one whose last token begins first stays.
    const auto go_on = [&](size_t bytes, double token_score, TokenId token) {
      Memory::Way& way = memory.ways[begin + bytes];
      const double sum = token_score + score;
      if (way.last_begin < 0 || sum > way.score) way = {sum, static_cast<int32_t>(begin), token};
    };
    bool is_character_known = false;
    pieces_.for_each_prefix(word.substr(begin), [&](size_t bytes, TokenId token) {
      go_on(bytes, scores_[static_cast<size_t>(token)], token);
      is_character_known = is_character_known || bytes == character_bytes;
    });
    if (!is_character_known) go_on(character_bytes, unknown_score_, unknown_token_);
  }
}

bool UnigramModel::has_byte_tokens(std::string_view characters) const {
  return std::ranges::all_of(characters, [this](char byte) {
    return byte_ids_[static_cast<unsigned char>(byte)] != kNoToken;
  });
}

void UnigramModel::append_unknown(std::string_view characters, std::vector<TokenId>& tokens) const {
  if (!has_byte_tokens(characters)) return tokens.push_back(unknown_token_);
  for (const char byte : characters) tokens.push_back(byte_ids_[static_cast<unsigned char>(byte)]);
}

void UnigramModel::encode(std::string_view word, const Pause& pause, Memory& memory,
                          std::vector<TokenId>& tokens) const {
  find_ways(word, pause, memory);
  memory.ends.clear();
  for (size_t end = word.size(); end > 0;) {
    memory.ends.push_back(end);
    end = static_cast<size_t>(memory.ways[end].last_begin);
  }
  size_t begin = 0;
  size_t unknown_begin = 0;  // behind it, characters that are no pieces
  for (auto end = memory.ends.rbegin(); end != memory.ends.rend(); begin = *end++) {
    const TokenId token = memory.ways[*end].last_token;
    if (token == unknown_token_) continue;
    if (unknown_begin < begin) {
      append_unknown(word.substr(unknown_begin, begin - unknown_begin), tokens);
    }
    tokens.push_back(token);
    unknown_begin = *end;
  }
  if (unknown_begin < word.size()) append_unknown(word.substr(unknown_begin), tokens);
}

}  // namespace tessera
