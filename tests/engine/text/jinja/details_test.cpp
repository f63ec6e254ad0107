// Details of Python and Jinja2 that show in what a template prints. Expected texts: Jinja2 with the
// settings of Hugging Face.
#include <utility>

#include "engine/text/jinja/characters.h"
#include "engine/text/sha256.h"
#include "tests/engine/text/jinja/template_cases.h"

namespace tessera::jinja {
namespace {

TEST(JinjaDetails, GenerationHasItsOwnNames) {
  expect_all({{"{% set x = 1 %}{% generation %}{% set x = 2 %}{{ x }}{% set y = 3 %}{% "
               "endgeneration %}{{ x }}{{ y is defined }}",
               "21False"},
              {"{% for a in [1, 2] %}{% generation %}{{ loop.index }}{{ a }}{% set a = 7 %}{% for "
               "b in 'xy' %}{% break %}{% endfor %}{% endgeneration %}{{ a }}{% endfor %}",
               "111222"},
              {"{% set ns = namespace(x=1) %}{% generation %}{% set ns.x = 2 %}{% endgeneration "
               "%}{{ ns.x }}",
               "2"}});
  expect_failures(
      {{"{% for a in [1] %}{% generation %}{% break %}{% endgeneration %}{% endfor %}",
        "outside of a loop"},
       {"{% for a in [1] %}{% generation %}{% continue %}{% endgeneration %}{% endfor %}",
        "outside of a loop"}});
}

TEST(JinjaDetails, ElseOfALoopWhoseRoundsNeverEnd) {
  expect_all(
      {{"{% for i in [1] %}{% break %}{% else %}b{% endfor %}{% for i in [1, 2] %}{% continue %}{% "
        "else %}c{% endfor %}{% for i in [1, 2] %}{% if i == 2 %}{% break %}{% endif %}{% else "
        "%}d{% endfor %}",
        "bc"}});
}

TEST(JinjaDetails, CharactersThatDoNotPrintAreEscaped) {
  expect_all({{"{{ ['a\\u200bb\\u00ad', '\\u2028\\u3000\\ue000', '\\ufeff\\u0085\\x7f', "
               "'\\U000e0001\\U0010ffff', '😀é́\\u0378'] }}",
               "['a\\u200bb\\xad', '\\u2028\\u3000\\ue000', '\\ufeff\\x85\\x7f', "
               "'\\U000e0001\\U0010ffff', '😀é́\\u0378']"},
              {"{{ {'\\u200e': '\\x00 \\x1b'} }}", "{'\\u200e': '\\x00 \\x1b'}"}});
}

TEST(JinjaDetails, FormatsCountCharacters) {
  expect_all(
      {{"{{ '%5s|%-8s|%5s' % ('é', '世界', 'héllos') }}{{ '%.2s|%.0s|%5.1s|%.9s' % ('éàü', 'a', "
        "'né', 'x') }}",
        "    é|世界      |hélloséà||    n|x"}});
}

// Unlike in C: a sign and no complement before hexadecimal digits, zeros also before "inf".
TEST(JinjaDetails, FormatsHavePythonsSigns) {
  expect_all(
      {{"{{ '%x|%X|%05x|%-5x|%#x|%#X|%8.4x' % (255, -255, -5, -5, -255, 255, -5) }}",
        "ff|-FF|-0005|-5   |-0xff|0XFF|   -0005"},
       {"{{ '%+x|% x|%#x|%x' % (5, 5, 0, -9223372036854775807 - 1) }}",
        "+5| 5|0x0|-8000000000000000"},
       {"{{ '%+05d|%.3d|%08.3d|%-05d|% d|%d|%i' % (3, -5, 7, 5, 5, true, -1.9) }}",
        "+0003|-005|00000007|5    | 5|1|-1"},
       {"{% set inf = 'inf' | float %}{{ '%06.2f|%+g|% e|%#.3g|%F|%.0f|%06f|%G' % (-2.5, 1e20, "
        "0, 1.0, 1, 2.5, inf, -inf) }}",
        "-02.50|+1e+20| 0.000000e+00|1.00|1.000000|2|000inf|-INF"}});
  expect_failures({{"{{ '%x' % 1.5 }}", "line 1, column 4: %: needs an integer, got a float"}});
}

TEST(JinjaDetails, MethodsOfText) {
  expect_all({{"{{ \"it's a\".title() }} {{ 'get_weather_v2'.title() }} {{ \"it's get_weather_v2\" "
               "| title }} {{ '1ab cD'.title() }}",
               "It'S A Get_Weather_V2 It's Get_weather_v2 1Ab Cd"},
              {"{{ '12'.isdigit() }}{{ '١'.isdigit() }}{{ '1é'.isdigit() }}{{ '一'.isdigit() }}{{ "
               "''.isdigit() }}{{ ' \\u3000'.isspace() }}",
               "TrueTrueFalseFalseFalseTrue"}});
  expect_failures({{"{{ '²'.isdigit() }}", "does not know"},
                   {"{{ 'ab'.startswith(['a']) }}", "needs a string"}});
}

TEST(JinjaDetails, TextsFormatTheirFields) {
  expect_all(
      {{"{{ '{}-{}'.format(1, 'é') }} "
        "{{ '{0}{1}{0}'.format('a', none) }} {{ '{a}{{}}'.format(a=[1, 'x']) }} "
        "{{ '{x[a]} {x[b][0]}{0[1]}'.format('ab', x={'a': true, 'b': [7]}) }}",
        "1-é aNonea [1, 'x']{} True 7b"},
       {"{{ '{:>5}|{:é<4}|{:^6}|{:.2}|{:05}|{:5}'.format('世', 'a', 'bc', 'éàü', 'b', true) }}",
        "    世|aééé|  bc  |éà|b0000|    1"},
       {"{{ '{:08.3f} {:+d} {:,} {:_x} {:>05} {:=+6}'.format(-3.14159, 7, -1234567, 1048576, 42, "
        "5) }} {{ '{:.1%} {:e} {:<012%}|{:012}'.format(0.256, 12345.678, 3.14159, -0.0) }}",
        "-003.142 +7 -1,234,567 10_0000 00042 +    5 25.6% 1.234568e+04 314.159000%0|"
        "-000000000.0"}});
  expect_failures({{"{{ '{}{0}'.format(1) }}", "have a number and others have none"},
                   {"{{ '{}'.format() }}", "format: has no argument 0"},
                   {"{{ '{a}'.format(1) }}", "format: has no argument 'a'"},
                   {"{{ '{0.a.b}'.format({}) }}", "'a' is undefined"},
                   {"{{ '}'.format(1) }}", "a single '}' in the format"},
                   {"{{ '{'.format(1) }}", "a single '{' in the format"},
                   {"{{ '{:d}'.format('a') }}", "a string has the format of a number"},
                   {"{{ '{:5}'.format(none) }}", "the format of none is not one for it"},
                   {"{{ '{:.2s}'.format(1) }}", "the format of an integer is not one for it"},
                   {"{{ '{!r}'.format(1) }}", "as !r, is not supported"},
                   {"{{ '{:{}}'.format(1, 2) }}", "a field within a field is not supported"},
                   {"{{ '{:2000}'.format(1) }}", "a number of the format is too large"},
                   {"{{ ('<' | safe).format() }}", "of a text that is safe is not supported"}});
}

TEST(JinjaDetails, LettersOfUnicodeHaveCases) {
  expect_all({{"{{ 'grüße ÀÉ \\u0390 ŉ \\ufb01 \\u1f80 \\u1f08 \\u0399 \\u03a5 \\u1e97 \\u0587' | "
               "upper }}",
               "GRÜSSE ÀÉ \u0399\u0308\u0301 \u02bcN FI \u1f08\u0399 \u1f08 \u0399 \u03a5 T\u0308 "
               "\u0535\u0552"},
              {"{{ 'ÄÖÜ ẞ İI ǅ' | lower }} {{ 'ΑΣ, Σ ΑΣΑ' | lower }} {{ \"Α'Σ ΑΣ'Α\".lower() }}",
               "äöü ß i\u0307i ǆ ας, σ ασα α'ς ασ'α"},
              {"{{ 'éCOLE ÇA' | capitalize }} {{ 'ǆ Σ ΑΣ'.capitalize() }} {{ 'äß世界'.upper() }}",
               "École ça ǅ σ ας ÄSS世界"},
              {"{{ 'ßa ﬁn ᾀ ǆa ŉ' | capitalize }}|{{ 'éa ÇA ﬁx-ßa (ΑΣ' | title }}|"
               "{{ \"éa ÇA ﬁx-ßa (ΑΣ ᾳ ᾷ ǆǄ it's\".title() }}",
               "Ssa ﬁn ᾀ ǆa ŉ|Éa Ça FIx-SSa (Ασ|Éa Ça Fix-Ssa (Ας ᾼ \u0391\u0342\u0345 ǅǆ It'S"},
              {"{{ ('<ab' | safe).title() + '&' }}", "<Ab&amp;"},
              {"{{ 'É' is upper }}{{ 'Éé' is upper }}{{ 'ǅ' is upper }}{{ 'ǅ' is lower }}"
               "{{ 'ª中' is lower }}{{ '中' is lower }}{{ 5 is upper }}{{ none is lower }}"
               "{{ true is lower }}{{ nosuch is upper }}{{ 'ÀB1 Ⅳ' is upper }}{{ '' is lower }}"
               "{{ ['A'] is upper }}",
               "TrueFalseFalseFalseTrueFalseFalseFalseFalseFalseTrueFalseTrue"}});
}

// The digests are those of Python 3.11; the ranges leave out blocks that newer tables add to.
TEST(JinjaDetails, EveryLetterHasTheCasesOfPython) {
  std::string text, letters;
  const std::pair<char32_t, char32_t> ranges[] = {
      {0x80, 0x1C80}, {0x1E00, 0x2500}, {0xFB00, 0xFB18}};
  for (const auto& [first, end] : ranges) {
    for (char32_t c = first; c < end; ++c) {
      std::string letter;
      append_utf8(letter, c);
      letters += letter;
      text += letter + " A" + letter + "Σ" + letter + "A ";
    }
  }
  const auto digest = [&](const std::string& letter_case) {
    return sha256(run("{{ '" + text + "' | " + letter_case + " }}"));
  };
  EXPECT_EQ(digest("upper"), "2671f1c62e45635b8659079ea1f745b59d4442333d7d834269ff49ea52f7121b");
  EXPECT_EQ(digest("lower"), "6e6a3f905223485f85345fcd3884c8cae96b01fdb051014de687f8d3972fe682");
  EXPECT_EQ(digest("title"), "5d8e8f4f7e26ee032ed69d40ae2b579ff0d143707ccf565d62d4dc6b5341c749");
  EXPECT_EQ(sha256(run("{{ '" + text + "'.title() }}")),
            "ce349147d7b26ec06f721d7346b041072b8131942ea34f8d076493ef2f9c2472");
  const auto digest_of_each = [&](const std::string& printed) {
    return sha256(run("{% for c in '" + letters + "' %}" + printed + "{% endfor %}"));
  };
  EXPECT_EQ(digest_of_each("{{ c | capitalize }} "),
            "f1c690a6bf40435cbf600300445f1d8f9164167bd1cb014bcbd5c30b45494dab");
  EXPECT_EQ(digest_of_each("{{ 1 if c is upper else 0 }}{{ 'l' if c is lower else '-' }}"),
            "877f4b7070616d8402b64c70cb9faf87b9265dcf087ce28762cc73f41217a482");
}

TEST(JinjaDetails, JsonMayBeAscii) {
  expect_all({{"{{ ['é😀\\x7f\\n\"', {'ü': 1}] | tojson(ensure_ascii=true) }}",
               R"(["\u00e9\ud83d\ude00\u007f\n\"", {"\u00fc": 1}])"},
              {"{{ 'é\\x7f' | tojson }}{{ 'é' | tojson(ensure_ascii=false) }}", "\"é\x7f\"\"é\""}});
}

TEST(JinjaDetails, WhiteSpaceIsThatOfUnicode) {
  expect_all(
      {{"a\u3000\u00a0\302\205{%- if true -%}\u2028\034 x \037\u3000{%- endif -%}\u00a0b", "axb"},
       {"\u3000\u00a0{% if true %}\n\u2003{% endif %}\nb", "b"},
       {"{%\u00a0if true\u3000%}x{%\u2003endif %}{{\u00a01\u3000}}", "x1"},
       {"{#-#}  x {#-#}\ny{#- c -#}  z{#+#}\n.{# c +#}\n.", "  xyz.\n."}});
}

TEST(JinjaDetails, NumbersInTexts) {
  expect_all({{"{{ '1_000' | int }} {{ '+-5' | int }} {{ '+5' | int }} {{ 'nan(1)' | float }} {{ "
               "'1__0' | int }} {{ '_1' | int }} {{ '1_' | int }} {{ '\\u30005\\u00a0' | int }} {{ "
               "'1_0.5' | float }} {{ 'inf' | float }} {{ 'inf' | int }}",
               "1000 0 5 0.0 0 0 0 5 10.5 inf 0"},
              {"{{ 15 | round(-1) }} {{ 25 | round(-1) }} {{ -15 | round(-1) }} {{ (-17) | "
               "round(-1) }} {{ 1234 | round(-2) }} {{ 5 | round(-30) }} {{ 15 | round }} {{ 2.5 | "
               "round(0, 'common') }}",
               "20 20 -20 -20 1200 0 15 2.0"},
              {"{{ 1e16 // 3 }} {{ 7.5 // 2 }} {{ -7.5 // 2 }} {{ 0.0 // -3 }} {{ 1.0 // 0.1 }} {{ "
               "6 // -0.4 }}",
               "3333333333333333.0 3.0 -4.0 -0.0 9.0 -15.0"}});
  expect_failures(
      {{"{{ '1e400' | float }}", "out of range"}, {"{{ '٣' | int }}", "digits of ASCII"}});
}

TEST(JinjaDetails, PowersAndZeros) {
  expect_all({{"{{ (-8) ** 2.0 }} {{ 0.0 ** 0 }} {{ (-2) ** -1 }} {{ 10 ** -400 }} {{ (1e308 * 10) "
               "** 2 }}",
               "64.0 1.0 -0.5 0.0 inf"},
              {"{{ -0.0 | abs }} {{ (0.0 * -1) | abs }} {{ -2.5 | abs }}", "0.0 0.0 2.5"}});
  expect_failures({{"{{ 0 ** -1 }}", "line 1, column 4: division by zero"},
                   {"{{ 0.0 ** -1.5 }}", "line 1, column 4: division by zero"},
                   {"{{ (-8) ** 0.5 }}", "line 1, column 5: this power is no real number"},
                   {"{{ 10.0 ** 400 }}", "line 1, column 4: this power is too large"}});
}

TEST(JinjaDetails, IdentityAndKeys) {
  expect_all({{"{{ {1: 'a'}[1.0] }}{{ 1.0 in {1: 'a'} }}{{ {1: 'a'}[1.5] is defined }}{{ {1: "
               "'a'}.get(1e300) }}{{ {1: 2} == {1.0: 2} if false }}",
               "aTrueFalseNone"},
              {"{{ [] is sameas [] }}{{ l is sameas l }}{{ d is sameas d }}{{ d is sameas {} }}{{ "
               "m[0] is sameas m[0] }}{{ none is sameas none }}{{ nosuch is callable }}{{ range is "
               "callable }}{{ l is callable }}",
               "FalseTrueTrueFalseTrueTrueTrueTrueFalse"},
              {"{{ ['É', 'é', 'e'] | unique | list }}{{ ['é', 'Éa', 'É'] | sort }}",
               "['É', 'e']['é', 'É', 'Éa']"},
              {"{{ ['İ', 'it', 'i\u0307'] | sort }}{{ ['ΑΣ', 'ας', 'ασ'] | unique | list }}"
               "{{ {'İ': 1, 'it': 2} | dictsort | first }}",
               "['it', 'İ', 'i̇']['ΑΣ', 'ασ']('it', 2)"}});
  expect_failures({{"{% macro f(a) %}{{ varargs }}{% endmacro %}{{ f(1) }}",
                    "varargs of macros are not supported"},
                   {"{% macro f(a) %}{{ kwargs }}{% endmacro %}{{ f(1) }}",
                    "kwargs of macros are not supported"},
                   {"{{ '\\N{DIGIT ONE}' }}", "not supported"},
                   {"{{ strftime_now('%f') }}", "not supported"}});
}

}  // namespace
}  // namespace tessera::jinja
