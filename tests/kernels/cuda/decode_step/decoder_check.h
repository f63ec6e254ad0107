// What the tests of the fused decode kernel share.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "tests/kernels/cuda/decode_step/decoder_model.h"
#include "tests/kernels/deadline.h"

namespace tessera {

class FusedDecoderTest : public BackendTest {
 protected:
  void SetUp() override {
    BackendTest::SetUp();
    if (IsSkipped()) return;
    if (device().type() == DeviceType::kCpu) GTEST_SKIP() << "the CPU takes operations one by one";
  }

  // Null, after a check that it is rightly so, on devices that have none.
  std::unique_ptr<FusedDecoder> decoder_of(const DecodeStepModel& model) const {
    std::string problem;
    std::unique_ptr<FusedDecoder> decoder = backend().make_fused_decoder(model.model(), problem);
    const bool may_have = runs_hopper() && activation() == DType::kBFloat16;
    EXPECT_EQ(decoder != nullptr, may_have) << problem;
    EXPECT_EQ(problem.empty(), may_have);
    return decoder;
  }

  void check(const DecodeStepSize& size, const std::vector<int64_t>& contexts,
             const std::vector<int64_t>& query_lengths = {}) const {
    SCOPED_TRACE(testing::Message()
                 << "hidden_size " << size.hidden_size << ", intermediate_size "
                 << size.intermediate_size << ", " << size.num_heads << "/" << size.num_kv_heads
                 << " heads of " << size.head_dim << (size.fp8_pages ? ", e4m3 pages" : "")
                 << ", contexts " << testing::PrintToString(contexts) << ", query lengths "
                 << testing::PrintToString(query_lengths));
    DecodeStepModel model(backend(), size, contexts, query_lengths);
    const std::unique_ptr<FusedDecoder> decoder = decoder_of(model);
    if (decoder == nullptr) return;
    const Deadline deadline("fused decode");
    const std::vector<double> plain = model.unfused();
    const std::vector<double> plain_rows = model.written_rows();
    model.upload_pages();
    const std::vector<double> actual =
        to_host(backend(), model.fused(*decoder, model.num_sequences()));
    const std::vector<double> actual_rows = model.written_rows();
    const std::vector<double> expected = model.reference();
    const Shape shape{model.num_tokens(), size.vocab_size};
    expect_as_exact(actual, expected, plain, 2.0, DType::kBFloat16, shape);
    // The reference's rows of later layers differ by all the rounding before them: compare with
    // those of the single operations.
    const double largest = std::abs(
        *std::ranges::max_element(plain_rows, {}, [](double value) { return std::abs(value); }));
    // Neighbours in e4m3 are an eighth of a number apart.
    const double allowed = (size.fp8_pages ? 0.13 : 0.05) * largest;
    for (size_t i = 0; i < plain_rows.size(); ++i) {
      ASSERT_NEAR(actual_rows[i], plain_rows[i], allowed) << "row element " << i;
    }
  }
};

// Llama's, each of whose layers sees so many tokens.
inline BlockSpec windowed(int64_t sliding_window, size_t num_layers = 3) {
  return {.layers = std::vector<LayerSpec>(num_layers, {.sliding_window = sliding_window})};
}

}  // namespace tessera
