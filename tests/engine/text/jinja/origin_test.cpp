// Which bytes of a text are the template's, after every operation on text.
#include <gtest/gtest.h>

#include "engine/text/jinja/json_value.h"
#include "engine/text/jinja/template.h"

namespace tessera::jinja {
namespace {

// What the template wrote of its own text, and "_" for every byte of data.
std::string template_bytes(std::string_view source) {
  const Value variables =
      value_of_json({{"u", "<s>ab,<s> c"}, {"l", {"<s>", "</s>"}}, {"d", {{"<k>", "<s>"}}}});
  const Text text = Template(source).render(*variables.as_dict());
  std::string shown;
  for (size_t i = 0; i < text.size(); ++i) {
    shown += text.origin_at(i) == Origin::kTemplate ? text.bytes()[i] : '_';
  }
  return shown;
}

TEST(JinjaOrigin, TextKeepsIt) {
  const std::pair<const char*, const char*> cases[] = {
      {"<s>{{ u }}</s>", "<s>___________</s>"},
      {"{{ '<' ~ u ~ '>' }}", "<___________>"},
      {"{{ '<' + u + '>' }}", "<___________>"},
      {"{{ '<%s>' % u }}", "<___________>"},
      {"{{ '<%s>' | format(u) }}", "<___________>"},
      {"{{ '<{}>{:<<13}'.format(u, u) }}", "<___________>___________<<"},
      {"{{ '<{a[0]}{b.x}>'.format(a=l, b={'x': u}) }}", "<______________>"},
      {"{{ ('<' ~ u[:1] ~ '{:' ~ u[:1] ~ '<3}').format('s') }}", "<_s__"},
      {"{{ u.split(',') | join('|') }}", "_____|_____"},
      {"{{ u.split(',')[0] }}{{ u.split()[1] }}{{ u.rsplit('<', 1)[1] }}", "__________"},
      {"{{ ('<s>' ~ u).split(',')[0] }}", "<s>_____"},
      {"{{ u | replace('b', '<s>') }}", "____<s>______"},
      {"{{ u.replace('<s>', '<') }}", "<___<__"},
      {"{{ '<s>x' | replace('x', u) }}", "<s>___________"},
      {"{{ u[3:] }}{{ u[::-1] }}{{ u[0] }}", "____________________"},
      {"{{ ('<s>' ~ u)[:4] }}", "<s>_"},
      {"{{ ('<s>' ~ u)[::-1] }}", "___________>s<"},
      {"{{ u.strip('<') }}{{ u.lstrip('<') }}{{ u | trim }}", "_______________________________"},
      {"{{ (' ' ~ u ~ ' ') | trim }}", "___________"},
      {"{{ u | upper }}{{ u | title }}{{ u | capitalize }}{{ u.lower() }}",
       "____________________________________________"},
      {"{{ u | tojson }}", "_____________"},
      {"{{ l | tojson }}{{ l }}{{ d }}", "____________________________________________"},
      {"{{ l | join }}{{ l | first }}{{ l | last }}{{ l | sort | join }}", "_____________________"},
      {"{{ d.keys() | join }}{{ d.items() | list }}{% for k in d %}{{ k }}{% endfor %}",
       "______________________"},
      {"{% macro f(x) %}<{{ x }}>{% endmacro %}{{ f(u) }}", "<___________>"},
      {"{% set x %}<{{ u }}>{% endset %}{{ x }}", "<___________>"},
      {"{% filter upper %}<s>{{ u }}{% endfilter %}", "<S>___________"},
      {"{{ u | indent(2, true) }}", "  ___________"},
      {"{% for c in u %}{{ c }}{% endfor %}{{ u | list | join }}", "______________________"},
      {"{{ u | default('x') }}{{ u or 'x' }}{{ u if u else 'x' }}{{ u | string | safe }}",
       "____________________________________________"},
      {"{{ u.removeprefix('<') }}{{ u.splitlines() | first }}{{ '<'.join(l) }}",
       "________________________<____"},
      {"{{ u | map('upper') | join }}{{ [u, '<s>'] | max }}{{ u | reverse }}",
       "_________________________________"},
      {"{% set ns = namespace(x=u) %}{{ ns.x }}{{ {'a': u}.a }}{{ dict(a=u)['a'] }}",
       "_________________________________"},
      {"{{ u | length }}{{ u == 'x' }}{{ u.find('a') }}", "11False3"},
  };
  for (const auto& [source, expected] : cases)
    EXPECT_EQ(template_bytes(source), expected) << source;
}

TEST(JinjaOrigin, NeighboursOfOneOriginAreOneRun) {
  Text text("<", Origin::kTemplate);
  text.append("s>", Origin::kTemplate);
  text.append("", Origin::kData);
  text.append("x", Origin::kData);
  ASSERT_EQ(text.runs().size(), 2u);
  EXPECT_EQ(text.runs()[0].end, 3u);
  EXPECT_EQ(text.slice(2, 4).runs().size(), 2u);
  EXPECT_TRUE(text.slice(2, 2).empty());
}

}  // namespace
}  // namespace tessera::jinja
