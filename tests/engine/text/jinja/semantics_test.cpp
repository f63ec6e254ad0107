// What expressions and tags mean. Expected texts: Jinja2 with the settings of Hugging Face.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/text/jinja/template_cases.h"

namespace tessera::jinja {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(JinjaSemantics, WhiteSpaceAroundTags) {
  expect_all({{"  {% if true %}\n  a\n  {% endif %}\n\nb\n", "  a\n\nb"},
              {"a {%- if true -%}  x  {%- endif -%}   y", "axy"},
              {"a\n{# c #}\nb\n\n", "a\nb\n"},
              {"a\r\nb\r\n", "a\nb"},
              {"x {%+ if true %}y{% endif +%}\nz", "x y\nz"},
              {"  {%+ if true %}x{% endif %}", "  x"},
              {"{{ 'a' }}\n  {{- 'b' }}\n", "ab"},
              {"{% raw %}{{ x }} {% if %}{% endraw %}", "{{ x }} {% if %}"},
              {"{{ {'a': {'b': '}}'}}['a']['b'] }}", "}}"}});
}

// As in the template of Seed-OSS, which looks a budget up among those it knows.
TEST(JinjaSemantics, KeysOfDictsMayBeIntegers) {
  expect_all(
      {{"{% set d = {0: 'a', 512: 'b', '512': 'c'} %}{{ d[512] }}{{ d['512'] }}{{ d[false] }}"
        "{{ d[1] is defined }}{{ 0 in d }}{{ '0' in d }}{{ d.get(512) }} {{ d }}",
        "bcaFalseTrueFalseb {0: 'a', 512: 'b', '512': 'c'}"},
       {"{% for k, v in {1024: 1, 512: 2} | dictsort %}{{ k + 1 }}:{{ v }} {% endfor %}",
        "513:2 1025:1 "},
       {"{{ {2: 1, 10: [3]} | tojson(sort_keys=true) }}{{ {1: 'x', 1: 'y'} }}",
        R"({"2": 1, "10": [3]}{1: 'y'})"},
       {"{{ {1: 2} == {1: 2} }}{{ {1: 2} == {'1': 2} }}{{ {3: 4} | list }}{{ {3: 4} | first }}",
        "TrueFalse[3]3"}});
  EXPECT_THAT(failure("{{ {1.5: 2} }}"), HasSubstr("must be a string or an integer, got a float"));
}

TEST(JinjaSemantics, PrintedValues) {
  expect_all(
      {{"{{ none }}{{ true }}{{ False }}{{ nosuch }}", "NoneTrueFalse"},
       {"{{ d }} {{ l }} {{ (1,) }} {{ (1, 2) }}",
        "{'b': 1, 'a': [1, None, True, 2.5]} [1, 2, 3, 'a'] (1,) (1, 2)"},
       {"{{ 1.0 }} {{ 1e16 }} {{ 9e15 }} {{ 1e-5 }} {{ 0.1 + 0.2 }} {{ 1e22 }}",
        "1.0 1e+16 9000000000000000.0 1e-05 0.30000000000000004 1e+22"},
       {R"({{ ["it's", 'a"b', 'a"\'b', 'é\n\x01'] }})", R"(["it's", 'a"b', 'a"\'b', 'é\n\x01'])"},
       {R"({{ 'a\t\x41\u00e9\'\"\\ \q' }})", "a\tAé'\"\\ \\q"}});
}

// As markupsafe has it, also without any escaping of what a template writes.
TEST(JinjaSemantics, WhatIsAddedToSafeTextIsEscaped) {
  expect_all(
      {{"{% set x = '<b>' | safe %}{{ x }}{{ x + '<i>' }}{{ '\"' + x }}{{ 'q' + 'u&' }}",
        "<b><b>&lt;i&gt;&#34;<b>qu&"},
       {"{% set x = ('<' | safe) + \"'\" %}{{ x + '>' }}{{ x | trim + '&' }}{{ x[0] + '&' }}",
        "<&#39;&gt;<&#39;&amp;<&amp;"},
       {"{% set x = '<b' | safe %}{{ x[:1] + '&' }}{{ x * 2 + '&' }}{{ x | upper + '&' }}",
        "<&amp;<b<b&amp;<B&amp;"},
       {"{% set x = '<b' | safe %}{{ x ~ '<' }}{{ '&' ~ x + '&' }}{{ (x ~ 'a') + '<' }}",
        "<b<&<b&<ba<"},
       {"{{ ['<' | safe, \"it's\" | safe, ('a' | safe) ~ 'b'] }}",
        "[Markup('<'), Markup(\"it's\"), 'ab']"},
       {"{% for c in '<b' | safe %}{{ c + '&' }}{% endfor %}{{ ('<' | safe) | first + '&' }}",
        "<&b&<&"},
       {"{{ ('<b>' | safe) + 'plain' }}{{ ('<' | safe) == '<' }}", "<b>plainTrue"}});
}

TEST(JinjaSemantics, Operators) {
  expect_all(
      {{"{{ 1/2 }} {{ -7//2 }} {{ -7%3 }} {{ 7.5//2 }} {{ -7.5 % 2 }} {{ 2**10 }} {{ 2**-1 }}",
        "0.5 -4 2 3.0 0.5 1024 0.5"},
       {"{{ 1 < 2 < 3 }}{{ 1 == 1.0 }}{{ 'a' < 'b' }}{{ not 1 }}{{ 3 > 2 > 2 }}",
        "TrueTrueTrueFalseFalse"},
       {"{{ 'a' ~ 1 ~ none ~ [1] }}{{ 'a' 'b' }}{{ 'ab' * 2 }}{{ [1] + [2] }}",
        "a1None[1]ababab[1, 2]"},
       {"{{ 'x' in 'xyz' }}{{ 'q' not in d }}{{ 1 in l }}{{ 'b' in d }}{{ 1 in nosuch }}",
        "TrueTrueTrueTrueFalse"},
       {"{{ '' or 'x' }}{{ [] and 1 }}{{ 'y' if n else 'z' }}{{ 'q' if n }}", "x[]z"},
       {"{{ '%02d %s %5.2f|%-3s|' % (3, 'a', 1.5, 'b') }}", "03 a  1.50|b  |"}});
}

TEST(JinjaSemantics, ItemsAndSlices) {
  expect_all(
      {{"{{ l[::-1] }}{{ l[1:] }}{{ l[-2:] }}{{ l[5:] }}{{ l[3:0:-2] }}{{ l[::2] }}",
        "['a', 3, 2, 1][2, 3, 'a'][3, 'a'][]['a', 2][1, 3]"},
       {"{{ s[1:4] }}{{ s[-4] }}{{ s[::-1][:3] }}{{ s[99] }}|{{ l[9] is defined }}",
        "éll\n x |False"},
       {"{{ m[0].role }}{{ m[0]['role'] }}{{ m[-1].content.split('</think>')[-1] }}", "useruserB"},
       {"{{ d.get('x') }}{{ d.get('x', 4) }}{{ d.keys() | list }}{{ l.0 }}", "None4['b', 'a']1"},
       {"{{ d.a.3 }}{{ [[1, [2, 3]]].0.1.0 }}{{ 1.5 }}", "2.521.5"}});
}

TEST(JinjaSemantics, LoopsAndScopes) {
  expect_all(
      {{"{% set x = 1 %}{% for i in [1, 2] %}{{ x }}{% set x = 5 %}{{ x }}{% endfor %}{{ x }}",
        "15151"},
       {"{% set ns = namespace(a=1) %}{% for x in l %}{% set ns.a = ns.a + 1 %}{% endfor %}{{ ns.a "
        "}}",
        "5"},
       {"{% for x in l if x is number %}{{ loop.index }}/{{ loop.length }}{{ loop.last }} {% "
        "endfor %}",
        "1/3False 2/3False 3/3True "},
       {"{% for x in l %}{{ loop.previtem }}<{{ loop.revindex0 }}>{{ loop.nextitem }},{% endfor %}",
        "<3>2,1<2>3,2<1>a,3<0>,"},
       {"{% for k, v in d.items() %}{{ k }}{% else %}-{% endfor %}{% for x in [] %}{% else %}e{% "
        "endfor %}",
        "bae"},
       {"{% for x in l %}{% if x == 2 %}{% continue %}{% endif %}{% if x == 'a' %}{% break %}{% "
        "endif %}{{ x }}{% endfor %}",
        "13"},
       {"{% for a in [1, 2, 3] %}{{ loop.cycle('x', 'y') }}{{ loop is defined }}{% endfor %}{{ "
        "loop is defined }}",
        "xTrueyTruexTrueFalse"},
       {"{% set a, b = (1, 2) %}{{ b }}{{ a }}{% set q %}q{{ a }}{% endset %}{{ q }}", "21q1"}});
}

TEST(JinjaSemantics, MacrosAndBlocks) {
  expect_all(
      {{"{% macro f(a, b=2) %}{{ a }}-{{ b }};{% endmacro %}{{ f(1) }}{{ f(b=1, a=2) }}{{ f() }}",
        "1-2;2-1;-2;"},
       {"{% macro g() %}[{{ caller(3) }}]{% endmacro %}{% call(q) g() %}in{{ q }}{% endcall %}",
        "[in3]"},
       {"{% for x in 'ab' %}{% macro f(y) %}{{ y }}{{ x }}{{ loop.index }}{{ z }}{% endmacro %}"
        "{% set z = x %}{{ f('-') }}{% endfor %}{{ f is defined }}",
        "-a1a-b2bFalse"},
       {"{% macro g() %}{% macro f(y) %}[{{ y }}{{ caller() }}]{% endmacro %}{% call f(1) %}c{% "
        "endcall %}{% endmacro %}{{ g() }}{% set q %}{% macro h() %}h{% endmacro %}{{ h() }}{% "
        "endset %}{{ q }}",
        "[1c]h"},
       {"{% set b = 9 %}{% macro f(a=b, b=2) %}{{ a }}{{ b }};{% endmacro %}{{ f() }}{{ f(b=3) "
        "}}{{ f(4) }}{% macro g(b=b) %}{{ b }}.{% endmacro %}{{ g() }}{{ g(1) }}",
        "2;33;42;.1."},
       {"{% filter replace('a', 'b') | upper %}banana{% endfilter %}", "BBNBNB"},
       {"{% generation %}a{% endgeneration %}", "a"}});
}

TEST(JinjaSemantics, FiltersAndTests) {
  expect_all(
      {{"{{ d | tojson }}{{ 'a\"\\n</é>' | tojson }}",
        "{\"b\": 1, \"a\": [1, null, true, 2.5]}\"a\\\"\\n</é>\""},
       {"{{ {'b': [], 'a': {'c': 1}} | tojson(indent=2, sort_keys=true) }}",
        "{\n  \"a\": {\n    \"c\": 1\n  },\n  \"b\": []\n}"},
       {"{{ m | selectattr('role', 'equalto', 'user') | map(attribute='content') | join }}",
        " Hi "},
       {"{{ [3, 1] | sort }}{{ ['b', 'A'] | sort }}{{ [1, 1] | unique | list }}{{ d | dictsort | "
        "first }}",
        "[1, 3]['A', 'b'][1]('a', [1, None, True, 2.5])"},
       {"{{ 'a\\nb\\n\\nc' | indent(2) }}|{{ 'hi wo-rld' | title }}|{{ ' x\u3000' | trim }}|{{ s | "
        "length }}",
        "a\n  b\n\n  c|Hi Wo-Rld|x|15"},
       {"{{ '12' | int }}{{ 'x' | int(5) }}{{ 3.7 | int }}{{ '1.5' | float }}{{ 2.5 | round }}",
        "12531.52.0"},
       {"{{ nosuch | default('q') }}{{ '' | default('r', true) }}{{ none | default('z') }}",
        "qrNone"},
       {"{{ ' a  b '.split() }}{{ 'a,b,c'.split(',', 1) }}{{ 'xax'.strip('x') }}{{ "
        "'ab'.endswith(('x', 'b')) }}",
        "['a', 'b']['a', 'b,c']aTrue"},
       {"{{ d is mapping }}{{ s is iterable }}{{ n is none }}{{ 1 is boolean }}{{ 4 is divisibleby "
        "2 }}{{ 'a' is in 'ab' }}",
        "TrueTrueTrueFalseTrueTrue"},
       {"{{ range(1, 10, 3) | list }}{{ dict(a=1) }}", "[1, 4, 7]{'a': 1}"}});
}

TEST(JinjaSemantics, WhatIsUnknownFailsWhenItRuns) {
  EXPECT_EQ(run("{% if false %}{{ s | nofilter }}{{ s is notest }}{{ s.nomethod() }}{% endif %}ok"),
            "ok");
  EXPECT_EQ(failure("a\n {{ s | nofilter }}"),
            "chat template, line 2, column 9: there is no filter 'nofilter'");
  EXPECT_THAT(failure("{{ s is notest }}"), HasSubstr("there is no test 'notest'"));
  EXPECT_THAT(failure("{{ s.nomethod() }}"), HasSubstr("method 'nomethod'"));
  EXPECT_EQ(failure("a\n{{ [1, s.upper] }}"),
            "chat template, line 2, column 4: a list, dict or namespace cannot hold a function");
  EXPECT_EQ(failure("{% set x = namespace() %}\n {% set x.a = x %}"),
            "chat template, line 2, column 5: a list, dict or namespace cannot hold a namespace");
  EXPECT_THAT(failure("{{ l.append(1) }}"), HasSubstr("method 'append'"));
  EXPECT_THAT(failure("{{ nosuch.x }}"), HasSubstr("'nosuch' is undefined"));
  EXPECT_THAT(failure("{{ 'a' + 1 }}"), HasSubstr("cannot join a string and an integer"));
  EXPECT_THAT(failure("{{ raise_exception('no ' ~ i) }}"),
              HasSubstr("refuses this conversation: no -7"));
}

TEST(JinjaSemantics, WhatIsNoTemplateFailsWithItsPlace) {
  for (const char* const source :
       {"{% if x %}", "{{ x", "{{ 'x }}", "{% nosuch %}", "{{ x | }}", "{% endif %}", "{# x",
        "{{ (1 }}", "{% break %}", "{% for x %}{% endfor %}", "{{ 1 2 }}", "{% set 1 = 2 %}",
        "{{ x is a is b }}", "{{ 99999999999999999999 }}", "{{ '\\ud800' }}", "{% raw %}x"}) {
    EXPECT_THAT(error_of([&] { Template{source}; }).what(), StartsWith("chat template, line 1"))
        << source;
  }
}

}  // namespace
}  // namespace tessera::jinja
