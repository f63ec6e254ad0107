#include "engine/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "kernels/tensor/check.h"
#include "tests/golden/golden_data.h"

namespace tessera {
namespace {

std::string problem_of(const EngineOptions& options) {
  try {
    validate(options);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(EngineOptions, EveryFieldIsChecked) {
  const EngineOptions good{.model = "somewhere"};
  EXPECT_EQ(problem_of(good), "");
  EXPECT_NE(problem_of(EngineOptions{}), "");
  const std::function<void(EngineOptions&)> changes[] = {
      [](auto& o) { o.context_size = -1; }, [](auto& o) { o.max_sequences = -1; },
      [](auto& o) { o.page_size = 0; },     [](auto& o) { o.page_size = 48; },
      [](auto& o) { o.page_size = 512; },   [](auto& o) { o.prefill_chunk = -1; },
      [](auto& o) { o.max_pages = -1; },    [](auto& o) { o.num_threads = -1; },
      [](auto& o) { o.cuda_index = -1; },   [](auto& o) { o.compute_dtype = DType::kFloat32; },
  };
  for (const auto& change : changes) {
    EngineOptions options = good;
    change(options);
    EXPECT_THAT(problem_of(options), testing::HasSubstr(", got "));
  }
}

TEST(EngineOptions, AContextLongerThanTheModelsIsRefusedWithTheModelsOwn) {
  const ModelFolder folder{.path = "some/model", .config = {.max_position_embeddings = 256}};
  EXPECT_NO_THROW(check_context_size({.context_size = 256}, folder));
  try {
    check_context_size({.context_size = 257}, folder);
    FAIL();
  } catch (const ContextSizeError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("257"));
    EXPECT_EQ(error.allowed(), "an integer in 0..256");
    EXPECT_THAT(error.hint(), testing::HasSubstr("some/model holds at most 256 tokens"));
  }
}

TEST(EngineOptions, AContextIsStretchedWhereThatIsAskedFor) {
  EngineOptions options = {.model = golden_folder("gqa_d64"), .context_size = 320};
  EXPECT_THROW(read_model_folder(options), ContextSizeError);
  options.rope_scaling = RopeScalingChoice::kAuto;
  const ModelFolder folder = read_model_folder(options);
  EXPECT_EQ(folder.config.max_position_embeddings, 320);
  ASSERT_TRUE(folder.config.stretch);
  EXPECT_EQ(folder.config.stretch->factor, 1.25);
  EXPECT_EQ(folder.warnings.size(), 1u);
  // The model's own context is not.
  options.context_size = 0;
  EXPECT_FALSE(read_model_folder(options).config.stretch);
}

}  // namespace
}  // namespace tessera
