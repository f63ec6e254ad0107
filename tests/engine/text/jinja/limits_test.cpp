// Templates that would never end, or take all memory or stack.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "engine/text/jinja/template.h"
#include "tests/engine/error_of.h"
#include "tests/repeated.h"
#include "tests/sanitized.h"

namespace tessera::jinja {
namespace {

// Of this process until now, with the libraries that it has loaded.
[[maybe_unused]] int64_t peak_memory_kib() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

std::string nested_loops() {
  return repeated("{% for x in range(1000) %}", 8) + "x" + repeated("{% endfor %}", 8);
}

std::string deep_values(std::string_view wrap) {
  return "{% set ns = namespace(x=[]) %}{% for i in range(100000) %}{% set ns.x = " +
         std::string(wrap) + " %}{% endfor %}{{ ns.x }}";
}

TEST(JinjaLimits, HostileTemplatesEndInAnError) {
  const std::string doubling =
      "{% set ns = namespace(x='ab') %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}"
      "{% endfor %}";
  const std::string templates[] = {
      "{{ range(10**9) | list }}",
      "{{ 'a' * 10**10 }}",
      "{{ [1] * 10**10 }}",
      "{{ '%999999999d' % 1 }}",
      "{{ 'x' | indent(10**9) }}",
      "{{ 10 ** 10 ** 10 }}",
      nested_loops(),
      doubling,
      "{% set ns = namespace(x='ab') %}{% for i in range(99) %}{% set ns.x = ns.x ~ ns.x %}"
      "{% endfor %}",
      "{% set ns = namespace(x='ab') %}{% for i in range(99) %}{% set ns.x = "
      "ns.x.replace('a', 'aaaaaaaa') %}{% endfor %}",
      "{% for i in range(100000) %}{{ 'x' * 4000 }}{% endfor %}",
      "{% for i in range(100000) %}{% set x = 'x' * 4000000 %}{% endfor %}",
      "{% for i in range(100000) %}{{ range(100000) | sum }}{% endfor %}",
      "{% for i in range(100000) %}{{ ('a' * 100000) in ('a' * 99999) }}{% endfor %}",
      "{% set x = 'a' * 4000000 %}{% for i in range(100000) %}{{ x | length }}{% endfor %}",
      "{% set x = 'a' * 4000000 %}{% for i in range(100000) %}{{ x == x ~ '' }}{% endfor %}",
      "{{ range(100000) | unique | list | length }}",
      "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
      "{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}",
      deep_values("[ns.x]"),
      deep_values("{'a': ns.x}"),
      deep_values("[ns.x, ns.x]"),
      "{% set ns = namespace() %}{% set ns.a = ns %}",
      "{{ " + repeated("(", 5000) + "1" + repeated(")", 5000) + " }}",
      "{{ " + repeated("[", 5000),
      "{{ " + repeated("not ", 5000) + "1 }}",
      "{{ " + repeated("-", 5000) + "1 }}",
      "{{ 1" + repeated(" + 1", 5000) + " }}",
      "{{ x" + repeated(".x", 5000) + " }}",
      "{{ x" + repeated("|x", 5000) + " }}",
      "{{ 1" + repeated(" if 1 else 1", 5000) + " }}",
      repeated("{% if 1 %}", 5000),
      "{% if 1 %}" + repeated("{% elif 1 %}", 5000) + "{% endif %}",
      "{% set " + repeated("(", 5000),
      std::string(300 << 10, 'x'),
  };
  const Dict variables;
  const int64_t before = peak_memory_kib();
  for (const std::string& source : templates) {
    EXPECT_THROW(Template(source).render(variables), Error) << source.substr(0, 90);
  }
  if (kIsSanitized) return;  // what was freed is kept
  EXPECT_LT(peak_memory_kib() - before, 200 << 10);
}

TEST(JinjaLimits, LongWorkPauses) {
  struct Stop {};
  const Pause stop = [] { throw Stop(); };
  Dict variables;
  variables.set(Value(Text("long", Origin::kData)), Value(Text(repeated("a ", 1 << 20), {})));
  for (const std::string& source : {nested_loops(), std::string("{{ '[' + long | trim + ']' }}")}) {
    EXPECT_THROW(Template(source).render(variables, stop), Stop) << source;
  }
  EXPECT_EQ(Template("{{ 1 + 1 }}").render(variables, stop).bytes(), "2");
}

}  // namespace
}  // namespace tessera::jinja
