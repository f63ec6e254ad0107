#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/cuda/attention/decode/partition.h"
#include "kernels/cuda/decode_step/decoder.h"
#include "kernels/cuda/decode_step/kernel.h"
#include "kernels/cuda/decode_step/make_plan.h"
#include "kernels/cuda/device/cuda_check.h"
#include "kernels/cuda/device/memory.h"
#include "kernels/cuda/device/tensor_map.h"

namespace tessera {
namespace {

Buffer upload_array(const void* host, size_t bytes, std::string_view purpose) {
  Buffer buffer = allocate_device_memory(bytes, purpose);
  CUDA_CHECK(cudaMemcpy(buffer.data(), host, bytes, cudaMemcpyHostToDevice));
  return buffer;
}

// Keys or values as the copy engine takes them: float8_e4m3 elements in pairs.
Tensor copied_pages(Tensor pages) {
  if (pages.dtype != DType::kFloat8E4M3) return pages;
  pages.dtype = DType::kBFloat16;
  pages.shape = {pages.dim(0), pages.dim(1), pages.dim(2), pages.dim(3) / 2};
  return pages;
}

Buffer upload_maps(const FusedDecoderModel& model) {
  std::vector<CUtensorMap> maps;
  const auto add_weight = [&](const WeightMatrix& weight) {
    maps.push_back(make_weight_tensor_map(weight.data, kUnitRows, kUnitFeatures));
  };
  const auto head_dim = static_cast<int>(model.sizes.head_dim);
  const auto element_bytes = static_cast<int>(size_of(model.pages.front().keys.dtype));
  const int box_tokens = unit_tokens(head_dim, element_bytes);
  for (size_t i = 0; i < model.layers.size(); ++i) {
    const LayerWeights& layer = model.layers[i];
    add_weight(layer.qkv_proj);  // the order of FusedMap
    maps.push_back(make_page_rows_tensor_map(copied_pages(model.pages[i].keys), box_tokens));
    maps.push_back(make_page_rows_tensor_map(copied_pages(model.pages[i].values), box_tokens));
    add_weight(layer.o_proj);
    add_weight(layer.gate_up_proj);
    add_weight(layer.down_proj);
  }
  add_weight(model.lm_head);
  return upload_array(maps.data(), maps.size() * sizeof(CUtensorMap), "tensor maps");
}

// Null for a tensor that the model does not have.
const float* pointer(const Tensor& tensor) { return tensor.empty() ? nullptr : tensor.as<float>(); }

// The weights of a norm that is none.
Buffer upload_ones(const FusedDecoderModel& model) {
  const std::vector<float> ones(static_cast<size_t>(model.sizes.hidden_size), 1.0f);
  return upload_array(ones.data(), ones.size() * sizeof(float), "weights of no norm");
}

Buffer upload_layers(const FusedDecoderModel& model, const Buffer& ones) {
  const auto weights_of = [&](const Tensor& norm) {
    return norm.empty() ? static_cast<const float*>(ones.data()) : norm.as<float>();
  };
  std::vector<FusedLayerPointers> layers;
  for (size_t i = 0; i < model.layers.size(); ++i) {
    const LayerWeights& layer = model.layers[i];
    layers.push_back({.input_layernorm = weights_of(layer.input_layernorm),
                      .pre_feedforward_layernorm = weights_of(layer.pre_feedforward_layernorm),
                      .keys = static_cast<__nv_bfloat16*>(model.pages[i].keys.data),
                      .values = static_cast<__nv_bfloat16*>(model.pages[i].values.data),
                      .qkv_bias = pointer(layer.qkv_proj.bias),
                      .qk_norm = pointer(layer.qk_norm),
                      .post_norms = {pointer(layer.post_attention_layernorm),
                                     pointer(layer.post_feedforward_layernorm)}});
  }
  return upload_array(layers.data(), layers.size() * sizeof(FusedLayerPointers), "layer table");
}

// The scales of all layers, which are one array [num_layers, 2, num_kv_heads]; null where keys and
// values are in bfloat16. Their values may change as long as no step runs.
const float* scales_of(const FusedDecoderModel& model) {
  const KvPages& first = model.pages.front();
  if (!first.is_fp8()) return nullptr;
  const auto* next = first.key_scales.as<float>();
  for (const KvPages& pages : model.pages) {
    for (const Tensor* const scales : {&pages.key_scales, &pages.value_scales}) {
      CHECK(scales->as<float>() == next, "fused decode: scales of pages are not one array");
      next += first.num_kv_heads();
    }
  }
  return first.key_scales.as<float>();
}

class CudaFusedDecoder final : public FusedDecoder {
 public:
  CudaFusedDecoder(const FusedDecoderModel& model, const FusedDecodePlan& plan,
                   const GpuTraits& gpu, cudaStream_t stream)
      : model_(model),
        plan_(plan),
        gpu_(gpu),
        stream_(stream),
        head_dim_(model.sizes.head_dim),
        // A step of a single token has several replicas, so its layout may be the larger one.
        common_words_(std::max(fused_exchange_layout(plan, 1).size,
                               fused_exchange_layout(plan, plan.max_tokens).size)),
        copy_words_(common_words_ +
                    num_decode_slots(plan.num_blocks) *
                        fused_partial_words(plan.group_heads, static_cast<int>(head_dim_))),
        maps_(upload_maps(model)),
        ones_(upload_ones(model)),
        layers_(upload_layers(model, ones_)),
        scales_(scales_of(model)),
        claim_words_(fused_claim_words(static_cast<int>(model.layers.size()))),
        exchange_(
            allocate_device_memory(kSets * set_words() * sizeof(uint32_t), "exchanging results")) {
    // All words are missing.
    CUDA_CHECK(cudaMemsetAsync(exchange_.data(), 0xff, exchange_.size_bytes(), stream));
  }

  bool takes(int64_t num_tokens, const AttentionBatch& batch) const override {
    return takes_step(plan_, step_size(num_tokens, batch));
  }

  bool takes_drafts() const override { return plan_.takes_drafts; }

  void step(const Tensor& logits, const FusedDecodeBatch& batch) override;

 private:
  static FusedStepSize step_size(int64_t num_tokens, const AttentionBatch& batch) {
    return {.num_tokens = num_tokens,
            .num_sequences = batch.num_sequences,
            .num_decodes = batch.num_decodes,
            .max_context_length = batch.max_context_length};
  }

  static constexpr int kSets = 2;
  static constexpr int kCopies = 2;

  size_t set_words() const { return static_cast<size_t>(kCopies * copy_words_ + claim_words_); }
  uint32_t* exchange(int set, int copy) const {
    return static_cast<uint32_t*>(exchange_.data()) + static_cast<size_t>(set) * set_words() +
           static_cast<size_t>(copy * copy_words_);
  }
  uint32_t* claims(int set) const { return exchange(set, kCopies); }

  FusedDecoderModel model_;
  FusedDecodePlan plan_;
  GpuTraits gpu_;
  cudaStream_t stream_;
  int64_t head_dim_;
  int common_words_;
  int copy_words_;
  int claim_words_;
  Buffer maps_;
  Buffer ones_;  // which layers_ points to
  Buffer layers_;
  const float* scales_;  // of keys and values
  Buffer exchange_;
  int set_ = 0;         // the set that the next step uses
  int used_words_ = 0;  // words that the last step used, of the other set
};

void CudaFusedDecoder::step(const Tensor& logits, const FusedDecodeBatch& batch) {
  const int64_t num_tokens = batch.token_ids.dim(0);
  CHECK(num_tokens >= 1 && num_tokens <= plan_.max_tokens, "fused decode: ", num_tokens,
        " tokens, at most ", plan_.max_tokens);
  CHECK(batch.attention.num_decodes == batch.attention.num_sequences,
        "fused decode: ", batch.attention.num_decodes, " decodes among ",
        batch.attention.num_sequences, " sequences");
  CHECK(plan_.takes_drafts || num_tokens == batch.attention.num_sequences,
        "fused decode: ", num_tokens, " tokens of ", batch.attention.num_sequences, " sequences");
  const int64_t pieces = most_fused_pieces(plan_, step_size(num_tokens, batch.attention));
  CHECK(num_tokens == 1 || pieces <= kMaxFusedPieces, "fused decode: ", pieces,
        " pieces of attention, at most ", kMaxFusedPieces);
  CHECK(logits.shape == Shape({num_tokens, model_.lm_head.out_features}), "fused decode: logits ",
        logits.shape);
  const KvPages& pages = model_.pages.front();
  Tensor query;  // a shape without data: attention takes its sizes from it
  query.dtype = DType::kBFloat16;
  query.shape = {num_tokens, model_.sizes.num_heads, head_dim_};
  const int tokens = static_cast<int>(num_tokens);
  const FusedSharedMemory memory =
      fused_shared_memory(plan_, tokens == 1 ? 1 : kFusedMaxTokens, head_dim_, gpu_.shared_bytes);

  const auto attention_of = [&](const LayerSpec& layer) {
    AttentionArguments attention = make_attention_arguments(
        query, {.query = query,
                .pages = pages,
                .batch = batch.attention,
                .scale = attention_scale(model_.block, head_dim_),
                .softcap = static_cast<float>(model_.block.attention_softcap),
                .sliding_window = layer.sliding_window});
    // Attention takes each query group for a KV head (plan.h).
    attention.num_kv_heads = plan_.num_groups;
    attention.heads_per_kv_head = plan_.group_heads;
    return attention;
  };
  const auto table_of = [&](const LayerSpec& layer) {
    return layer.rope_table
               ? model_.rope_tables.at(static_cast<size_t>(*layer.rope_table)).as<float>()
               : nullptr;
  };
  const std::vector<LayerSpec> kinds = fused_kinds(model_.block);
  const auto item_blocks = plan_.num_blocks / plan_.num_groups;

  FusedDecodeArguments arguments{
      .products = {},
      .layout = fused_exchange_layout(plan_, tokens),
      .copies = {exchange(set_, 0), exchange(set_, 1)},
      .partials = common_words_,
      .used_copies = {exchange(1 - set_, 0), exchange(1 - set_, 1)},
      .used_words = used_words_,
      .claims = claims(set_),
      .used_claims = claims(1 - set_),
      .maps = static_cast<const CUtensorMap*>(maps_.data()),
      .layers = static_cast<const FusedLayerPointers*>(layers_.data()),
      .norm = model_.norm.as<float>(),
      .embed_tokens = static_cast<const __nv_bfloat16*>(model_.embed_tokens.data.data),
      .rope_tables = {table_of(kinds.front()), table_of(kinds.back())},
      .token_ids = batch.token_ids.as<int32_t>(),
      .positions = batch.positions.as<int32_t>(),
      .kv_slots = batch.kv_slots.as<int32_t>(),
      .logits = logits.as<float>(),
      .attention = attention_of(kinds.front()),
      .division = {.item_rows = plan_.group_heads,
                   .is_even = tokens == 1 && item_blocks > 1,
                   .item_blocks = FastDivisor(static_cast<uint32_t>(std::max(item_blocks, 2))),
                   // A merge by polling is cheaper than a merge in decode attention.
                   .max_whole_tiles = least_fused_tiles(head_dim_),
                   .least_tiles = least_fused_tiles(head_dim_)},
      .num_tokens = tokens,
      .num_layers = static_cast<int>(model_.layers.size()),
      .epsilon = model_.sizes.rms_norm_eps,
      .rings = memory.rings,
      .most_under_way = plan_.most_under_way,
      .input_stride = memory.input_stride,
      .block = plan_.block,
      .num_kinds = plan_.num_kinds,
      .num_windows = plan_.num_windows,
      .input_bytes = memory.input_bytes,
      .second_attention = attention_of(kinds.back()),
      .kv_scales = scales_};
  std::memcpy(arguments.products, plan_.products.data(), sizeof(arguments.products));
  CUDA_CHECK(cudaSetDevice(gpu_.index));
  launch_fused_decode(arguments,
                      {.head_dim = static_cast<int>(head_dim_),
                       .num_blocks = plan_.num_blocks,
                       .shared_bytes = memory.total_bytes},
                      stream_);
  used_words_ = arguments.layout.size;
  set_ = 1 - set_;
}

}  // namespace

std::unique_ptr<FusedDecoder> make_cuda_fused_decoder(const FusedDecoderModel& model,
                                                      const FusedDecodePlan& plan,
                                                      const GpuTraits& gpu, cudaStream_t stream) {
  return std::make_unique<CudaFusedDecoder>(model, plan, gpu, stream);
}

}  // namespace tessera
