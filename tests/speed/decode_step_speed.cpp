// How long fused decode steps of real shapes take, and whether they give the same bits every time.
// Not a test, so only on request; needs 40 GiB of GPU memory:
//   kernels_speed --gtest_filter='*DecodeStepSpeed.*cuda_bf16'
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <vector>

#include "kernels/fused_decoder.h"
#include "tests/kernels/cuda/decode_step/layered_step.h"
#include "tests/kernels/for_each_backend.h"
#include "tests/kernels/random_values.h"

namespace tessera {
namespace {

constexpr int64_t kPageSize = 64;
constexpr int64_t kNumPages = 1100;
constexpr int64_t kPoolElements = int64_t{1} << 22;
constexpr int kSteps = 20;

struct RealShape {
  const char* name;
  int64_t num_layers, hidden_size, num_heads, num_kv_heads, head_dim, intermediate_size, vocab_size;
};

class DecodeStepSpeed : public BackendTest {
 protected:
  void SetUp() override {
    BackendTest::SetUp();
    if (IsSkipped()) return;
    RandomValues random(1);
    for (const double value : random.normal(kPoolElements)) {
      pool_.push_back(static_cast<float>(value));
    }
  }

  Tensor allocate(DType dtype, const Shape& shape) {
    Tensor tensor;
    tensor.dtype = dtype;
    tensor.device = device().type();
    tensor.shape = shape;
    buffers_.push_back(device().allocate(tensor.size_bytes(), "a speed test"));
    tensor.data = buffers_.back().data();
    return tensor;
  }

  // The same random numbers over and over, scaled for sums of `columns` terms of variance 1.
  Tensor matrix(int64_t rows, int64_t columns) {
    const Tensor tensor = allocate(activation(), {rows, columns});
    std::vector<float> scaled(pool_);
    for (float& value : scaled) value /= std::sqrt(static_cast<float>(columns));
    const int64_t chunk = kPoolElements / columns;
    for (int64_t begin = 0; begin < rows; begin += chunk) {
      const Tensor part = tensor.slice(begin, std::min(begin + chunk, rows));
      Tensor source;
      source.data = scaled.data();
      source.shape = part.shape;
      device().upload(part, source);
    }
    weight_bytes_ += static_cast<double>(tensor.size_bytes());
    return tensor;
  }
  Tensor ones(int64_t size) {
    const Tensor tensor = allocate(DType::kFloat32, {size});
    std::vector<float> values(static_cast<size_t>(size), 1.0f);
    Tensor source;
    source.data = values.data();
    source.shape = tensor.shape;
    device().upload(tensor, source);
    return tensor;
  }
  Tensor numbers(const std::vector<int32_t>& values, const Shape& shape) {
    owned_.push_back(integers(values, shape));
    return owned_.back().view;
  }

  FusedDecoderModel make_model(const RealShape& shape) {
    FusedDecoderModel model;
    for (int64_t l = 0; l < shape.num_layers; ++l) {
      const int64_t query_size = shape.num_heads * shape.head_dim;
      const int64_t kv_size = shape.num_kv_heads * shape.head_dim;
      model.layers.push_back(
          {.input_layernorm = ones(shape.hidden_size),
           .qkv_proj = matrix(query_size + 2 * kv_size, shape.hidden_size),
           .o_proj = matrix(shape.hidden_size, query_size),
           .pre_feedforward_layernorm = ones(shape.hidden_size),
           .gate_up_proj = matrix(2 * shape.intermediate_size, shape.hidden_size),
           .down_proj = matrix(shape.hidden_size, shape.intermediate_size)});
    }
    model.lm_head = matrix(shape.vocab_size, shape.hidden_size);
    const double read_bytes = weight_bytes_;
    model.embed_tokens = matrix(shape.vocab_size, shape.hidden_size);
    const Shape pages{kNumPages, shape.num_kv_heads, kPageSize, shape.head_dim};
    const int64_t page_rows = pages.num_elements() / shape.head_dim;
    for (int64_t l = 0; l < shape.num_layers; ++l) {
      model.pages.push_back({.keys = matrix(page_rows, shape.head_dim).reshape(pages),
                             .values = matrix(page_rows, shape.head_dim).reshape(pages)});
    }
    weight_bytes_ = read_bytes;
    model.norm = ones(shape.hidden_size);
    model.rope_tables = {ones(shape.head_dim).reshape({2, shape.head_dim / 2})};
    model.block.layers.resize(static_cast<size_t>(shape.num_layers));
    model.sizes = {.hidden_size = shape.hidden_size,
                   .intermediate_size = shape.intermediate_size,
                   .num_heads = shape.num_heads,
                   .num_kv_heads = shape.num_kv_heads,
                   .head_dim = shape.head_dim,
                   .rms_norm_eps = 1e-5f};
    return model;
  }

  // Gives back what the last model took.
  void forget() {
    buffers_.clear();
    owned_.clear();
    weight_bytes_ = 0.0;
  }

  // Each sequence has `context` tokens, the last query_length of which are the step's.
  FusedDecodeBatch make_batch(int64_t num_sequences, int64_t query_length, int64_t context) {
    const int64_t max_pages = context / kPageSize + 1;
    const int64_t num_tokens = num_sequences * query_length;
    std::vector<int32_t> tokens, positions, slots, lengths, tables;
    std::vector<int32_t> starts{0};
    for (int64_t s = 0; s < num_sequences; ++s) {
      for (int64_t page = 0; page < max_pages; ++page) {
        tables.push_back(static_cast<int32_t>(s * max_pages + page));
      }
      for (int64_t position = context - query_length; position < context; ++position) {
        tokens.push_back(static_cast<int32_t>(17 * tokens.size() + 3));
        positions.push_back(static_cast<int32_t>(position));
        slots.push_back(static_cast<int32_t>(s * max_pages * kPageSize + position));
      }
      lengths.push_back(static_cast<int32_t>(context));
      starts.push_back(static_cast<int32_t>(tokens.size()));
    }
    FusedDecodeBatch batch;
    batch.token_ids = numbers(tokens, {num_tokens});
    batch.positions = numbers(positions, {num_tokens});
    batch.kv_slots = numbers(slots, {num_tokens});
    batch.attention.query_starts = numbers(starts, {num_sequences + 1});
    batch.attention.context_lengths = numbers(lengths, {num_sequences});
    batch.attention.block_tables = numbers(tables, {num_sequences, max_pages});
    batch.attention.num_sequences = batch.attention.num_decodes = num_sequences;
    batch.attention.max_query_length = batch.attention.max_decode_query_length = query_length;
    batch.attention.max_context_length = context;
    return batch;
  }

  // Times step() and prints that beside what it reads, once.
  template <typename Step>
  void measure(const RealShape& shape, const FusedDecodeBatch& batch, const char* way, Step step) {
    const int64_t num_sequences = batch.attention.num_sequences;
    const int64_t context = batch.attention.max_context_length;
    const Tensor logits = allocate(DType::kFloat32, {batch.token_ids.dim(0), shape.vocab_size});
    std::vector<double> milliseconds;
    std::vector<std::vector<uint8_t>> results;
    for (int i = 0; i < kSteps + 3; ++i) {
      device().synchronize();
      const auto start = std::chrono::steady_clock::now();
      step(logits);
      device().synchronize();
      const std::chrono::duration<double, std::milli> time =
          std::chrono::steady_clock::now() - start;
      const std::vector<uint8_t> result = bytes_of(backend(), logits);
      if (std::ranges::find(results, result) == results.end()) results.push_back(result);
      if (i >= 3) milliseconds.push_back(time.count());
    }
    std::ranges::sort(milliseconds);
    const double median = milliseconds[kSteps / 2];
    const double kv_bytes = 4.0 * static_cast<double>(shape.num_layers * shape.num_kv_heads *
                                                      shape.head_dim * num_sequences * context);
    std::printf(
        "%s %lld x %lld, %lld tokens each, %s: %.3f ms (%.3f to %.3f), %.0f GB/s; "
        "%zu different results\n",
        shape.name, static_cast<long long>(num_sequences), static_cast<long long>(context),
        static_cast<long long>(batch.attention.max_query_length), way, median, milliseconds.front(),
        milliseconds.back(), (weight_bytes_ + kv_bytes) / median * 1e-6, results.size());
  }

  std::vector<float> pool_;
  std::vector<Buffer> buffers_;
  std::vector<DeviceTensor> owned_;
  double weight_bytes_ = 0.0;  // that a step reads
};

constexpr RealShape kShapes[] = {{"8B", 32, 4096, 32, 8, 128, 14336, 128256},
                                 {"1B", 16, 2048, 32, 8, 64, 8192, 128256}};

TEST_P(DecodeStepSpeed, RealShapes) {
  for (const RealShape& shape : kShapes) {
    forget();
    std::string problem;
    const std::unique_ptr<FusedDecoder> decoder =
        backend().make_fused_decoder(make_model(shape), problem);
    if (decoder == nullptr) GTEST_SKIP() << problem;
    const auto time = [&](int64_t num_sequences, int64_t context) {
      const FusedDecodeBatch batch = make_batch(num_sequences, 1, context);
      measure(shape, batch, "one kernel",
              [&](const Tensor& logits) { decoder->step(logits, batch); });
    };
    for (const int64_t context : {64, 512, 8192, 32768}) time(1, context);
    for (const int64_t num_sequences : {2, 8}) time(num_sequences, 1024);
  }
}

// Steps with drafts in one kernel, also those that FusedDecoder::takes() declines, and layer by
// layer.
TEST_P(DecodeStepSpeed, SeveralTokensOfASequence) {
  for (const RealShape& shape : kShapes) {
    forget();
    std::string problem;
    const FusedDecoderModel model = make_model(shape);
    const std::unique_ptr<FusedDecoder> decoder = backend().make_fused_decoder(model, problem);
    if (decoder == nullptr) GTEST_SKIP() << problem;
    for (const int64_t context : {512, 2048, 8192, 32768}) {
      for (const int64_t query_length : {1, 2, 4, 8}) {
        const FusedDecodeBatch batch = make_batch(1, query_length, context);
        measure(shape, batch, "one kernel",
                [&](const Tensor& logits) { decoder->step(logits, batch); });
        LayeredStep layered(backend(), backend().fused_operations(model.block), model, batch);
        measure(shape, batch, "layers", [&](const Tensor& logits) { layered.run(logits, batch); });
      }
    }
  }
}

FOR_EACH_BACKEND(DecodeStepSpeed);

}  // namespace
}  // namespace tessera
