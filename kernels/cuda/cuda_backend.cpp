#include <future>

#include "kernels/backend.h"
#include "kernels/cuda/attention/standard/cublas.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/cuda_fused_operations.h"
#include "kernels/cuda/cuda_operations.h"
#include "kernels/cuda/cuda_sizes.h"
#include "kernels/cuda/decode_step/decoder.h"
#include "kernels/cuda/decode_step/make_plan.h"
#include "kernels/cuda/device/check.h"
#include "kernels/cuda/device/cublas_library.h"
#include "kernels/cuda/device/graph_timing.h"
#include "kernels/cuda/device/read_bandwidth.h"
#include "kernels/cuda/linear/fused_block.h"
#include "kernels/device_measurement.h"

namespace tessera {
namespace {

class CudaMeasurement final : public DeviceMeasurement {
 public:
  explicit CudaMeasurement(CudaDevice& device) : device_(device) {}

  double read_bandwidth() override { return tessera::read_bandwidth(device_.stream()); }
  std::vector<double> seconds(const std::function<void()>& operations,
                              int64_t repetitions) override {
    return time_graph_replays(operations, repetitions, device_.stream());
  }
  std::unique_ptr<StandardAttention> make_standard_attention() override {
    return make_cublas_standard_attention(device_.stream());
  }

 private:
  CudaDevice& device_;
};

class CudaBackend final : public Backend {
 public:
  CudaBackend(const GpuTraits& gpu, DType compute_dtype)
      : device_(gpu), operations_(device_, compute_dtype) {}
  // Memory is freed after this; work that still uses it must be over.
  ~CudaBackend() override { device_.finish(); }

  Device& device() override { return device_; }
  Operations& operations() override { return operations_; }
  FusedOperations& fused_operations(const BlockSpec& block) override {
    return fused_products_block_problem(block).empty() ? fused_operations_ : one_by_one_;
  }
  BlockSizes computed_sizes(const ModelShape& shape) const override {
    return cuda_sizes(shape, device_.gpu(), is_bfloat16());
  }
  std::unique_ptr<FusedDecoder> make_fused_decoder(const FusedDecoderModel& model,
                                                   std::string& problem) override;
  std::unique_ptr<DeviceMeasurement> make_measurement() override {
    return std::make_unique<CudaMeasurement>(device_);
  }

 private:
  bool is_bfloat16() const { return operations_.activation_dtype() == DType::kBFloat16; }

  CudaDevice device_;
  CudaOperations operations_;
  FusedOperations one_by_one_{operations_};
  CudaFusedOperations fused_operations_{device_, operations_};
};

// The format that is not dense, if there is one among the model's matrices.
WeightFormat format_of(const FusedDecoderModel& model) {
  WeightFormat format = model.lm_head.format;
  const auto add = [&](const WeightMatrix& matrix) {
    if (format == WeightFormat::kDense) format = matrix.format;
  };
  add(model.embed_tokens);
  for (const LayerWeights& layer : model.layers) {
    add(layer.qkv_proj);
    add(layer.o_proj);
    add(layer.gate_up_proj);
    add(layer.down_proj);
  }
  return format;
}

std::unique_ptr<FusedDecoder> CudaBackend::make_fused_decoder(const FusedDecoderModel& model,
                                                              std::string& problem) {
  CHECK(
      model.pages.size() == model.layers.size() && model.block.layers.size() == model.layers.size(),
      "fused decode: ", model.layers.size(), " layers, ", model.pages.size(), " of pages and ",
      model.block.layers.size(), " in the block");
  const KvPages& pages = model.pages.front();
  FusedDecodeShape shape =
      fused_decode_shape(model.sizes, model.lm_head.out_features, pages.page_size(),
                         pages.keys.dtype, is_bfloat16(), device_.gpu());
  shape.weights = format_of(model);
  const FusedDecodePlan plan = plan_fused_decode(model.block, shape);
  problem = plan.problem;
  if (!plan.runs()) return nullptr;
  return make_cuda_fused_decoder(model, plan, device_.gpu(), device_.stream());
}

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(int device_index, DType compute_dtype,
                                           KernelChoice choice) {
  CHECK(compute_dtype == DType::kBFloat16 || compute_dtype == DType::kFloat16,
        "CUDA computes in bfloat16 or float16, not in ", to_string(compute_dtype));
  // Takes about as long as preparing the GPU. An error is thrown where the library is used first.
  const std::future<void> loading = std::async(std::launch::async, [] { cublas(); });
  select_device(device_index);
  const GpuTraits gpu = gpu_traits(device_index, choice);
  CHECK(choice != KernelChoice::kFp8Attention || gpu.runs_hopper(),
        "attention in float8_e4m3 needs a GPU of compute capability 9.0 and a build for it, this "
        "one has ",
        gpu.compute_capability / 10, ".", gpu.compute_capability % 10);
  return std::make_unique<CudaBackend>(gpu, compute_dtype);
}

}  // namespace tessera
