// Which steps compute in the last layer only what is sampled.
#include "engine/model/step_inputs.h"

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <vector>

#include "kernels/backend.h"

namespace tessera {
namespace {

constexpr int64_t kStepPageSize = 64;

class StepInputsTest : public testing::Test {
 protected:
  ForwardBatch prepare(const std::vector<TokenChunk>& step) {
    return inputs_.prepare(step, {}, backend_->operations());
  }
  // A sequence that decodes: every token but the newest has been computed.
  TokenChunk decode(int64_t length, std::span<const int32_t> pages) const {
    return {.tokens = tokens_,
            .block_table = pages,
            .begin = length - 1,
            .num_tokens = 1,
            .sampling = &params_};
  }
  TokenChunk prompt(int64_t length, std::span<const int32_t> pages,
                    const SamplingParams* sampling) const {
    return {.tokens = tokens_, .block_table = pages, .num_tokens = length, .sampling = sampling};
  }

  static StepLimits limits() { return {.max_tokens = 64, .max_sequences = 4, .context_size = 256}; }
  static Buffer allocate(Device& device) {
    Arena measure;
    StepInputs(measure, limits(), kStepPageSize);
    return device.allocate(measure.used_bytes(), "a test");
  }

  const std::vector<TokenId> tokens_ = std::vector<TokenId>(256, 7);
  const SamplingParams params_;
  std::unique_ptr<Backend> backend_ = make_cpu_backend(1);
  Buffer memory_ = allocate(backend_->device());
  Arena arena_{memory_};
  StepInputs inputs_{arena_, limits(), kStepPageSize};
};

TEST_F(StepInputsTest, OfPromptsOnlyTheLastTokensAreSampled) {
  const std::vector<int32_t> first = {0, 1, 2}, second = {3, 4, 5}, third = {6};
  const ForwardBatch batch =
      prepare({decode(130, first), decode(140, second), prompt(9, third, &params_)});
  EXPECT_EQ(batch.attention.shared.num_groups, 0);
  EXPECT_EQ(batch.sampled_attention.num_sequences, 3);
  EXPECT_EQ(batch.sampled_attention.num_decodes, 3);
  const Tensor& starts = batch.sampled_attention.query_starts;
  EXPECT_EQ(std::vector(starts.as<int32_t>(), starts.as<int32_t>() + starts.num_elements()),
            std::vector<int32_t>({0, 1, 2, 3}));
}

TEST_F(StepInputsTest, AllAreSampled) {
  const std::vector<int32_t> first = {0, 1, 2}, second = {3, 4, 5};
  EXPECT_EQ(prepare({decode(130, first), decode(140, second)}).sampled_attention.num_sequences, 0);
}

TEST_F(StepInputsTest, NoneIsSampled) {
  const std::vector<int32_t> pages = {0};
  EXPECT_EQ(prepare({prompt(20, pages, nullptr)}).sampled_attention.num_sequences, 0);
}

// The last layer reads a shared prefix once for all only where it computes whole steps.
TEST_F(StepInputsTest, WithASharedPrefixTheStepStaysWhole) {
  const std::vector<int32_t> first = {0, 1, 2}, second = {0, 1, 5}, third = {6};
  const ForwardBatch batch =
      prepare({decode(130, first), decode(140, second), prompt(9, third, &params_)});
  EXPECT_EQ(batch.attention.shared.num_groups, 1);
  EXPECT_EQ(batch.attention.shared.spared_tokens, 128);
  EXPECT_EQ(batch.sampled_attention.num_sequences, 0);
}

}  // namespace
}  // namespace tessera
