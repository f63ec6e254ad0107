#include "engine/benchmark/attention_inputs.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/backend_limits.h"
#include "kernels/device.h"

namespace tessera {
namespace {

// Four times the L2 cache of an H200, the largest yet.
constexpr double kBytesOfAllSets = 256 << 20;
constexpr int64_t kMaxSets = 16;

// The one page of a contiguous sequence is a multiple of the pages that kernels are made for.
constexpr int64_t kLargestPage = 256;

static_assert(kMaxBenchmarkHeadDim <= NormalPool::kMaxRowSize);

int64_t sets_for(const AttentionCase& attention_case, double kv_bytes) {
  if (!attention_case.is_decode()) return 1;  // bound by arithmetic
  return std::clamp(static_cast<int64_t>(std::ceil(kBytesOfAllSets / kv_bytes)), int64_t{1},
                    kMaxSets);
}

// Of float8_e4m3 pages: `first` and its inverse in turn, a power of two that is not 1, so that a
// kernel that forgets scales, or takes another head's, is wrong. Of others 1.
std::vector<float> make_scales(int64_t num_kv_heads, KvDType kv_dtype, float first) {
  std::vector<float> scales(static_cast<size_t>(num_kv_heads), 1.0f);
  if (kv_dtype == KvDType::kActivation) return scales;
  for (size_t head = 0; head < scales.size(); ++head) {
    scales[head] = head % 2 == 0 ? first : 1.0f / first;
  }
  return scales;
}

}  // namespace

AttentionInputs::AttentionInputs(Operations& operations, const NormalPool& query_pool,
                                 const NormalPool& kv_pool, const AttentionHeads& heads,
                                 const AttentionCase& attention_case, const PageLayout& layout)
    : operations_(operations),
      query_pool_(query_pool),
      kv_pool_(kv_pool),
      heads_(heads),
      case_(attention_case),
      kv_dtype_(layout.kv_dtype),
      page_size_(layout.contiguous ? checked_round_up(attention_case.context_length, kLargestPage,
                                                      "the context length")
                                   : layout.page_size),
      pages_per_sequence_(ceil_divide(attention_case.context_length, page_size_)),
      num_sets_(sets_for(attention_case,
                         count_kv_bytes(heads, attention_case,
                                        stored_dtype(kv_dtype_, operations.activation_dtype())))),
      key_scales_(make_scales(heads.num_kv_heads, kv_dtype_, 0.5f)),
      value_scales_(make_scales(heads.num_kv_heads, kv_dtype_, 4.0f)) {
  CHECK(heads.head_dim <= kMaxBenchmarkHeadDim, "heads of ", heads.head_dim,
        " dimensions, at most ", kMaxBenchmarkHeadDim);
  take_queries();
  take_pages();
  take_batch(/*in_order=*/layout.contiguous);
  take_workspace();
}

void AttentionInputs::take_queries() {
  const DType dtype = operations_.activation_dtype();
  const int64_t num_tokens =
      checked_multiply(case_.batch_size, case_.query_length, "the number of queries");
  query_ = take("queries", dtype, {num_tokens, heads_.num_heads, heads_.head_dim});
  out_ = take("outputs", dtype, query_.shape);
  query_pool_.fill(operations_.device(), query_, 0);
}

void AttentionInputs::take_pages() {
  const DType dtype = stored_dtype(kv_dtype_, operations_.activation_dtype());
  const Shape shape{num_pages(), heads_.num_kv_heads, page_size_, heads_.head_dim};
  pages_.keys = take("keys", dtype, shape);
  pages_.values = take("values", dtype, shape);
  kv_pool_.fill(operations_.device(), pages_.keys, kKeysOffset);
  kv_pool_.fill(operations_.device(), pages_.values, kValuesOffset);
  if (!pages_.is_fp8()) return;
  pages_.key_scales = take_values("key scales", key_scales_, {heads_.num_kv_heads});
  pages_.value_scales = take_values("value scales", value_scales_, {heads_.num_kv_heads});
}

void AttentionInputs::take_batch(bool in_order) {
  const int64_t batch_size = case_.batch_size;
  block_tables_.resize(static_cast<size_t>(num_pages()));
  std::iota(block_tables_.begin(), block_tables_.end(), 0);
  if (!in_order) {
    std::shuffle(block_tables_.begin(), block_tables_.end(), std::mt19937_64(/*seed=*/2));
  }
  std::vector<int32_t> query_starts;
  for (int64_t i = 0; i <= batch_size; ++i) {
    query_starts.push_back(static_cast<int32_t>(i * case_.query_length));
  }
  const std::vector<int32_t> context_lengths(static_cast<size_t>(batch_size),
                                             static_cast<int32_t>(case_.context_length));
  query_starts_ = take_values("query starts", query_starts, {batch_size + 1});
  context_lengths_ = take_values("context lengths", context_lengths, {batch_size});
  device_block_tables_ =
      take_values("block tables", block_tables_, {num_sets_, batch_size, pages_per_sequence_});
}

void AttentionInputs::take_workspace() {
  workspace_bytes_ =
      operations_.attention_workspace_bytes({.max_tokens = query_.dim(0),
                                             .max_sequences = case_.batch_size,
                                             .max_context_length = case_.context_length,
                                             .num_heads = heads_.num_heads,
                                             .num_kv_heads = heads_.num_kv_heads,
                                             .head_dim = heads_.head_dim,
                                             .kv_dtype = kv_dtype_});
  const size_t elements = std::max<size_t>(ceil_divide(workspace_bytes_, sizeof(float)), 1);
  workspace_ = take("workspace", DType::kFloat32, {static_cast<int64_t>(elements)});
}

Tensor AttentionInputs::take(std::string_view name, DType dtype, const Shape& shape) {
  const auto bytes =
      checked_multiply(static_cast<size_t>(shape.num_elements()), size_of(dtype), name);
  buffers_.push_back(operations_.device().allocate(bytes, concat("the benchmark's ", name)));
  return {buffers_.back().data(), dtype, operations_.device().id(), shape};
}

template <typename T>
Tensor AttentionInputs::take_values(std::string_view name, const std::vector<T>& values,
                                    const Shape& shape) {
  const Tensor tensor = take(name, DTypeOf<T>::value, shape);
  operations_.device().upload(
      tensor, {const_cast<T*>(values.data()), tensor.dtype, DeviceType::kCpu, shape});
  return tensor;
}

int64_t AttentionInputs::num_pages() const {
  return num_sets_ * case_.batch_size * pages_per_sequence_;
}

AttentionParams AttentionInputs::params(int64_t set) const {
  const int64_t batch_size = case_.batch_size;
  AttentionParams params;
  params.query = query_;
  params.pages = pages_;
  params.batch.query_starts = query_starts_;
  params.batch.context_lengths = context_lengths_;
  params.batch.block_tables =
      device_block_tables_.slice(set, set + 1).reshape({batch_size, pages_per_sequence_});
  params.batch.num_sequences = batch_size;
  params.batch.num_decodes = case_.is_decode() ? batch_size : 0;
  params.batch.max_query_length = case_.query_length;
  params.batch.max_context_length = case_.context_length;
  params.scale = heads_.scale();
  params.softcap = heads_.softcap;
  params.causal = heads_.causal;
  params.sliding_window = heads_.sliding_window;
  params.workspace = workspace_;
  return params;
}

Tensor AttentionInputs::standard_out() const {
  return out_.reshape({case_.batch_size, heads_.num_heads, case_.query_length, heads_.head_dim});
}

StandardAttentionParams AttentionInputs::standard_params(int64_t set) const {
  const int64_t batch_size = case_.batch_size;
  const Shape shape{batch_size, heads_.num_kv_heads, case_.context_length, heads_.head_dim};
  // A set's pages may hold a few more tokens than its sequences: those are left over.
  const auto contiguous = [&](const Tensor& pages) {
    const int64_t pages_of_set = batch_size * pages_per_sequence_;
    const Tensor of_set = pages.slice(set * pages_of_set, (set + 1) * pages_of_set);
    return of_set.reshape({of_set.num_elements()}).slice(0, shape.num_elements()).reshape(shape);
  };
  StandardAttentionParams params;
  params.query = query_.reshape(standard_out().shape);
  params.keys = contiguous(pages_.keys);
  params.values = contiguous(pages_.values);
  params.scale = heads_.scale();
  params.softcap = heads_.softcap;
  params.causal = heads_.causal;
  params.sliding_window = heads_.sliding_window;
  return params;
}

}  // namespace tessera
