#include "apps/batch/logprobs.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <vector>

#include "engine/text/utf8.h"

namespace tessera {
namespace {

using OrderedJson = nlohmann::ordered_json;

// The number of the fewest digits that tell a float from its neighbours. nlohmann::json prints it
// so, but for one in 800, to which it gives 16 or 17 digits that read back as the same number.
double shortest(float value) {
  std::array<char, 32> digits{};
  const auto written = std::to_chars(digits.begin(), digits.end(), value);
  double result = 0.0;
  std::from_chars(digits.data(), written.ptr, result);
  return result;
}

// A token at one place of an answer.
struct PlacedToken {
  TokenId id = 0;
  std::string bytes;
  std::string text;  // of special tokens, which add no bytes, how they are spelled
};

PlacedToken place(const Tokenizer& tokenizer, TokenId id, bool is_first) {
  std::string bytes = tokenizer.token_bytes(id, is_first);
  std::string text =
      tokenizer.is_special(id) && bytes.empty() ? tokenizer.piece(id) : replace_invalid_utf8(bytes);
  return {.id = id, .bytes = std::move(bytes), .text = std::move(text)};
}

// Calls visit(token, its log-probabilities, place(id) for alternatives) for each token in order.
template <typename Visit>
void for_each_token(const Tokenizer& tokenizer, const GenerationResult& result, Visit visit) {
  bool is_first = !result.continues_text;
  for (size_t i = 0; i < result.tokens.size(); ++i) {
    const auto placed = [&](TokenId id) { return place(tokenizer, id, is_first); };
    visit(placed(result.tokens[i]), result.logprobs[i], placed);
    is_first = is_first && tokenizer.is_special(result.tokens[i]);
  }
}

OrderedJson token_json(const PlacedToken& token, float logprob) {
  const std::vector<unsigned char> bytes(token.bytes.begin(), token.bytes.end());
  return {{"token", token.text}, {"logprob", shortest(logprob)}, {"bytes", bytes}};
}

int64_t num_characters(std::string_view text) {
  return std::ranges::count_if(text, [](char byte) { return !is_utf8_continuation(byte); });
}

}  // namespace

OrderedJson chat_logprobs(const Tokenizer& tokenizer, const GenerationResult& result) {
  OrderedJson content = OrderedJson::array();
  for_each_token(tokenizer, result,
                 [&](const PlacedToken& token, const TokenLogprobs& logprobs, const auto& placed) {
                   OrderedJson entry = token_json(token, logprobs.logprob);
                   OrderedJson& top = entry["top_logprobs"] = OrderedJson::array();
                   for (const TokenLogprob& other : logprobs.top) {
                     top.push_back(token_json(placed(other.token), other.logprob));
                   }
                   content.push_back(std::move(entry));
                 });
  return {{"content", std::move(content)}};
}

OrderedJson completion_logprobs(const Tokenizer& tokenizer, const GenerationResult& result) {
  OrderedJson offsets = OrderedJson::array(), logprobs = OrderedJson::array();
  OrderedJson tokens = OrderedJson::array(), top = OrderedJson::array();
  TextStream text(tokenizer, /*is_first=*/!result.continues_text);
  int64_t offset = 0;
  for_each_token(tokenizer, result,
                 [&](const PlacedToken& token, const TokenLogprobs& own, const auto& placed) {
                   offsets.push_back(offset);
                   offset += num_characters(text.append(token.id));
                   logprobs.push_back(shortest(own.logprob));
                   tokens.push_back(token.text);
                   OrderedJson& alternatives = top.emplace_back(OrderedJson::object());
                   // OpenAI lists the drawn token too, whether or not it is one of the likeliest.
                   alternatives.emplace(token.text, shortest(own.logprob));
                   for (const TokenLogprob& other : own.top) {
                     alternatives.emplace(placed(other.token).text, shortest(other.logprob));
                   }
                 });
  return {{"text_offset", std::move(offsets)},
          {"token_logprobs", std::move(logprobs)},
          {"tokens", std::move(tokens)},
          {"top_logprobs", std::move(top)}};
}

}  // namespace tessera
