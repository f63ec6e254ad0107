#include "model_loaders/tokenizer_json_steps.h"

#include <algorithm>
#include <limits>

#include "kernels/tensor/check.h"
#include "model_loaders/printable.h"

namespace tessera {
namespace {

// Numbers of Unicode, with those that came after its version 14, whose tables PCRE2 10.42 has.
constexpr std::string_view kDigits =
    R"([\p{N}\x{10d40}-\x{10d49}\x{116d0}-\x{116e3}\x{11bf0}-\x{11bf9}\x{11de0}-\x{11de9})"
    R"(\x{11f50}-\x{11f59}\x{16130}-\x{16139}\x{16d70}-\x{16d79}\x{16ff4}-\x{16ff6})"
    R"(\x{1ccf0}-\x{1ccf9}\x{1d2c0}-\x{1d2d3}\x{1e4f0}-\x{1e4f9}\x{1e5f1}-\x{1e5fa}])";

// ASCII that is no letter or digit, and punctuation as the tables of the tokenizers library have
// it: they lack what Unicode has got since 2016, and have two that it has taken out.
constexpr std::string_view kPunctuation =
    R"((?![)"
    R"(\x{61d}\x{9fd}\x{a76}\x{c77}\x{c84}\x{1b4e}-\x{1b4f}\x{1b7d}-\x{1b7f}\x{2e43}-\x{2e4f})"
    R"(\x{2e52}-\x{2e5d}\x{2e60}-\x{2e63}\x{10d6e}\x{10ead}\x{10ed0}\x{10f55}-\x{10f59})"
    R"(\x{10f86}-\x{10f89}\x{113d4}-\x{113d5}\x{113d7}-\x{113d8}\x{1144b}-\x{1144f})"
    R"(\x{1145a}-\x{1145b}\x{1145d}\x{11660}-\x{1166c}\x{116b9}\x{1183b}\x{11944}-\x{11946})"
    R"(\x{119e2}\x{11a3f}-\x{11a46}\x{11a9a}-\x{11a9c}\x{11a9e}-\x{11aa2}\x{11b00}-\x{11b09})"
    R"(\x{11be1}\x{11c41}-\x{11c45}\x{11c70}-\x{11c71}\x{11ef7}-\x{11ef8}\x{11f43}-\x{11f4f})"
    R"(\x{11fff}\x{12ff1}-\x{12ff2}\x{16d6d}-\x{16d6f}\x{16e97}-\x{16e9a}\x{16fe2}\x{1e5ff})"
    R"(\x{1e95e}-\x{1e95f})"
    R"(])[\p{P}$+<=>^`|~\x{166d}\x{111c9}])";

// "path: pre_tokenizer.pretokenizers[1].type", the beginning of a message about a field.
std::string where(const JsonObject& json, std::string_view key) {
  return json.path() + ": " + json.field(key);
}

// The step's own place: its fields' without their name.
std::string place(const JsonObject& step) {
  const std::string type = step.field("type");
  return type.substr(0, type.size() - std::string_view(".type").size());
}

[[noreturn]] void refuse(const JsonObject& json, std::string_view key, std::string_view got,
                         std::string_view supported) {
  throw Error(concat(where(json, key), " is ", printable(got), ", which is not supported"),
              concat("supported are ", supported));
}

// Calls `read` for `step`, or for each of the steps that it is a sequence of.
template <typename Read>
void for_each_step(const JsonObject& step, std::string_view list, const Read& read) {
  if (step.get_string("type") != "Sequence") return read(step);
  const auto steps = step.find_objects(list);
  CHECK(steps, where(step, list), " is missing; it must be a list of objects");
  for (const JsonObject& inner : *steps) for_each_step(inner, list, read);
}

TokenizerPattern read_pattern(const JsonObject& step) {
  const auto pattern = step.find_object("pattern");
  CHECK(pattern, where(step, "pattern"), " is missing; it must be an object");
  if (const auto text = pattern->find_string("String")) return {.text = *text};
  return {.text = pattern->get_string("Regex"), .is_regex = true};
}

SplitBehavior read_behavior(const JsonObject& step) {
  const std::string name = step.get_string("behavior");
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  refuse(step, "behavior", name,
         "Isolated, Removed, MergedWithPrevious, MergedWithNext and Contiguous");
}

// Files of older versions have add_prefix_space instead.
PrependScheme read_prepend_scheme(const JsonObject& step) {
  const bool adds_prefix_space = step.get_bool_or("add_prefix_space", true);
  const auto name = step.find_string("prepend_scheme");
  if (!name) return adds_prefix_space ? PrependScheme::kAlways : PrependScheme::kNever;
  if (name == "always") return PrependScheme::kAlways;
  if (name == "first") return PrependScheme::kFirst;
  if (name == "never") return PrependScheme::kNever;
  refuse(step, "prepend_scheme", *name, "always, first and never");
}

// Those that have no options.
std::optional<NormalizerStep::Kind> simple_normalizer(const std::string& type) {
  using Kind = NormalizerStep::Kind;
  if (type == "NFC") return Kind::kNfc;
  if (type == "NFD") return Kind::kNfd;
  if (type == "NFKC") return Kind::kNfkc;
  if (type == "NFKD") return Kind::kNfkd;
  if (type == "Lowercase") return Kind::kLowercase;
  if (type == "StripAccents") return Kind::kStripAccents;
  return std::nullopt;
}

NormalizerStep read_normalizer_step(const JsonObject& step) {
  using Kind = NormalizerStep::Kind;
  const std::string type = step.get_string("type");
  NormalizerStep result;
  result.field = place(step);
  if (const auto simple = simple_normalizer(type)) {
    result.kind = *simple;
  } else if (type == "Strip") {
    result.kind = Kind::kStrip;
    result.strips_left = step.get_bool_or("strip_left", true);
    result.strips_right = step.get_bool_or("strip_right", true);
  } else if (type == "Prepend") {
    result.kind = Kind::kPrepend;
    result.content = step.get_string("prepend");
  } else if (type == "Replace") {
    result.kind = Kind::kReplace;
    result.pattern = read_pattern(step);
    result.content = step.get_string("content");
  } else {
    refuse(step, "type", type,
           "NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, Prepend, Replace and Sequence");
  }
  return result;
}

PreTokenizerStep read_pre_tokenizer_step(const JsonObject& step) {
  using Kind = PreTokenizerStep::Kind;
  const std::string type = step.get_string("type");
  PreTokenizerStep result;
  result.field = place(step);
  if (type == "Split") {
    result.kind = Kind::kSplit;
    result.pattern = read_pattern(step);
    result.behavior = read_behavior(step);
    result.inverts = step.get_bool_or("invert", false);
  } else if (type == "Digits") {
    const bool individual = step.get_bool_or("individual_digits", false);
    result.kind = Kind::kSplit;
    result.pattern.text = std::string(kDigits);
    result.pattern.is_regex = true;
    result.behavior = individual ? SplitBehavior::kIsolated : SplitBehavior::kContiguous;
  } else if (type == "Punctuation") {
    result.kind = Kind::kSplit;
    result.pattern.text = std::string(kPunctuation);
    result.pattern.is_regex = true;
    if (step.contains("behavior")) result.behavior = read_behavior(step);
  } else if (type == "WhitespaceSplit") {
    result.kind = Kind::kSplit;
    result.pattern.text = R"(\s)";
    result.pattern.is_regex = true;
    result.behavior = SplitBehavior::kRemoved;
  } else if (type == "ByteLevel") {
    result.kind = Kind::kByteLevel;
    result.adds_prefix_space = step.get_bool_or("add_prefix_space", true);
    result.splits = step.get_bool_or("use_regex", true);
  } else if (type == "Metaspace") {
    result.kind = Kind::kMetaspace;
    result.replacement = step.get_string("replacement");
    result.prepend_scheme = read_prepend_scheme(step);
    result.splits = step.get_bool_or("split", true);
  } else {
    refuse(step, "type", type,
           "Split, Digits, Punctuation, WhitespaceSplit, ByteLevel, Metaspace and Sequence");
  }
  return result;
}

bool is_byte_level(const PreTokenizerStep& step) {
  return step.kind == PreTokenizerStep::Kind::kByteLevel;
}

bool is_metaspace(const PreTokenizerStep& step) {
  return step.kind == PreTokenizerStep::Kind::kMetaspace;
}

// A template writes its tokens' ids a second time. Refuses others than the added tokens have.
void check_template_ids(const JsonObject& step, const PromptTemplate& prompt,
                        std::span<const AddedToken> added_tokens) {
  const auto tokens = step.find_object("special_tokens");
  if (!tokens) return;
  for (const auto* const list : {&prompt.prefix, &prompt.suffix}) {
    for (const std::string& content : *list) {
      const auto entry = tokens->find_object(content);
      const auto added = std::ranges::find(added_tokens, content, &AddedToken::content);
      if (!entry || added == added_tokens.end()) continue;
      const auto ids = entry->find_integers("ids", 0, std::numeric_limits<int32_t>::max());
      CHECK(ids == std::vector<int64_t>{added->id}, where(*entry, "ids"), " is not the id ",
            added->id, " that added_tokens gives ", printable(content), ", which is not supported");
    }
  }
}

// The tokens of a template before the text and behind it.
PromptTemplate read_template(const JsonObject& step, std::span<const AddedToken> added_tokens) {
  PromptTemplate result;
  const auto parts = step.find_objects("single");
  CHECK(parts, where(step, "single"), " is missing; it must be a list of objects");
  bool text_came = false;
  for (const JsonObject& part : *parts) {
    if (const auto special = part.find_object("SpecialToken")) {
      (text_came ? result.suffix : result.prefix).push_back(special->get_string("id"));
    } else {
      CHECK(!text_came, part.path(), ": ", place(step), ".single has the text twice");
      text_came = true;
    }
  }
  CHECK(text_came, where(step, "single"), " has no Sequence, which stands for the text");
  check_template_ids(step, result, added_tokens);
  return result;
}

DecoderStep read_decoder_step(const JsonObject& step) {
  using Kind = DecoderStep::Kind;
  const std::string type = step.get_string("type");
  DecoderStep result;
  result.field = place(step);
  if (type == "ByteLevel") {
    result.kind = Kind::kByteLevel;
  } else if (type == "ByteFallback") {
    result.kind = Kind::kByteFallback;
  } else if (type == "Fuse") {
    result.kind = Kind::kFuse;
  } else if (type == "Replace") {
    const TokenizerPattern pattern = read_pattern(step);
    CHECK(!pattern.is_regex, where(step, "pattern"),
          ": a decoder's Regex is not supported, only a String");
    CHECK(!pattern.text.empty(), where(step, "pattern"), ".String is empty");
    result.kind = Kind::kReplace;
    result.pattern = pattern.text;
    result.content = step.get_string("content");
  } else if (type == "Strip") {
    result.kind = Kind::kStrip;
    result.content = step.get_string("content");
    result.start = step.get_integer_or("start", 0, 0, 1);
    step.get_integer_or("stop", 0, 0, 0);
  } else if (type == "Metaspace") {
    result.kind = Kind::kMetaspace;
    result.pattern = step.get_string("replacement");
    result.prepend_scheme = read_prepend_scheme(step);
  } else {
    refuse(step, "type", type,
           "ByteLevel, Replace, ByteFallback, Fuse, Strip, Metaspace and Sequence");
  }
  return result;
}

}  // namespace

std::vector<NormalizerStep> read_normalizer(const JsonObject& json) {
  std::vector<NormalizerStep> steps;
  const auto normalizer = json.find_object("normalizer");
  if (!normalizer) return steps;
  for_each_step(*normalizer, "normalizers",
                [&](const JsonObject& step) { steps.push_back(read_normalizer_step(step)); });
  return steps;
}

std::vector<PreTokenizerStep> read_pre_tokenizer(const JsonObject& json) {
  std::vector<PreTokenizerStep> steps;
  const auto pre_tokenizer = json.find_object("pre_tokenizer");
  if (!pre_tokenizer) return steps;
  for_each_step(*pre_tokenizer, "pretokenizers", [&](const JsonObject& step) {
    steps.push_back(read_pre_tokenizer_step(step));
    const bool follows_metaspace =
        std::ranges::any_of(steps.begin(), steps.end() - 1, is_metaspace);
    CHECK(!follows_metaspace, step.path(), ": ", place(step),
          ": a step after Metaspace is not supported");
    const bool follows_bytes = std::ranges::any_of(steps.begin(), steps.end() - 1, is_byte_level);
    CHECK(!follows_bytes || steps.back().kind == PreTokenizerStep::Kind::kSplit, step.path(), ": ",
          place(step), ": after ByteLevel, only steps that split are supported");
  });
  return steps;
}

PromptTemplate read_prompt_template(const JsonObject& json,
                                    std::span<const AddedToken> added_tokens) {
  PromptTemplate result;
  bool has_template = false;
  const auto post_processor = json.find_object("post_processor");
  if (!post_processor) return result;
  for_each_step(*post_processor, "processors", [&](const JsonObject& step) {
    const std::string type = step.get_string("type");
    if (type == "ByteLevel") return;  // moves offsets, which nobody here asks for
    if (type != "TemplateProcessing") {
      refuse(step, "type", type, "TemplateProcessing, ByteLevel and Sequence");
    }
    CHECK(!has_template, step.path(), ": ", place(step),
          ": a second TemplateProcessing is not supported");
    has_template = true;
    result = read_template(step, added_tokens);
  });
  return result;
}

std::vector<DecoderStep> read_decoder(const JsonObject& json) {
  const auto decoder = json.find_object("decoder");
  CHECK(decoder, where(json, "decoder"), " is missing: without one, tokens have no text");
  std::vector<DecoderStep> steps;
  for_each_step(*decoder, "decoders",
                [&](const JsonObject& step) { steps.push_back(read_decoder_step(step)); });
  return steps;
}

}  // namespace tessera
