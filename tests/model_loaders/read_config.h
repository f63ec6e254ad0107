// The description that a config.json gives, for tests.
#pragma once

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "model_loaders/hf_config.h"
#include "tests/model_loaders/thrown_error.h"

namespace tessera {

inline ModelConfig read_config(const std::string& text) {
  std::vector<std::string> warnings;
  ModelConfig config = read_hf_config(JsonObject::parse(text, "config.json"), false, warnings);
  EXPECT_THAT(warnings, testing::IsEmpty());
  return config;
}

// Of a model of this type; `keys` begin with a comma.
inline ModelConfig config_of_type(const std::string& model_type, const std::string& keys = "") {
  return read_config(R"({"model_type": ")" + model_type + '"' + keys + "}");
}

// Why such a model is refused.
inline std::string problem_of_type(const std::string& model_type, const std::string& keys) {
  return thrown_error([&] { config_of_type(model_type, keys); }).message;
}

}  // namespace tessera
