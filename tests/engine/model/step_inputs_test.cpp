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

  static std::vector<int32_t> values(const Tensor& tensor) {
    return {tensor.as<int32_t>(), tensor.as<int32_t>() + tensor.num_elements()};
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
  EXPECT_EQ(values(batch.sampled_attention.query_starts), std::vector<int32_t>({0, 1, 2, 3}));
}

TEST_F(StepInputsTest, AllAreSampled) {
  const std::vector<int32_t> first = {0, 1, 2}, second = {3, 4, 5};
  EXPECT_EQ(prepare({decode(130, first), decode(140, second)}).sampled_attention.num_sequences, 0);
}

TEST_F(StepInputsTest, NoneIsSampled) {
  const std::vector<int32_t> pages = {0};
  EXPECT_EQ(prepare({prompt(20, pages, nullptr)}).sampled_attention.num_sequences, 0);
}

// So that steps, one after the other, have tensors of the same shapes.
TEST_F(StepInputsTest, TablesOfFewSequencesHaveAMultipleOfEightPages) {
  const StepLimits limits = {.max_tokens = 300, .max_sequences = 300, .context_size = 640};
  Arena measure;
  StepInputs(measure, limits, kStepPageSize);
  const Buffer memory = backend_->device().allocate(measure.used_bytes(), "a test");
  Arena arena(memory);
  StepInputs inputs(arena, limits, kStepPageSize);
  const std::vector<TokenId> tokens(640, 7);
  const std::vector<int32_t> pages(10);
  const auto table_pages = [&](int64_t length, size_t num_sequences) {
    const TokenChunk decode = {.tokens = tokens,
                               .block_table = pages,
                               .begin = length - 1,
                               .num_tokens = 1,
                               .sampling = &params_};
    const std::vector<TokenChunk> step(num_sequences, decode);
    return inputs.prepare(step, {}, backend_->operations()).attention.block_tables.dim(1);
  };
  EXPECT_EQ(table_pages(1, 1), 8);
  EXPECT_EQ(table_pages(512, 256), 8);
  EXPECT_EQ(table_pages(513, 1), 10) << "as many as a context has";
  EXPECT_EQ(table_pages(129, 257), 3) << "many sequences";
}

// Of two prompts beside decodes with a prefix, the first goes on in the next step.
TEST_F(StepInputsTest, TheLastLayerReadsASharedPrefixOnceToo) {
  const std::vector<int32_t> first = {0, 1, 2}, second = {0, 1, 5}, third = {6}, fourth = {7};
  const ForwardBatch batch = prepare({decode(130, first), decode(140, second),
                                      prompt(20, third, nullptr), prompt(9, fourth, &params_)});
  EXPECT_EQ(batch.attention.num_decodes, 2);
  EXPECT_EQ(values(batch.attention.shared.group_starts), std::vector<int32_t>({0, 2}));
  EXPECT_EQ(values(batch.attention.shared.own_begins), std::vector<int32_t>({128, 128}));
  const AttentionBatch& sampled = batch.sampled_attention;
  EXPECT_EQ(sampled.num_decodes, 4);
  EXPECT_EQ(sampled.shared.num_groups, 2);
  EXPECT_EQ(sampled.shared.spared_tokens, 128);
  EXPECT_EQ(values(sampled.query_starts), std::vector<int32_t>({0, 1, 2, 2, 3}));
  EXPECT_EQ(values(sampled.shared.group_starts), std::vector<int32_t>({0, 2, 3}));
  EXPECT_EQ(values(sampled.shared.lengths), std::vector<int32_t>({128, 0}));
  EXPECT_EQ(values(sampled.shared.own_begins), std::vector<int32_t>({128, 128, 0, 0}));
}

// Then rows of queries are not the decodes' in order.
TEST_F(StepInputsTest, TheStepStaysWholeWhereADecodeThatSharesDrawsNothing) {
  const std::vector<int32_t> first = {0, 1, 2}, second = {0, 1, 5}, third = {6};
  TokenChunk in_prompt = decode(140, second);
  in_prompt.sampling = nullptr;
  const ForwardBatch batch = prepare({decode(130, first), in_prompt, prompt(9, third, &params_)});
  EXPECT_EQ(batch.attention.shared.num_groups, 1);
  EXPECT_EQ(batch.sampled_attention.num_sequences, 0);
}

}  // namespace
}  // namespace tessera
