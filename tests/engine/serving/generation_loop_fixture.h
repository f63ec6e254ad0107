// A loop over a runner without a model, for tests.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <memory>
#include <optional>
#include <string_view>

#include "engine/serving/generation_loop.h"
#include "tests/engine/serving/byte_tokenizer.h"
#include "tests/engine/serving/fake_runner.h"

namespace tessera {

inline constexpr int64_t kPageSize = 16;
inline constexpr int64_t kNumPages = 8;

// Letters follow each other until "z", which ends an answer.
class GenerationLoopTest : public testing::Test {
 protected:
  void make_loop(bool runs_ahead, const StepLimits& limits = {
                                      .max_tokens = 64, .max_sequences = 2, .context_size = 100}) {
    loop_.emplace(
        runner_, pool_, *tokenizer_,
        LoopOptions{.limits = limits, .stop_tokens = {token_of('z')}, .runs_ahead = runs_ahead});
  }
  Sequence& submit(std::string_view prompt, const SamplingParams& params = {},
                   const GenerationCallbacks& callbacks = {}) {
    Sequence& sequence = loop_->create_sequence();
    loop_->submit(sequence, tokens_of(prompt), params, callbacks);
    return sequence;
  }
  void finish() {
    for (int i = 0; loop_->step(); ++i) ASSERT_LT(i, 1000) << "it never ends";
  }
  const GenerationResult& result(const Sequence& sequence) const {
    return loop_->generation(sequence)->result();
  }
  // All pages are free or in the table of a sequence.
  void expect_no_page_lost(std::initializer_list<const Sequence*> sequences) {
    int64_t held = 0;
    for (const Sequence* sequence : sequences) held += std::ssize(sequence->block_table());
    EXPECT_EQ(held + pool_.num_free_pages(), kNumPages);
  }

  std::unique_ptr<Tokenizer> tokenizer_ = load_byte_tokenizer();
  PagePool pool_{kNumPages, kPageSize};
  FakeRunner runner_{kPageSize};
  std::optional<GenerationLoop> loop_;
};

}  // namespace tessera
