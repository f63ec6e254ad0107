// Regular expressions that Oniguruma and PCRE2 read differently: the words are those that the
// tokenizers library divides the text into.
#include "engine/text/tokenizer_json/regex_translation.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "engine/text/tokenizer_json/pattern.h"
#include "tests/engine/error_of.h"

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> matches_of(const std::string& regex, const std::string& text) {
  const Pattern pattern({.text = regex, .is_regex = true}, "somewhere");
  PatternMatches matches(pattern, text);
  std::vector<std::string> found;
  while (const auto match = matches.next()) {
    found.push_back(text.substr(match->begin, match->end - match->begin));
  }
  return found;
}

std::string regex_refusal(const std::string& regex) {
  return error_of([&] { translate_regex(regex, "somewhere"); }).what();
}

TEST(RegexTranslation, APlusBehindAnIntervalRepeatsIt) {
  EXPECT_THAT(matches_of(R"(\p{N}{1,3}+)", "1234567 89"), ElementsAre("1234567", "89"));
  EXPECT_THAT(matches_of("a{2}+", "aaaaab"), ElementsAre("aaaa"));
  EXPECT_THAT(matches_of("a{2,}+a", "aaaa"), ElementsAre("aaaa"));
  EXPECT_THAT(matches_of("(?:a|b){2}+", "ababa"), ElementsAre("abab"));
  EXPECT_THAT(matches_of("(x)[ab]{2}+", "xababa"), ElementsAre("xabab"));
  EXPECT_THAT(matches_of(R"(\s{2}+)", "a     b"), ElementsAre("    "));
  EXPECT_THAT(matches_of(R"(\x{61}{2}+)", "aaaaa"), ElementsAre("aaaa"));
  EXPECT_THAT(matches_of("aé{2}+", "aééééé"), ElementsAre("aéééé"));
  EXPECT_THAT(matches_of("a{1,2}+?b", "aaaab"), ElementsAre("aaaab"));
}

TEST(RegexTranslation, AQuestionMarkBehindOneNumberMakesItOptional) {
  EXPECT_THAT(matches_of("xa{2}?", "xaax"), ElementsAre("xaa", "x"));
  EXPECT_THAT(matches_of("xa{1,2}?", "xaax"), ElementsAre("xa")) << "as few as may be";
  EXPECT_THAT(matches_of("xa{1,}?", "xaa"), ElementsAre("xa"));
}

TEST(RegexTranslation, OtherQuantifiersGiveNothingBack) {
  EXPECT_THAT(matches_of("a?+a", "aab"), ElementsAre("aa"));
  EXPECT_THAT(matches_of("a++b|.", "aac"), ElementsAre("a", "a", "c"));
  EXPECT_THAT(matches_of(R"([^\r\n\p{L}\p{N}]?+\p{L}++)", "a bc"), ElementsAre("a", " bc"));
}

TEST(RegexTranslation, BracesThatAreNoIntervalStandForThemselves) {
  EXPECT_THAT(matches_of("a{x}", "a{x}"), ElementsAre("a{x}"));
  EXPECT_THAT(matches_of("a{1", "a{1"), ElementsAre("a{1"));
  EXPECT_THAT(matches_of("{+", "a{{"), ElementsAre("{{"));
  EXPECT_THAT(matches_of("{{2}+", "{{{{{"), ElementsAre("{{{{"));
}

TEST(RegexTranslation, ContractionsMatchInAnyCase) {
  EXPECT_THAT(matches_of("(?i:'s|'t|'re|'ve|'m|'ll|'d)S?", "'sS'LL'ſ's"),
              ElementsAre("'sS", "'LL", "'ſ", "'s"));
  EXPECT_THAT(matches_of("'(?i:[sdmt]|ll|ve|re)ss", "'Sss'LLSS"), ElementsAre("'Sss"));
  EXPECT_THAT(matches_of("(?i)a|’b", "aA’B"), ElementsAre("a", "A", "’B"));
}

TEST(RegexTranslation, RefusesWhereCaseDoesNotMatterWhatIsReadDifferently) {
  EXPECT_THAT(regex_refusal("a(?i)b|c"),
              HasSubstr("(?i) behind its beginning at byte 1, which is not"));
  EXPECT_THAT(regex_refusal("(?:(?i)a|b)"), HasSubstr("(?i) behind its beginning"));
  EXPECT_THAT(regex_refusal("x(?i:sS)"), HasSubstr("has sS where case does not matter at byte 6"));
  for (const char* const regex :
       {"(?i)s(?:s)", "(?i)fi", "(?i)st", "(?i)ß", "(?i)[ß]", "(?i)[!-…]", R"((?i)\x{df})",
        R"((?i)\ß)", R"((?i)\p{Lu})", R"((?i)\P{Ll})", R"((?i)[\p{Lt}])", R"((?i)[^\p{L}])",
        R"((?i)[\p{M}])", R"((?i)[\D])", "(?i:(a)ß)"}) {
    EXPECT_THAT(regex_refusal(regex), HasSubstr("where case does not matter")) << regex;
  }
}

}  // namespace
}  // namespace tessera
