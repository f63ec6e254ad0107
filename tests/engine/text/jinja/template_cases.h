// Templates over a few variables, and what they must print.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>

#include "engine/text/jinja/json_value.h"
#include "engine/text/jinja/template.h"
#include "tests/engine/error_of.h"

namespace tessera::jinja {

inline constexpr const char* kVariables = R"({
  "s": "héllo wörld\n x ", "l": [1, 2, 3, "a"], "d": {"b": 1, "a": [1, null, true, 2.5]},
  "m": [{"role": "user", "content": " Hi "}, {"role": "assistant", "content": "A</think>B"}],
  "n": null, "i": -7})";

inline std::string run(std::string_view source) {
  const Value variables = value_of_json(nlohmann::ordered_json::parse(kVariables));
  return Template(source).render(*variables.as_dict()).bytes();
}

inline std::string failure(std::string_view source) {
  return error_of([&] { run(source); }).what();
}

struct Case {
  const char* source;
  const char* expected;
};

inline void expect_all(std::initializer_list<Case> cases) {
  for (const Case& test : cases) EXPECT_EQ(run(test.source), test.expected) << test.source;
}

// Each with a part of its error.
inline void expect_failures(std::initializer_list<Case> cases) {
  for (const Case& test : cases) {
    EXPECT_THAT(failure(test.source), ::testing::HasSubstr(test.expected)) << test.source;
  }
}

}  // namespace tessera::jinja
