#include "model_loaders/tekken_json.h"

#include <array>
#include <optional>
#include <span>
#include <unordered_map>

#include "kernels/tensor/check.h"
#include "model_loaders/byte_level.h"
#include "model_loaders/json.h"
#include "model_loaders/json_divider.h"

namespace tessera {
namespace {

constexpr int64_t kMaxVocabTokens = 4'000'000;
constexpr size_t kMaxMerges = 4'000'000;  // Mistral's have 269,443
// The longest known token has 78 bytes. Every way to divide a token is looked at.
constexpr size_t kMaxTokenBytes = 256;

// The special tokens of files that do not list theirs, which are the oldest; their ids are their
// places.
constexpr std::string_view kFirstSpecialTokens[] = {"<unk>",
                                                    "<s>",
                                                    "</s>",
                                                    "[INST]",
                                                    "[/INST]",
                                                    "[AVAILABLE_TOOLS]",
                                                    "[/AVAILABLE_TOOLS]",
                                                    "[TOOL_RESULTS]",
                                                    "[/TOOL_RESULTS]",
                                                    "[TOOL_CALLS]",
                                                    "[IMG]",
                                                    "<pad>",
                                                    "[IMG_BREAK]",
                                                    "[IMG_END]",
                                                    "[PREFIX]",
                                                    "[MIDDLE]",
                                                    "[SUFFIX]",
                                                    "[SYSTEM_PROMPT]",
                                                    "[/SYSTEM_PROMPT]",
                                                    "[TOOL_CONTENT]"};

// What a character of base64 (RFC 4648) stands for; -1: it is none.
constexpr std::array<int, 256> make_base64_values() {
  std::array<int, 256> values = {};
  for (int& value : values) value = -1;
  constexpr std::string_view kCharacters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (size_t i = 0; i < kCharacters.size(); ++i) {
    values[static_cast<unsigned char>(kCharacters[i])] = static_cast<int>(i);
  }
  return values;
}
constexpr std::array<int, 256> kBase64Values = make_base64_values();

// Nothing where the text is not base64 with its padding.
std::optional<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  text.remove_suffix(padding);
  std::string bytes;
  uint32_t bits = 0;
  int num_bits = 0;
  for (const char character : text) {
    const int value = kBase64Values[static_cast<unsigned char>(character)];
    if (value < 0) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(value);
    num_bits += 6;
    if (num_bits < 8) continue;
    num_bits -= 8;
    bytes += static_cast<char>(bits >> num_bits & 0xFF);
  }
  return bytes;
}

// The file, its list of byte strings apart.
class TekkenFile {
 public:
  TekkenFile(std::string& text, const std::string& path) : path_(path), divider_(text, path) {
    divider_.read_object([&](std::string_view key) {
      if (key != R"("vocab")") return false;
      CHECK(tokens_.empty(), path_, ": duplicate key 'vocab'");
      divider_.read_list('[', ']', [&] { read_token(); });
      return true;
    });
    divider_.scanner().expect_end();
  }

  // In order, in the alphabet of byte_level.h.
  const std::vector<std::string>& tokens() const { return tokens_; }
  const std::string& rest() const { return divider_.rest(); }

 private:
  // {"rank": 300, "token_bytes": "IHRoZQ==", "token_str": " the"}
  void read_token() {
    JsonScanner& scanner = divider_.scanner();
    const size_t index = tokens_.size();
    std::optional<int32_t> rank;
    std::optional<std::string> bytes;
    divider_.read_list('{', '}', [&] {
      const std::string_view key = scanner.raw_value();
      scanner.expect(':');
      if (key == R"("rank")") {
        rank = scanner.integer();
      } else if (key == R"("token_bytes")") {
        bytes = decode_base64(scanner.string());
        CHECK(bytes, path_, ": vocab[", index, "].token_bytes must be base64");
      } else {
        scanner.raw_value();
      }
    });
    CHECK(rank && bytes, path_, ": vocab[", index, "] must have a rank and token_bytes");
    CHECK(static_cast<size_t>(*rank) == index, path_, ": vocab[", index, "].rank must be ", index,
          ", got ", *rank);
    CHECK(!bytes->empty() && bytes->size() <= kMaxTokenBytes, path_, ": vocab[", index,
          "].token_bytes must be 1 to ", kMaxTokenBytes, " bytes, got ", bytes->size());
    CHECK(tokens_.size() < kMaxVocabTokens, path_, ": vocab has more than ", kMaxVocabTokens,
          " tokens");
    tokens_.push_back(byte_level_of(*bytes));
  }

  const std::string& path_;
  JsonDivider divider_;
  std::vector<std::string> tokens_;
};

std::vector<AddedToken> read_special_tokens(const JsonObject& json, int64_t count) {
  std::vector<AddedToken> tokens;
  const auto add = [&](int64_t id, std::string content) {
    tokens.push_back({.id = id, .content = std::move(content), .special = true});
  };
  if (const auto listed = json.find_objects("special_tokens")) {
    for (const JsonObject& token : *listed) {
      add(token.get_integer("rank", 0, count - 1), token.get_string("token_str"));
    }
  } else {
    for (const std::string_view content : kFirstSpecialTokens) {
      if (std::ssize(tokens) < count) add(std::ssize(tokens), std::string(content));
    }
  }
  std::vector<bool> is_there(static_cast<size_t>(count));
  for (const AddedToken& token : tokens) {
    CHECK(!is_there[static_cast<size_t>(token.id)], json.path(),
          ": special_tokens has two of rank ", token.id);
    is_there[static_cast<size_t>(token.id)] = true;
  }
  for (int64_t id = 0; id < count; ++id) {
    if (!is_there[static_cast<size_t>(id)]) add(id, concat("<SPECIAL_", id, ">"));
  }
  return tokens;
}

// Adds the tokens, whose ids begin with `first_id` and which become the result's text, and for each
// every pair of tokens that it can be divided into.
void add_tokens(std::span<const std::string> tokens, int32_t first_id, TokenizerJson& result) {
  std::string& text = *result.text;
  size_t num_bytes = 0;
  for (const std::string& token : tokens) num_bytes += token.size();
  text.clear();
  text.reserve(num_bytes);  // views of it stay
  std::unordered_map<std::string_view, int32_t> ids;
  ids.reserve(tokens.size());
  for (const std::string& token : tokens) {
    const size_t begin = text.size();
    text += token;
    const std::string_view piece = std::string_view(text).substr(begin);
    const auto id = first_id + static_cast<int32_t>(result.model.vocabulary.size());
    result.model.vocabulary.push_back({piece, id});
    CHECK(ids.emplace(piece, id).second, result.path, ": vocab[", id - first_id,
          "].token_bytes is there twice");
  }
  for (const auto& [piece, id] : result.model.vocabulary) {
    for (size_t i = 1; i < piece.size(); ++i) {
      if ((piece[i] & 0xC0) == 0x80) continue;  // inside a character of the alphabet
      const std::string_view left = piece.substr(0, i);
      const std::string_view right = piece.substr(i);
      if (!ids.contains(left) || !ids.contains(right)) continue;
      CHECK(result.model.merges.size() < kMaxMerges, result.path,
            ": the tokens of vocab can be divided into others in more than ", kMaxMerges, " ways");
      result.model.merges.push_back(
          {.left = left, .right = right, .rank = static_cast<uint32_t>(id)});
    }
  }
}

}  // namespace

bool is_tekken_file(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  return name.starts_with("tekken") && name.ends_with(".json");
}

TokenizerJson parse_tekken_json(std::string text, const std::string& path) {
  TokenizerJson result = {.path = path, .text = std::make_unique<std::string>(std::move(text))};
  const TekkenFile file(*result.text, path);
  const JsonObject json = JsonObject::parse(file.rest(), path);
  const auto config = json.find_object("config");
  CHECK(config, path, ": config is missing; it must be an object");
  const int64_t num_special = config->get_integer("default_num_special_tokens", 1, kMaxVocabTokens);
  const int64_t vocab_size =
      config->get_integer("default_vocab_size", num_special, kMaxVocabTokens);
  const int64_t num_tokens = vocab_size - num_special;
  CHECK(num_tokens <= std::ssize(file.tokens()), path, ": vocab has ", file.tokens().size(),
        " tokens, but config.default_vocab_size asks for ", num_tokens);
  add_tokens(std::span(file.tokens()).first(static_cast<size_t>(num_tokens)),
             static_cast<int32_t>(num_special), result);
  result.added_tokens = read_special_tokens(json, num_special);
  result.model.ignores_merges = true;
  PreTokenizerStep& split = result.pre_tokenizer.emplace_back();
  split.kind = PreTokenizerStep::Kind::kSplit;
  split.pattern = {.text = config->get_string("pattern"), .is_regex = true};
  split.field = "config.pattern";
  PreTokenizerStep& bytes = result.pre_tokenizer.emplace_back();
  bytes.kind = PreTokenizerStep::Kind::kByteLevel;
  bytes.adds_prefix_space = false;
  bytes.splits = false;
  bytes.field = "bytes";
  result.decoder.push_back({.kind = DecoderStep::Kind::kByteLevel, .field = "bytes"});
  result.prompt_template.prefix = {"<s>"};
  result.eos_token = "</s>";
  return result;
}

}  // namespace tessera
