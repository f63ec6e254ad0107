// Decode attention in a CUDA graph: what it reads may change between replays.
#ifdef TESSERA_CUDA

#include <gtest/gtest.h>

#include <memory>
#include <type_traits>

#include "kernels/cuda/attention/decode/kernel.h"
#include "kernels/cuda/device/cuda_check.h"
#include "kernels/cuda/device/gpu_traits.h"
#include "kernels/cuda/device/recorded_graph.h"
#include "tests/kernels/attention/problem.h"

namespace tessera {
namespace {

using Stream = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, decltype(&cudaStreamDestroy)>;

class AttentionGraphTest : public BackendTest {
 protected:
  void SetUp() override {
    BackendTest::SetUp();
    if (IsSkipped()) return;
    if (device().type() != DeviceType::kCuda) GTEST_SKIP() << "CUDA graphs only";
    cudaStream_t stream = nullptr;
    CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    stream_.reset(stream);
    gpu_ = gpu_traits(0, KernelChoice::kPortable);
    arrivals_ = integers(std::vector<int32_t>(static_cast<size_t>(gpu_.num_multiprocessors)),
                         {gpu_.num_multiprocessors});
    device().synchronize();
  }

  void launch(const Tensor& out, const AttentionParams& params) const {
    const DecodeAttentionPlan plan =
        plan_decode_attention({.num_heads = params.query.dim(1),
                               .num_kv_heads = params.pages.num_kv_heads(),
                               .head_dim = params.pages.head_dim(),
                               .page_size = params.pages.page_size(),
                               .max_query_length = params.batch.max_decode_query_length,
                               .is_fp8 = params.pages.is_fp8(),
                               .gpu = gpu_});
    launch_attention_decode(out, params, plan, static_cast<uint32_t*>(arrivals_.view.data),
                            stream_.get());
  }

  void copy(const Tensor& destination, const Tensor& source) const {
    ASSERT_EQ(destination.shape, source.shape);
    CUDA_CHECK(cudaMemcpyAsync(destination.data, source.data, source.size_bytes(),
                               cudaMemcpyDeviceToDevice, stream_.get()));
  }

  std::vector<uint8_t> bytes(const Tensor& tensor) const {
    CUDA_CHECK(cudaStreamSynchronize(stream_.get()));
    return bytes_of(backend(), tensor);
  }

  // The same launches without a graph, from inputs of their own.
  std::vector<uint8_t> expected(const AttentionProblem& problem) const {
    problem.check();
    const DeviceTensor out = poisoned(backend(), activation(), problem.params().query.shape);
    device().synchronize();
    launch(out, problem.params());
    return bytes(out);
  }

  // Replays a graph that was recorded with the first lengths on inputs with each of the others,
  // copied over the first. They must lead to tensors of equal shapes.
  void check(const AttentionSize& size,
             const std::vector<std::vector<SequenceSize>>& lengths) const {
    const AttentionProblem recorded(backend(), size, lengths[0]);
    const AttentionParams params = recorded.params();
    const DeviceTensor out = poisoned(backend(), activation(), params.query.shape);
    device().synchronize();  // the inputs are there: the launches go to a stream of their own
    launch(out, params);     // loads the kernel, which recording does not allow
    const auto launch_twice = [&] {
      launch(out, params);
      launch(out, params);  // finds the counters as the first left them
    };
    const std::optional<RecordedGraph> graph = RecordedGraph::record(launch_twice, stream_.get());
    ASSERT_TRUE(graph);
    for (size_t i = 0; i < lengths.size(); ++i) {
      const AttentionProblem problem(backend(), size, lengths[i], 1 + i);
      const std::vector<uint8_t> result = expected(problem);
      const AttentionParams changed = problem.params();
      copy(params.query, changed.query);
      copy(params.pages.keys, changed.pages.keys);
      copy(params.pages.values, changed.pages.values);
      copy(params.batch.query_starts, changed.batch.query_starts);
      copy(params.batch.context_lengths, changed.batch.context_lengths);
      copy(params.batch.block_tables, changed.batch.block_tables);
      const DeviceTensor poison = poisoned(backend(), activation(), params.query.shape);
      device().synchronize();
      copy(out, poison);
      graph->launch(stream_.get());
      EXPECT_EQ(bytes(out), result) << "lengths " << i;
    }
  }

  void check_all() const {
    for (const int64_t head_dim : {64, 80, 128}) {
      if (gpu_.runs_hopper() && head_dim % 64 != 0) continue;
      check_all({.num_heads = 8, .num_kv_heads = 2, .head_dim = head_dim});
    }
  }
  void check_fp8() const {
    const AttentionSize size = {
        .num_heads = 8, .num_kv_heads = 2, .head_dim = 128, .fp8_pages = true};
    check(size, {{{1, 3000}, {1, 5}, {1, 300}, {1, 0}}, {{1, 300}, {1, 3000}, {1, 5}, {1, 0}}});
    check(size, {{{3, 1000}, {1, 64}, {8, 65}}, {{3, 64}, {1, 65}, {8, 1000}}});
  }

  void check_all(const AttentionSize& size) const {
    check(size, {{{1, 3000}, {1, 5}, {1, 300}, {1, 0}},
                 {{1, 5}, {1, 300}, {1, 0}, {1, 3000}},
                 {{1, 300}, {1, 3000}, {1, 5}, {1, 0}}});
    check(size, {{{3, 1000}, {1, 64}, {8, 65}}, {{3, 64}, {1, 65}, {8, 1000}}});
    // More than one sequence per lane of a warp, and more than lanes keep.
    for (const int64_t num_sequences : {50, 100}) {
      std::vector<SequenceSize> rising, falling;
      for (int64_t i = 0; i < num_sequences; ++i) {
        rising.push_back({1, 14 * i});
        falling.push_back({1, 14 * (num_sequences - 1 - i)});
      }
      check(size, {rising, falling});
    }
  }

  GpuTraits gpu_;

 private:
  Stream stream_{nullptr, cudaStreamDestroy};
  DeviceTensor arrivals_;
};

TEST_P(AttentionGraphTest, ReplaysOnChangedLengthsByLoads) { check_all(); }

TEST_P(AttentionGraphTest, ReplaysOnChangedLengthsByCopyEngine) {
  gpu_ = gpu_traits(0);
  if (!gpu_.runs_hopper()) GTEST_SKIP() << "kernels for Hopper only";
  check_all();
}

TEST_P(AttentionGraphTest, ReplaysOnFp8PagesByLoads) { check_fp8(); }

TEST_P(AttentionGraphTest, ReplaysOnFp8PagesByCopyEngine) {
  gpu_ = gpu_traits(0);
  if (!gpu_.runs_hopper()) GTEST_SKIP() << "kernels for Hopper only";
  check_fp8();
}

FOR_EACH_BACKEND(AttentionGraphTest);

}  // namespace
}  // namespace tessera

#endif
