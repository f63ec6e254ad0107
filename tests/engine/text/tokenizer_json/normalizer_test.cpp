#include "engine/text/tokenizer_json/normalizer.h"

#include <gmock/gmock.h>
#include <utf8proc.h>

#include <cstdlib>
#include <memory>
#include <random>
#include <string>

#include "engine/text/tokenizer_json/young_characters.h"

namespace tessera {
namespace {

using NormalizerKind = NormalizerStep::Kind;

std::string normalized(
    const std::vector<NormalizerStep>& steps, std::string_view text, const Pause& pause = [] {}) {
  TokenizerJson json;
  json.normalizer = steps;
  std::string storage;
  return std::string(Normalizer(json).apply(text, pause, storage).text);
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
    ASSERT_EQ(normalized({{.kind = NormalizerKind::kNfc}}, text.empty() ? "x" : text),
              text.empty() ? "x" : nfc_at_once(text));
  }
}

TEST(Normalizer, EveryPairOfCharacters) {
  // What a mark composes with stands right before it, or before other marks.
  std::string text;
  for (const std::string_view mark : {"\u0301", "\u0338", "\u3099", "\u0327\u0301", "\u11a8"}) {
    for (char32_t code = 0x20; code < 0xA000; ++code) {
      if (is_among(kYoungMarks, code)) continue;
      utf8proc_uint8_t bytes[4];
      const auto size = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code), bytes);
      text.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
      text += mark;
    }
  }
  EXPECT_EQ(normalized({{.kind = NormalizerKind::kNfc}}, text), nfc_at_once(text));
}

std::string at_once(const std::string& text, int options) {
  utf8proc_uint8_t* mapped = nullptr;
  const auto bytes = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                  static_cast<utf8proc_ssize_t>(text.size()), &mapped,
                                  static_cast<utf8proc_option_t>(UTF8PROC_STABLE | options));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(mapped, &std::free);
  return {reinterpret_cast<const char*>(mapped), static_cast<size_t>(bytes)};
}

TEST(Normalizer, OtherFormsOfLongTextsAreThoseOfTheWhole) {
  std::string text;
  std::mt19937 random(2);
  const std::vector<std::string> parts = {"a",      "é",      "\u0301", "\u0327", "ﬁ", "\uff21",
                                          "\u1e9b", "\u0323", "中",     "가",     " ", "\u3000",
                                          "\u1161", "\u1100", "½",      "word ",  "Ω", "\u00a8"};
  for (int i = 0; i < 20000; ++i) text += parts[random() % parts.size()];
  EXPECT_EQ(normalized({{.kind = NormalizerKind::kNfd}}, text), at_once(text, UTF8PROC_DECOMPOSE));
  EXPECT_EQ(normalized({{.kind = NormalizerKind::kNfkc}}, text),
            at_once(text, UTF8PROC_COMPOSE | UTF8PROC_COMPAT));
  EXPECT_EQ(normalized({{.kind = NormalizerKind::kNfkd}}, text),
            at_once(text, UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT));
}

// A time that grows with the square would be hours.
TEST(Normalizer, AMillionMarksInARowAreSorted) {
  std::string text = "a";
  std::string expected = "a";
  for (int i = 0; i < 500'000; ++i) text += "\u0301\u0327";
  for (int i = 0; i < 500'000; ++i) expected += "\u0327";
  for (int i = 0; i < 500'000; ++i) expected += "\u0301";
  EXPECT_EQ(normalized({{.kind = NormalizerKind::kNfd}}, text), expected);
  expected.replace(0, 1, "");
  EXPECT_EQ(normalized({{.kind = NormalizerKind::kNfc}}, text),
            "á" + expected.substr(0, 1'000'000) + expected.substr(1'000'002));
}

// As the tokenizers library leaves them, whose tables are older.
TEST(Normalizer, YoungCharactersStayAsTheyAre) {
  EXPECT_EQ(normalized({{.kind = NormalizerKind::kNfkc}}, "Å\u32ffﬁ\U0001e030"),
            "Å\u32fffi\U0001e030");
  EXPECT_EQ(normalized({{.kind = NormalizerKind::kNfkd}}, "\U00011938"), "\U00011938");
  EXPECT_EQ(normalized({{.kind = NormalizerKind::kStripAccents}}, "a\u0afd\u0acd\u1cf2"),
            "a\u0afd");
}

// To the library they have no order among marks, and nothing composes across them.
TEST(Normalizer, YoungMarksStayWhereTheyAre) {
  EXPECT_EQ(normalized({{.kind = NormalizerKind::kNfc}}, "A\u0899\u0301"), "A\u0899\u0301");
  EXPECT_EQ(normalized({{.kind = NormalizerKind::kNfc}}, "A\u0898\u0323\u0301"),
            "A\u0898\u0323\u0301");
  EXPECT_EQ(normalized({{.kind = NormalizerKind::kNfd}}, "á\u0898\u0323"), "a\u0301\u0898\u0323");
  EXPECT_EQ(normalized({{.kind = NormalizerKind::kNfkc}}, "ﬁ\u0301\U0001e130\u0323\u0301"),
            "fí\U0001e130\u0323\u0301");
}

TEST(Normalizer, KnowsWhatStandsForTheFirstCharacter) {
  const auto first = [](const std::vector<NormalizerStep>& steps, std::string_view text) {
    TokenizerJson json;
    json.normalizer = steps;
    std::string storage;
    const Normalized result = Normalizer(json).apply(
        text, [] {}, storage);
    return std::string(result.text.substr(0, result.first_bytes));
  };
  const auto replace = [](const std::string& pattern, const std::string& content) {
    return NormalizerStep{.kind = NormalizerKind::kReplace,
                          .pattern = {.text = pattern, .is_regex = true},
                          .content = content};
  };
  EXPECT_EQ(first({}, "éa"), "é");
  EXPECT_EQ(first({{.kind = NormalizerKind::kStrip}}, "a"), "a");
  EXPECT_EQ(first({{.kind = NormalizerKind::kStrip}}, " a"), "");
  EXPECT_EQ(
      first({{.kind = NormalizerKind::kStrip}, {.kind = NormalizerKind::kPrepend, .content = "x"}},
            " a"),
      "");
  EXPECT_EQ(first({{.kind = NormalizerKind::kPrepend, .content = "x"}}, "ab"), "xa");
  EXPECT_EQ(first({{.kind = NormalizerKind::kPrepend, .content = "x"}, replace("x", "")}, "ab"),
            "a");
  EXPECT_EQ(first({{.kind = NormalizerKind::kStripAccents}}, "\u0301a"), "");
  EXPECT_EQ(first({{.kind = NormalizerKind::kLowercase}}, "İb"), "i\u0307");
  EXPECT_EQ(first({{.kind = NormalizerKind::kNfc}}, "e\u0301\u0323a"), "ẹ");
  EXPECT_EQ(first({{.kind = NormalizerKind::kNfkc}, replace("fi", "x")}, "ﬁa"), "x");
  EXPECT_EQ(first({{.kind = NormalizerKind::kNfd}, replace("e", "")}, "éa"), "\u0301");
  EXPECT_EQ(first({replace(" +", "x")}, " a"), "x");
  EXPECT_EQ(first({replace(" +", "x")}, "  a"), "") << "x stands for the second space";
  EXPECT_EQ(first({replace(" +", "")}, " a"), "");
  EXPECT_EQ(first({replace("(?=a)", "b")}, "abc"), "ba");
  EXPECT_EQ(first({replace("a", "bc"), replace("cb", "x")}, "ab"), "b");
}

TEST(Normalizer, LettersMarksAndWhiteSpace) {
  EXPECT_EQ(normalized({{.kind = NormalizerKind::kLowercase}}, "ÀΣ AZ[`İſ中Ⅷ"), "àσ az[`i̇ſ中ⅷ");
  EXPECT_EQ(normalized({{.kind = NormalizerKind::kStripAccents}}, "e\u0301é\u093f\u20e3x"), "eéx");
  EXPECT_EQ(normalized({{.kind = NormalizerKind::kStrip}}, "\u3000\t a\u2028b \u0085"), "a\u2028b");
  EXPECT_EQ(normalized({{.kind = NormalizerKind::kStrip, .strips_left = false}}, " a "), " a");
  EXPECT_EQ(normalized({{.kind = NormalizerKind::kStrip, .strips_right = false}}, " a "), "a ");
  EXPECT_EQ(normalized({{.kind = NormalizerKind::kStrip}}, " \n "), "");
}

TEST(Normalizer, LettersOfLongTextsPause) {
  std::string text;
  for (int i = 0; i < 500'000; ++i) text += "中";
  for (const NormalizerKind kind : {NormalizerKind::kLowercase, NormalizerKind::kStripAccents}) {
    int num_pauses = 0;
    EXPECT_EQ(normalized({{.kind = kind}}, text, [&] { ++num_pauses; }), text);
    EXPECT_GT(num_pauses, 10);
  }
}

TEST(Normalizer, NoStepShrinksMoreThanItSays) {
  const auto most = [](const std::vector<NormalizerStep>& steps) {
    TokenizerJson json;
    json.normalizer = steps;
    return Normalizer(json).max_shrinking();
  };
  EXPECT_EQ(most({}), 1);
  EXPECT_EQ(most({{.kind = NormalizerKind::kNfd}, {.kind = NormalizerKind::kLowercase}}), 9);
  EXPECT_EQ(most({{.kind = NormalizerKind::kStrip}}), std::nullopt);
  EXPECT_EQ(most({{.kind = NormalizerKind::kStripAccents}}), std::nullopt);
  for (const NormalizerKind kind :
       {NormalizerKind::kNfc, NormalizerKind::kNfd, NormalizerKind::kNfkc, NormalizerKind::kNfkd,
        NormalizerKind::kLowercase}) {
    TokenizerJson json;
    json.normalizer = {{.kind = kind}};
    const Normalizer normalizer(json);
    const int64_t limit = *normalizer.max_shrinking();
    const Pause no_pause = [] {};
    for (utf8proc_int32_t code = 1; code < 0x110000; ++code) {
      if (code >= 0xD800 && code < 0xE000) continue;
      utf8proc_uint8_t bytes[4];
      const auto size = utf8proc_encode_char(code, bytes);
      const std::string text(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
      std::string storage;
      const std::string_view changed = normalizer.apply(text, no_pause, storage).text;
      if (std::ssize(changed) * limit < size) FAIL() << code;
    }
  }
}

TEST(Normalizer, PausesInLongTexts) {
  struct Stop {};
  const auto stop = [] { throw Stop(); };
  std::string accents;
  for (int i = 0; i < 10000; ++i) accents += "e\u0301 ";
  EXPECT_THROW(normalized({{.kind = NormalizerKind::kNfc}}, accents, stop), Stop);
  NormalizerStep replace = {.kind = NormalizerKind::kReplace};
  replace.pattern.text = " ";
  replace.content = "_";
  EXPECT_THROW(normalized({replace}, accents, stop), Stop);
  EXPECT_EQ(normalized({replace}, "a b", stop), "a_b");
}

}  // namespace
}  // namespace tessera
