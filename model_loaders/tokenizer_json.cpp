#include "model_loaders/tokenizer_json.h"

#include "kernels/tensor/check.h"
#include "model_loaders/json.h"
#include "model_loaders/json_decimal.h"
#include "model_loaders/json_divider.h"
#include "model_loaders/printable.h"
#include "model_loaders/tokenizer_json_steps.h"

namespace tessera {
namespace {

constexpr size_t kMaxEntries = 4'000'000;
constexpr int64_t kMaxEntryId = kMaxEntries - 1;

// Reads vocabulary and merges where they stand.
class LargeLists {
 public:
  LargeLists(std::string& text, const std::string& path)
      : path_(path), divider_(text, path), scanner_(divider_.scanner()) {}

  bool begins_with_object() { return scanner_.is_next('{'); }

  void run() {
    divider_.read_object([&](std::string_view key) {
      if (key != R"("model")" || !scanner_.is_next('{')) return false;
      divider_.read_object([&](std::string_view inner) { return read_large_list(inner); });
      return true;
    });
    scanner_.expect_end();
  }

  bool has_vocabulary() const { return has_vocabulary_; }
  const std::string& rest() const { return divider_.rest(); }
  TokenizerModel take_model() { return std::move(model_); }

 private:
  bool read_large_list(std::string_view key) {
    if (key == R"("vocab")") {
      CHECK(!has_vocabulary_, path_, ": duplicate key 'vocab'");
      if (scanner_.is_next('{')) {
        read_vocabulary();
      } else {
        read_scored_vocabulary();
      }
      return has_vocabulary_ = true;
    }
    if (key != R"("merges")") return false;
    CHECK(!has_merges_, path_, ": duplicate key 'merges'");
    read_merges();
    return has_merges_ = true;
  }

  void read_vocabulary() {
    divider_.read_list('{', '}', [&] {
      const std::string_view piece = scanner_.string();
      scanner_.expect(':');
      const int32_t id = scanner_.integer();
      CHECK(id <= kMaxEntryId, path_, ": model.vocab: ", printable(piece), " has the id ", id);
      add_entry({piece, id});
    });
  }

  // [["a", -3.5], ...]: ids are places.
  void read_scored_vocabulary() {
    divider_.read_list('[', ']', [&] {
      scanner_.expect('[');
      const std::string_view piece = scanner_.string();
      scanner_.expect(',');
      const std::optional<double> score = parse_json_decimal(scanner_.raw_value());
      CHECK(score, path_, ": model.vocab[", model_.scores.size(),
            "] must be a string and a number");
      scanner_.expect(']');
      add_entry({piece, static_cast<int32_t>(model_.scores.size())});
      model_.scores.push_back(*score);
    });
  }

  void add_entry(const VocabularyEntry& entry) {
    CHECK(model_.vocabulary.size() < kMaxEntries, path_, ": model.vocab has more than ",
          kMaxEntries, " tokens");
    model_.vocabulary.push_back(entry);
  }

  void read_merges() {
    divider_.read_list('[', ']', [&] {
      CHECK(model_.merges.size() < kMaxEntries, path_, ": model.merges has more than ", kMaxEntries,
            " pairs");
      const auto rank = static_cast<uint32_t>(model_.merges.size());
      model_.merges.push_back(scanner_.is_next('[') ? read_pair() : read_joined_pair());
      model_.merges.back().rank = rank;
    });
  }

  // ["a", "b"]
  Merge read_pair() {
    scanner_.expect('[');
    const std::string_view left = scanner_.string();
    scanner_.expect(',');
    const std::string_view right = scanner_.string();
    scanner_.expect(']');
    return {.left = left, .right = right};
  }

  // "a b"
  Merge read_joined_pair() {
    const std::string_view joined = scanner_.string();
    const size_t space = joined.find(' ');
    CHECK(space != std::string_view::npos && space == joined.rfind(' '), path_, ": model.merges[",
          model_.merges.size(), "] must be two strings with a space between, got ",
          printable(joined));
    return {.left = joined.substr(0, space), .right = joined.substr(space + 1)};
  }

  const std::string& path_;
  JsonDivider divider_;
  JsonScanner& scanner_;
  TokenizerModel model_;
  bool has_vocabulary_ = false;
  bool has_merges_ = false;
};

// What byte-pair encoding could have and no supported model has.
void refuse_options(const JsonObject& model) {
  const auto refuse = [&](std::string_view key) {
    throw Error(concat(model.path(), ": ", model.field(key), " is not supported"));
  };
  if (model.find_number("dropout", 0.0, 1.0).value_or(0.0) != 0.0) refuse("dropout");
  for (const std::string_view key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!model.find_string(key).value_or("").empty()) refuse(key);
  }
}

void read_byte_pairs(const JsonObject& model, TokenizerModel& result) {
  refuse_options(model);
  result.unknown_token = model.find_string("unk_token");
  result.fuses_unknown = model.find_bool("fuse_unk").value_or(false);
  result.ignores_merges = model.find_bool("ignore_merges").value_or(false);
}

void read_unigram(const JsonObject& model, TokenizerModel& result) {
  result.kind = TokenizerModel::Kind::kUnigram;
  const auto num_pieces = static_cast<int64_t>(result.vocabulary.size());
  const int64_t unknown = model.get_integer("unk_id", 0, num_pieces - 1);
  result.unknown_token = result.vocabulary[static_cast<size_t>(unknown)].piece;
}

void read_model(const JsonObject& json, bool has_vocabulary, TokenizerModel& result) {
  const auto model = json.find_object("model");
  CHECK(model, json.path(), ": model is missing; it must be an object");
  const std::string type = model->find_string("type").value_or("BPE");  // old files say nothing
  if (type != "BPE" && type != "Unigram") {
    throw Error(concat(json.path(), ": ", model->field("type"), " is ", printable(type),
                       ", which is not supported"),
                "supported are BPE and Unigram");
  }
  CHECK(has_vocabulary, json.path(), ": ", model->field("vocab"), " is missing");
  const bool has_scores = !result.scores.empty();
  CHECK(has_scores == (type == "Unigram"), json.path(), ": ", model->field("vocab"),
        has_scores ? " has scores, but the model is " : " has no scores, but the model is ", type);
  result.has_byte_fallback = model->find_bool("byte_fallback").value_or(false);
  if (has_scores) {
    read_unigram(*model, result);
  } else {
    read_byte_pairs(*model, result);
  }
}

std::vector<AddedToken> read_added_tokens(const JsonObject& json) {
  std::vector<AddedToken> tokens;
  const auto objects = json.find_objects("added_tokens");
  if (!objects) return tokens;
  for (const JsonObject& token : *objects) {
    const bool special = token.get_bool_or("special", false);
    tokens.push_back({.id = token.get_integer("id", 0, kMaxEntryId),
                      .content = token.get_string("content"),
                      .special = special,
                      .lstrip = token.get_bool_or("lstrip", false),
                      .rstrip = token.get_bool_or("rstrip", false),
                      .single_word = token.get_bool_or("single_word", false),
                      .normalized = token.get_bool_or("normalized", !special)});
  }
  return tokens;
}

}  // namespace

TokenizerJson parse_tokenizer_json(std::string text, const std::string& path) {
  TokenizerJson result = {.path = path, .text = std::make_unique<std::string>(std::move(text))};
  LargeLists lists(*result.text, path);
  if (!lists.begins_with_object()) JsonObject::parse(*result.text, path);  // says what is wrong
  lists.run();
  const JsonObject json = JsonObject::parse(lists.rest(), path);
  result.model = lists.take_model();
  read_model(json, lists.has_vocabulary(), result.model);
  result.normalizer = read_normalizer(json);
  result.pre_tokenizer = read_pre_tokenizer(json);
  result.added_tokens = read_added_tokens(json);
  result.prompt_template = read_prompt_template(json, result.added_tokens);
  result.decoder = read_decoder(json);
  return result;
}

}  // namespace tessera
