// The description that a config.json gives, for tests.
#pragma once

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "model_loaders/hf_config.h"

namespace tessera {

inline ModelConfig read_config(const std::string& text) {
  std::vector<std::string> warnings;
  ModelConfig config = read_hf_config(JsonObject::parse(text, "config.json"), false, warnings);
  EXPECT_THAT(warnings, testing::IsEmpty());
  return config;
}

}  // namespace tessera
