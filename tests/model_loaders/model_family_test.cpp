#include "model_loaders/model_family.h"

#include <gtest/gtest.h>

#include "tests/model_loaders/thrown_error.h"

namespace tessera {
namespace {

TEST(ModelFamily, IsFoundByItsType) {
  EXPECT_EQ(model_family("mistral").architecture, "MistralForCausalLM");
}

TEST(ModelFamily, NamesTheKnownOnes) {
  EXPECT_EQ(
      thrown_error([] { model_family("foo\x1b"); }).message,
      "unknown model type 'foo\\x1b'; known: llama mistral ministral ministral3 smollm3 granite "
      "seed_oss qwen2 qwen3 gemma2 gemma3_text phi3 olmo2 olmo3 exaone4 glm glm4 cohere cohere2");
}

}  // namespace
}  // namespace tessera
