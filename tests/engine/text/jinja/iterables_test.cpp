// Loops, iterators, views of dicts and ranges. Expected texts: Jinja2 with the settings of Hugging
// Face.
#include "tests/engine/text/jinja/template_cases.h"

namespace tessera::jinja {
namespace {

// In a variable or as an argument they go on telling where the loop is.
TEST(JinjaIterables, LoopsAreValues) {
  expect_all({{"{% for a in l %}{% set outer = loop %}{% for b in 'xy' %}{{ outer.index }}{{ "
               "outer.revindex }}{{ outer.revindex0 }}{{ outer.previtem }}{{ outer.nextitem }}{{ "
               "outer.depth }}{{ outer.depth0 }}{{ loop.index }} {% endfor %}{% endfor %}",
               "1432101 1432102 23213101 23213102 3212a101 3212a102 4103101 4103102 "},
              {"{% macro f(x) %}{{ x.revindex }}{{ x.last }}{{ x['previtem'] }}{{ x.nosuch }};{% "
               "endmacro %}{% for a in l %}{{ f(loop) }}{% endfor %}",
               "4False;3False1;2False2;1True3;"},
              {"{% for a in [5, 6] %}{{ loop is mapping }}{{ loop is sequence }}{{ loop is "
               "iterable }}{{ loop is callable }}{{ loop | length }}{{ loop.cycle('p', 'q') }}{{ "
               "'y' if loop }} {% endfor %}",
               "FalseFalseTrueTrue2py FalseFalseTrueTrue2qy "},
              {"{% set ns = namespace(t='') %}{% for a in l %}{% set keep = loop %}{% for b in [1] "
               "%}{% set ns.t = ns.t ~ keep.index %}{% endfor %}{% endfor %}{{ ns.t }}",
               "1234"}});
}

// As the iterators of Python: filters that Jinja runs as late as it can give them. What only Python
// could tell is refused.
TEST(JinjaIterables, AreTrueAndSeenOnce) {
  expect_all(
      {{"{{ 'yes' if l | select('none') else 'no' }}{{ 'yes' if l | select('none') | list else "
        "'no' }}{{ 'yes' if [] | map('upper') }}{{ 'yes' if [] | unique }}{{ 'yes' if {} | items "
        "}}{{ 'yes' if [] | reverse }}{{ 'yes' if m | rejectattr('role') }}{{ not l | reject }}",
        "yesnoyesyesyesyesyesFalse"},
       {"{% set x = m | selectattr('role', 'equalto', 'user') %}{% for a in x %}{{ a.role }}{% "
        "endfor %}|{% for a in x %}{{ a.role }}{% else %}none{% endfor %}",
        "user|none"},
       {"{% set x = l | map('string') %}{{ x | list | length }}{{ x | list | length }}{{ x | first "
        "is defined }}{{ x | join }}",
        "40False"},
       {"{% set x = l | reject('string') %}{{ x | first }}{{ x | first }}{{ x | list }}", "12[3]"},
       {"{% set x = l | reverse %}{{ 2 in x }}{{ x | list }}{{ 2 in x }}", "True[1]False"},
       {"{% set x = l | unique %}{{ x[0] }}{{ x[0] is defined }}{{ x.foo is defined }}{{ x | list "
        "}}",
        "FalseFalse[1, 2, 3, 'a']"},
       {"{% set x = d | items %}{% for k, v in x %}{{ k }}{{ v }}{% endfor %}{% for k, v in x "
        "%}again{% endfor %}",
        "b1a[1, None, True, 2.5]"},
       {"{{ l | map('string') is sequence }}{{ l | map('string') is iterable }}{{ l | "
        "map('string') is mapping }}{{ l | reverse is string }}{{ 'abc' | reverse }}",
        "FalseTrueFalseFalsecba"},
       {"{% set x = l | select('number') %}{{ x is sameas x }}{{ x == x }}{{ x == [1, 2, 3] }}{% "
        "set a, b, c = x %}{{ a }}{{ b }}{{ c }}",
        "TrueTrueFalse123"},
       {"{{ l | map('string') | reverse | length }}{{ l | map('string') | sort | length }}{{ l | "
        "select('number') | sum }}{{ l | select('number') | max }}",
        "4463"},
       {"{% set ns = namespace(x=l | select('number')) %}{{ ns.x | list }}{{ ns.x | list }}{% set "
        "y = [l | select('string')] %}{{ y[0] | list }}{{ y[0] | list }}",
        "[1, 2, 3][]['a'][]"},
       {"{{ m | selectattr('role', 'equalto', 'user') | list | length }}{{ (m | selectattr('role', "
        "'equalto', 'user') | first).content }}{{ m | map(attribute='role') | join('+') }}",
        "1 Hi user+assistant"}});
  expect_failures(
      {{"{{ l | map('string') }}", "cannot print"},
       {"{{ [l | map('string')] }}", "cannot print"},
       {"{{ (l | select)[1:] }}", "has no slices"},
       {"{{ d.keys()[1:] }}", "has no slices"},
       {"{{ l | map('string') | length }}", "has no length"},
       {"{{ l | map('string') | tojson }}", "tojson: cannot print"},
       {"{{ (l | select) + [1] }}", "'+' cannot join"},
       {"{{ l | select | last }}", "has no last element"},
       {"{{ l | unique | string }}", "cannot print"},
       {"{{ 'x' ~ (l | reverse) }}", "cannot print"},
       {"{% set x = l | map('string') %}{% for a in x %}{% break %}{% endfor %}{{ x | list }}",
        "left before its end"},
       {"{% set x = l | map('string') %}{% set y = x | select %}{{ y | first }}{{ x | first }}",
        "left before its end"},
       {"{% set x = l | map('string') %}{% for a in x %}{{ x | list }}{% endfor %}",
        "left before its end"}});
}

TEST(JinjaIterables, ViewsOfDictsAreSeenWhole) {
  expect_all(
      {{"{% set x = d.items() %}{% for k, v in x %}{{ k }}{% endfor %}{% for k, v in x %}{{ v }}{% "
        "endfor %}{{ x | length }}{{ 'yes' if x }}{{ 'yes' if {}.items() else 'no' }}",
        "ba1[1, None, True, 2.5]2yesno"},
       {"{{ d.keys() | list }}{{ d.values() | first }}{{ d.keys() | last }}{{ 'b' in d.keys() }}{{ "
        "1 in d.values() }}{{ ('b', 1) in d.items() }}{{ d.keys() | sort }}{{ d.keys() | join }}",
        "['b', 'a']1aTrueTrueTrue['a', 'b']ba"},
       {"{{ d.keys()[0] is defined }}{{ d.keys()[0] }}{{ d.values() is sequence }}{{ d.values() is "
        "iterable }}{{ d.keys() == ['b', 'a'] }}{{ d.items() is mapping }}",
        "FalseFalseTrueFalseFalse"},
       {"{{ d.keys() | reverse | list }}{% for k in d.keys() | map('upper') %}{{ k }}{% endfor %}",
        "['a', 'b']BA"}});
  expect_failures({{"{{ d.items() }}", "cannot print"},
                   {"{{ d.items() | tojson }}", "tojson: cannot print"},
                   {"{{ [d.keys()] }}", "cannot print"},
                   {"{{ d.keys() + ['x'] }}", "'+' cannot join"},
                   {"{{ d.keys() == d.keys() }}", "views of dicts"}});
}

TEST(JinjaIterables, RangesHaveItemsAndSlices) {
  expect_all(
      {{"{{ range(5)[1] }}{{ range(5)[-1] }}{{ range(5)[1:3] | list }}{{ range(3) | length }}{{ 2 "
        "in range(3) }}{{ 'yes' if range(0) else 'no' }}{{ range(3) is sequence }}{{ range(3) == "
        "[0, 1, 2] }}{{ range(3) == range(0, 3) }}{{ range(4) | sum }}{{ range(3) | join }}",
        "14[1, 2]3TruenoTrueFalseTrue6012"}});
  expect_failures({{"{{ range(3) }}", "cannot print"},
                   {"{{ [range(3)] }}", "cannot print"},
                   {"{{ range(3) | tojson }}", "tojson: cannot print"},
                   {"{{ range(3) + [1] }}", "'+' cannot join"},
                   {"{{ range(3) * 2 }}", "'*' cannot join"},
                   {"{{ range(2) | string }}", "cannot print"}});
}

}  // namespace
}  // namespace tessera::jinja
