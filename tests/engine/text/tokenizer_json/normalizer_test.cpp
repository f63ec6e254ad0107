#include "engine/text/tokenizer_json/normalizer.h"

#include <gmock/gmock.h>
#include <utf8proc.h>

#include <cstdlib>
#include <memory>
#include <random>
#include <string>

namespace tessera {
namespace {

using Kind = NormalizerStep::Kind;

std::string normalized(
    const std::vector<NormalizerStep>& steps, std::string_view text, const Pause& pause = [] {}) {
  TokenizerJson json;
  json.normalizer = steps;
  std::string storage;
  return std::string(Normalizer(json).apply(text, pause, storage));
}

std::string nfc_at_once(const std::string& text) {
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> composed(
      utf8proc_NFC(reinterpret_cast<const utf8proc_uint8_t*>(text.c_str())), &std::free);
  return reinterpret_cast<const char*>(composed.get());
}

TEST(Normalizer, ComposesLongTextsAsAWhole) {
  const std::vector<std::string> parts = {"a",          "e",       " ",      "word ",
                                          "é",          "\u0301",  "\u0327", "\u0301\u0327",
                                          "\u212b",     "“",       "\u2000", "中",
                                          "文。",       "\u1100",  "\u1161", "\u11a8",
                                          "가",         "\u304b",  "\u3099", "豈",
                                          "\U0001f600", "\u0958",  "\u093c", std::string(300, 'x'),
                                          "\u1f82",     "ǅ\u030c", "\u0b47", "\u0b3e"};
  std::mt19937 random(1);
  for (int i = 0; i < 3000; ++i) {
    std::string text;
    for (size_t n = random() % 400; n > 0; --n) text += parts[random() % parts.size()];
    ASSERT_EQ(normalized({{.kind = Kind::kNfc}}, text.empty() ? "x" : text),
              text.empty() ? "x" : nfc_at_once(text));
  }
}

TEST(Normalizer, EveryPairOfCharacters) {
  // What a mark composes with stands right before it, or before other marks.
  std::string text;
  for (const std::string_view mark : {"\u0301", "\u0338", "\u3099", "\u0327\u0301", "\u11a8"}) {
    for (char32_t code = 0x20; code < 0xA000; ++code) {
      utf8proc_uint8_t bytes[4];
      const auto size = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code), bytes);
      text.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
      text += mark;
    }
  }
  EXPECT_EQ(normalized({{.kind = Kind::kNfc}}, text), nfc_at_once(text));
}

TEST(Normalizer, PausesInLongTexts) {
  struct Stop {};
  const auto stop = [] { throw Stop(); };
  std::string accents;
  for (int i = 0; i < 10000; ++i) accents += "e\u0301 ";
  EXPECT_THROW(normalized({{.kind = Kind::kNfc}}, accents, stop), Stop);
  const NormalizerStep replace = {.kind = Kind::kReplace, .pattern = {.text = " "}, .content = "_"};
  EXPECT_THROW(normalized({replace}, accents, stop), Stop);
  EXPECT_EQ(normalized({replace}, "a b", stop), "a_b");
}

}  // namespace
}  // namespace tessera
