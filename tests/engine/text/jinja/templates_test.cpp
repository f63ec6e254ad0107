// Templates in the manner of real ones, against what Jinja2 makes of them (make_expected.py).
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "engine/text/jinja/json_value.h"
#include "engine/text/jinja/template.h"
#include "kernels/tensor/check.h"
#include "tests/source_folder.h"

namespace tessera::jinja {
namespace {

std::string read_file(const std::string& name) {
  std::ifstream file(source_folder() / "tests/engine/text/jinja" / name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(JinjaTemplates, PrintWhatJinja2Prints) {
  const auto cases = nlohmann::ordered_json::parse(read_file("expected.json"));
  EXPECT_GE(cases.size(), 132u);
  for (const auto& test : cases) {
    SCOPED_TRACE(test["template"].get<std::string>() + " " +
                 test["conversation"].get<std::string>());
    const Template parsed(read_file("templates/" + test["template"].get<std::string>() + ".jinja"));
    const Value variables = value_of_json(test["variables"]);
    if (test.contains("error")) {
      EXPECT_THROW(parsed.render(*variables.as_dict()), Error);
    } else {
      EXPECT_EQ(parsed.render(*variables.as_dict()).bytes(), test["text"].get<std::string>());
    }
  }
}

}  // namespace
}  // namespace tessera::jinja
