// The checks in front of every operation, which are the same for all backends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/attention/problem.h"
#include "tests/kernels/for_each_backend.h"

namespace tessera {
namespace {

using testing::HasSubstr;

class ArgumentsTest : public testing::Test {
 protected:
  DeviceTensor tensor(const Shape& shape, DType dtype = DType::kFloat32) const {
    return poisoned(*backend_, dtype, shape);
  }
  DeviceTensor integers(const Shape& shape) const {
    return to_device(*backend_, std::vector<int32_t>(static_cast<size_t>(shape.num_elements()), 0),
                     shape);
  }

  template <typename Call>
  static void expect_error(Call call, const std::string& message) {
    try {
      call();
      ADD_FAILURE() << "accepted; expected: " << message;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(message));
    }
  }

  // With two query heads and one KV head of 4 elements, of two tokens.
  void rope_store_kv(QkNorm norm_kind, const Tensor& norm, const QueryScalingSpec& scaling) const {
    backend_->operations().rope_store_kv({.query = tensor({2, 2, 4}),
                                          .pages = {tensor({3, 1, 16, 4}), tensor({3, 1, 16, 4})},
                                          .qkv = tensor({2, 16}),
                                          .positions = integers({2}),
                                          .kv_slots = integers({2}),
                                          .rope_table = tensor({2, 2}),
                                          .qk_norm_kind = norm_kind,
                                          .qk_norm = norm,
                                          .norm_epsilon = 1e-5f,
                                          .query_scaling = scaling});
  }

  std::unique_ptr<Backend> backend_ = make_cpu_backend(1);
};

TEST_F(ArgumentsTest, Shapes) {
  expect_error(
      [&] {
        backend_->operations().rms_norm(tensor({2, 8}), tensor({2, 8}), tensor({7}), 1e-5f);
      },
      "rms_norm: weight has shape [7], expected [8]");
  expect_error(
      [&] {
        backend_->operations().linear(tensor({2, 5}), tensor({2, 8}), tensor({5, 9}));
      },
      "linear: weight has shape [5, 9], expected [5, 8]");
  expect_error(
      [&] {
        backend_->operations().linear_add(tensor({3, 5}), tensor({2, 8}), tensor({5, 8}));
      },
      "linear_add: residual has shape [3, 5], expected [2, 5]");
  expect_error(
      [&] {
        backend_->operations().activate_mul(tensor({2, 8}), tensor({2, 8}), Activation::kSilu);
      },
      "activate_mul: gate_up has shape [2, 8], expected [2, 16]");
  expect_error(
      [&] {
        backend_->operations().embed(tensor({2, 8}), tensor({4, 8}), integers({3}));
      },
      "embed: out has shape [2, 8], expected [3, 8]");
  expect_error(
      [&] {
        backend_->operations().gather_rows(tensor({2, 8}), tensor({8}), integers({2}));
      },
      "gather_rows: x has shape [8], expected 2 dimensions");
}

TEST_F(ArgumentsTest, Types) {
  expect_error(
      [&] {
        backend_->operations().rms_norm(tensor({2, 8}, DType::kBFloat16), tensor({2, 8}),
                                        tensor({8}), 1e-5f);
      },
      "rms_norm: out is bfloat16, expected float32");
  expect_error(
      [&] {
        backend_->operations().embed(tensor({2, 8}), tensor({4, 8}), tensor({2}));
      },
      "embed: token_ids is float32, expected int32");
}

TEST_F(ArgumentsTest, MissingData) {
  Tensor missing = tensor({8}).view;
  missing.data = nullptr;
  expect_error(
      [&] {
        backend_->operations().rms_norm(tensor({2, 8}), tensor({2, 8}), missing, 1e-5f);
      },
      "rms_norm: weight has no data");
}

TEST_F(ArgumentsTest, WrongDevice) {
  const DeviceTensor x = tensor({2, 8});
  Tensor elsewhere = x.view;
  elsewhere.device = DeviceType::kCuda;
  expect_error(
      [&] {
        backend_->operations().rms_norm(tensor({2, 8}), elsewhere, tensor({8}), 1e-5f);
      },
      "rms_norm: x is on cuda, expected cpu");
}

TEST_F(ArgumentsTest, AnotherGpu) {
  const DeviceTensor x = tensor({2, 8});
  Tensor elsewhere = x.view;
  elsewhere.device = {DeviceType::kCuda, 1};
  expect_error(
      [&] {
        backend_->operations().rms_norm(tensor({2, 8}), elsewhere, tensor({8}), 1e-5f);
      },
      "rms_norm: x is on cuda:1, expected cpu");
}

TEST_F(ArgumentsTest, WeightFormat) {
  const DeviceTensor data = tensor({5, 8});
  WeightMatrix weight = data.view;
  weight.format = static_cast<WeightFormat>(1);
  expect_error(
      [&] {
        backend_->operations().linear(tensor({2, 5}), tensor({2, 8}), weight);
      },
      "linear: weight is in format unknown, expected dense");
  weight.format = WeightFormat::kDense;
  weight.out_features = 6;
  expect_error(
      [&] {
        backend_->operations().linear(tensor({2, 6}), tensor({2, 8}), weight);
      },
      "linear: weight has shape [5, 8], expected [6, 8]");
}

// Without their scales they would be read as if these were ones, or not at all.
TEST_F(ArgumentsTest, Fp8PagesHaveScales) {
  const DeviceTensor bytes = poisoned(*backend_, DType::kFloat8E4M3, {3, 2, 16, 4});
  const DeviceTensor scales = tensor({2});
  const DeviceTensor others = tensor({3, 2, 16, 4});
  const auto expect = [&](const KvPages& pages, const std::string& problem) {
    expect_error(
        [&] {
          backend_->operations().rope_store_kv({.query = tensor({2, 2, 4}),
                                                .pages = pages,
                                                .qkv = tensor({2, 24}),
                                                .positions = integers({2}),
                                                .kv_slots = integers({2}),
                                                .rope_table = tensor({2, 2})});
        },
        "rope_store_kv: " + problem);
  };
  expect({bytes, bytes}, "key scales has no data");
  expect({bytes, bytes, scales}, "value scales has no data");
  expect({bytes, bytes, scales, tensor({3})}, "value scales has shape [3], expected [2]");
  expect({bytes, others, scales, scales}, "value pages is float32, expected float8_e4m3");
}

TEST_F(ArgumentsTest, NormedLinearRopeStoreKv) {
  const KvPages pages = {tensor({3, 1, 16, 4}), tensor({3, 1, 16, 4})};
  const auto expect = [&](const Shape& query, const Shape& weight, const Shape& qkv,
                          const Shape& slots, const Shape& table, const std::string& problem) {
    const DeviceTensor values = tensor({2, 8});
    const DeviceTensor squares = tensor({2, 1});
    expect_error(
        [&] {
          backend_->fused_operations({}).normed_linear_rope_store_kv(
              {.query = tensor(query),
               .pages = pages,
               .qkv = tensor(qkv),
               .positions = integers({2}),
               .kv_slots = integers(slots),
               .rope_table = tensor(table)},
              {.values = values, .squares = squares, .epsilon = 1e-5f}, tensor(weight));
        },
        "normed_linear_rope_store_kv: " + problem);
  };
  expect({2, 2, 4}, {16, 9}, {2, 16}, {2}, {2, 2}, "weight has shape [16, 9], expected [16, 8]");
  expect({2, 2, 4}, {16, 8}, {2, 12}, {2}, {2, 2}, "qkv has shape [2, 12], expected [2, 16]");
  expect({2, 3, 4}, {16, 8}, {2, 16}, {2}, {2, 2}, "qkv has shape [2, 16], expected [2, 20]");
  expect({2, 2, 4}, {16, 8}, {2, 16}, {3}, {2, 2}, "kv_slots has shape [3], expected [2]");
  expect({2, 2, 4}, {16, 8}, {2, 16}, {2}, {2, 4}, "rope_table has shape [2, 4], expected [2, 2]");
}

TEST_F(ArgumentsTest, RopeStoreKvNeedsTheWeightsOfItsNorm) {
  const auto expect = [&](QkNorm kind, const Tensor& norm, const std::string& problem) {
    expect_error([&] { rope_store_kv(kind, norm, {}); }, "rope_store_kv: qk_norm " + problem);
  };
  const DeviceTensor of_one = tensor({4}), of_two = tensor({8}), of_three = tensor({12});
  expect(QkNorm::kPerHead, of_one, "has shape [4], expected [8]");
  expect(QkNorm::kPerHead, of_three, "has shape [12], expected [8]");
  expect(QkNorm::kWholeProjection, of_two, "has shape [8], expected [12]");
  expect(QkNorm::kLayerNormPerHead, of_two, "has shape [8], expected [12]");
  expect(QkNorm::kNone, of_two, "has shape [8], expected no norm");
}

TEST_F(ArgumentsTest, QueriesAreScaledInContextsOfSomeLength) {
  expect_error([&] { rope_store_kv(QkNorm::kNone, {}, {.beta = 0.1}); },
               "rope_store_kv: queries are scaled by their position in contexts of 0 tokens");
}

TEST_F(ArgumentsTest, Bias) {
  const DeviceTensor data = tensor({5, 8});
  const DeviceTensor bias = tensor({4});
  WeightMatrix weight = data.view;
  weight.bias = bias;
  expect_error(
      [&] {
        backend_->operations().linear(tensor({2, 5}), tensor({2, 8}), weight);
      },
      "linear: bias has shape [4], expected [5]");
}

TEST_F(ArgumentsTest, Softcap) {
  expect_error(
      [&] {
        backend_->operations().softcap(tensor({2, 8}), 0.0f);
      },
      "softcap: cap is 0, expected a positive number");
}

TEST_F(ArgumentsTest, Attention) {
  const AttentionProblem problem(*backend_, {.num_heads = 4, .num_kv_heads = 2}, {{1, 100}});
  const DeviceTensor out = tensor(problem.params().query.shape);
  const auto run = [&](auto change) {
    AttentionParams params = problem.params();
    change(params);
    backend_->operations().attention(out, params);
  };
  expect_error([&] { run([](AttentionParams& p) { p.batch.num_decodes = 2; }); },
               "attention: 2 decodes among 1 sequences");
  expect_error([&] { run([](AttentionParams& p) { p.batch.max_context_length = 1000; }); },
               "attention: context of 1000 tokens, block tables hold 4 pages of 64");
  expect_error([&] { run([](AttentionParams& p) { p.sliding_window = -1; }); },
               "attention: sliding window of -1 tokens, expected a positive number");
  expect_error(
      [&] {
        run([](AttentionParams& p) {
          p.causal = false;
          p.sliding_window = 7;
        });
      },
      "attention: a sliding window of 7 tokens without causal");
  expect_error([&] { run([](AttentionParams& p) { p.scale = 0.0f; }); },
               "attention: scale is 0, expected a positive number");
  expect_error([&] { run([](AttentionParams& p) { p.scale = NAN; }); },
               "attention: scale is nan, expected a positive number");
  expect_error([&] { run([](AttentionParams& p) { p.softcap = -1.0f; }); },
               "attention: softcap is -1, expected a positive number, or 0 for none");
  expect_error([&] { run([](AttentionParams& p) { p.batch.max_decode_query_length = 9; }); },
               "attention: decodes of up to 9 query tokens, at most 8 are possible");
}

TEST_F(ArgumentsTest, Sample) {
  const DeviceTensor logits = tensor({1, 8});
  const DeviceTensor tokens = integers({1});
  const DeviceTensor zeros = integers({1});
  const DeviceTensor values = tensor({1});
  const DeviceTensor random = integers({1, 2});
  SamplingBatch batch{values, zeros, values, values, random, 9};
  expect_error([&] { backend_->operations().sample(tokens, logits, batch); },
               "sample: 9 candidates of 8 logits");
  batch.num_candidates = 0;
  expect_error([&] { backend_->operations().sample(tokens, logits, batch); },
               "sample: 0 candidates of 8 logits");
}

TEST_F(ArgumentsTest, UploadAndDownload) {
  std::vector<float> host(8);
  const Tensor source{host.data(), DType::kFloat32, DeviceType::kCpu, {8}};
  expect_error([&] { backend_->device().upload(tensor({4}), source); },
               "upload of shape [8] to [4]");
  expect_error([&] { backend_->device().download(source, tensor({8}, DType::kFloat16)); },
               "download of float16[8] to float32[8]");
}

}  // namespace
}  // namespace tessera
