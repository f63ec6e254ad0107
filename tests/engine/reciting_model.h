// A model that recites given texts: after each token comes the one that follows it in its text,
// whatever came before. Its answers are known in advance, unlike those of random weights.
#pragma once

#include <algorithm>
#include <functional>
#include <iterator>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "tests/engine/model_fixture.h"

namespace tessera {

inline constexpr TokenId kEndOfSequence = 2;  // </s>

// The token of one byte; the tokenizer of the golden models has all 256 after <unk>, <s>, </s>.
inline TokenId byte_token(char byte) { return 3 + static_cast<unsigned char>(byte); }

inline std::vector<TokenId> byte_tokens(std::string_view text) {
  std::vector<TokenId> tokens;
  for (const char byte : text) tokens.push_back(byte_token(byte));
  return tokens;
}

inline std::span<float> row(HostWeight& matrix, TokenId token) {
  const auto size = static_cast<size_t>(matrix.shape[1]);
  return std::span(matrix.values).subspan(static_cast<size_t>(token) * size, size);
}

// Rewrites the weights of a model so that it recites. No token may have two successors. Attention
// and feed-forward contribute nothing to the residual; an embedding is a vector of +-1, nearly
// orthogonal to all others, and the row of a token in lm_head is the sum of its predecessors'.
inline void make_reciting(HostWeights& weights, const std::vector<std::vector<TokenId>>& texts) {
  for (auto& [name, weight] : weights) {
    if (name.ends_with("o_proj.weight") || name.ends_with("down_proj.weight")) {
      std::ranges::fill(weight.values, 0.0f);
    }
    if (name.ends_with("norm.weight")) std::ranges::fill(weight.values, 1.0f);
  }
  HostWeight& embedding = weights.at("model.embed_tokens.weight");
  HostWeight& lm_head = weights.at("lm_head.weight");
  std::mt19937 random(1);
  for (float& value : embedding.values) value = random() % 2 == 0 ? 1.0f : -1.0f;
  std::ranges::fill(lm_head.values, 0.0f);
  for (const std::vector<TokenId>& text : texts) {
    for (size_t i = 0; i + 1 < text.size(); ++i) {
      const std::span<float> successor = row(lm_head, text[i + 1]);
      std::ranges::transform(successor, row(embedding, text[i]), successor.begin(), std::plus());
    }
  }
}

// Recites the alphabet and ends; made to go on, counts from 0 to 9 round and round without end.
// From "~" it recites "é", two tokens, and the lower-case letters.
inline std::vector<std::vector<TokenId>> alphabet_texts() {
  std::vector<TokenId> alphabet = byte_tokens("ABCDEFGHIJKLMNOPQRSTUVWXYZ");
  alphabet.push_back(kEndOfSequence);
  std::ranges::copy(byte_tokens("0123456789"), std::back_inserter(alphabet));
  return {alphabet, byte_tokens("90"), byte_tokens("~éabcdefghijklmnopqrstuvwxyz")};
}

}  // namespace tessera
