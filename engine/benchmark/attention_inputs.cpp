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

// Where in the pool the tensors begin.
constexpr int64_t kKeysOffset = NormalPool::kPeriod / 3;
constexpr int64_t kValuesOffset = NormalPool::kPeriod / 3 * 2;

static_assert(kMaxBenchmarkHeadDim <= NormalPool::kMaxRowSize);

int64_t sets_for(const AttentionCase& attention_case, double kv_bytes) {
  if (!attention_case.is_decode()) return 1;  // bound by arithmetic
  return std::clamp(static_cast<int64_t>(std::ceil(kBytesOfAllSets / kv_bytes)), int64_t{1},
                    kMaxSets);
}

}  // namespace

AttentionInputs::AttentionInputs(Operations& operations, const NormalPool& pool,
                                 const AttentionHeads& heads, const AttentionCase& attention_case,
                                 const PageLayout& layout)
    : operations_(operations),
      pool_(pool),
      heads_(heads),
      case_(attention_case),
      page_size_(layout.contiguous ? checked_round_up(attention_case.context_length, kLargestPage,
                                                      "the context length")
                                   : layout.page_size),
      pages_per_sequence_(ceil_divide(attention_case.context_length, page_size_)),
      num_sets_(sets_for(attention_case,
                         count_kv_bytes(heads, attention_case, operations.activation_dtype()))) {
  CHECK(heads.head_dim <= kMaxBenchmarkHeadDim, "heads of ", heads.head_dim,
        " dimensions, at most ", kMaxBenchmarkHeadDim);
  const DType dtype = operations.activation_dtype();
  const int64_t batch_size = case_.batch_size;
  const int64_t num_tokens =
      checked_multiply(batch_size, case_.query_length, "the number of queries");
  const int64_t num_pages = num_sets_ * batch_size * pages_per_sequence_;
  const Shape pages{num_pages, heads.num_kv_heads, page_size_, heads.head_dim};
  query_ = take("queries", dtype, {num_tokens, heads.num_heads, heads.head_dim});
  out_ = take("outputs", dtype, query_.shape);
  keys_ = take("keys", dtype, pages);
  values_ = take("values", dtype, pages);
  pool.fill(operations.device(), query_, 0);
  pool.fill(operations.device(), keys_, kKeysOffset);
  pool.fill(operations.device(), values_, kValuesOffset);

  block_tables_.resize(static_cast<size_t>(num_pages));
  std::iota(block_tables_.begin(), block_tables_.end(), 0);
  if (!layout.contiguous) {
    std::shuffle(block_tables_.begin(), block_tables_.end(), std::mt19937_64(/*seed=*/2));
  }
  std::vector<int32_t> query_starts;
  for (int64_t i = 0; i <= batch_size; ++i) {
    query_starts.push_back(static_cast<int32_t>(i * case_.query_length));
  }
  const auto context_length = static_cast<int32_t>(case_.context_length);
  query_starts_ = take("query starts", DType::kInt32, {batch_size + 1});
  context_lengths_ = take("context lengths", DType::kInt32, {batch_size});
  device_block_tables_ =
      take("block tables", DType::kInt32, {num_sets_, batch_size, pages_per_sequence_});
  upload_integers(query_starts_, query_starts);
  upload_integers(context_lengths_,
                  std::vector<int32_t>(static_cast<size_t>(batch_size), context_length));
  upload_integers(device_block_tables_, block_tables_);

  workspace_bytes_ =
      operations.attention_workspace_bytes({.max_tokens = num_tokens,
                                            .max_sequences = batch_size,
                                            .max_context_length = case_.context_length,
                                            .num_heads = heads.num_heads,
                                            .num_kv_heads = heads.num_kv_heads,
                                            .head_dim = heads.head_dim});
  const size_t elements = std::max<size_t>(ceil_divide(workspace_bytes_, sizeof(float)), 1);
  workspace_ = take("workspace", DType::kFloat32, {static_cast<int64_t>(elements)});
}

Tensor AttentionInputs::take(std::string_view name, DType dtype, const Shape& shape) {
  const auto bytes =
      checked_multiply(static_cast<size_t>(shape.num_elements()), size_of(dtype), name);
  buffers_.push_back(operations_.device().allocate(bytes, concat("the benchmark's ", name)));
  return {buffers_.back().data(), dtype, operations_.device().id(), shape};
}

void AttentionInputs::upload_integers(const Tensor& tensor, const std::vector<int32_t>& values) {
  operations_.device().upload(
      tensor, {const_cast<int32_t*>(values.data()), DType::kInt32, DeviceType::kCpu, tensor.shape});
}

AttentionParams AttentionInputs::params(int64_t set) const {
  const int64_t batch_size = case_.batch_size;
  AttentionParams params;
  params.query = query_;
  params.pages = {keys_, values_};
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
  params.keys = contiguous(keys_);
  params.values = contiguous(values_);
  params.scale = heads_.scale();
  params.softcap = heads_.softcap;
  params.causal = heads_.causal;
  params.sliding_window = heads_.sliding_window;
  return params;
}

int64_t AttentionInputs::query_row(const AttentionRow& row, bool standard) const {
  return standard ? (row.sequence * heads_.num_heads + row.head) * case_.query_length + row.query
                  : (row.sequence * case_.query_length + row.query) * heads_.num_heads + row.head;
}

int64_t AttentionInputs::key_row(const AttentionRow& row, int64_t token, bool standard) const {
  const int64_t kv_head = row.head / (heads_.num_heads / heads_.num_kv_heads);
  if (standard) {
    return (row.sequence * heads_.num_kv_heads + kv_head) * case_.context_length + token;
  }
  const auto entry = static_cast<size_t>(row.sequence * pages_per_sequence_ + token / page_size_);
  return (block_tables_[entry] * heads_.num_kv_heads + kv_head) * page_size_ + token % page_size_;
}

std::vector<double> AttentionInputs::exact_row(const AttentionRow& row, bool standard) const {
  const int64_t head_dim = heads_.head_dim;
  const KeyRange keys = visible_keys(heads_, case_, row.query);
  const float* const query = pool_.row(query_row(row, standard) * head_dim, 0);
  std::vector<double> weights;
  for (int64_t token = keys.begin; token < keys.end; ++token) {
    const float* const key = pool_.row(key_row(row, token, standard) * head_dim, kKeysOffset);
    double score = 0.0;
    for (int64_t d = 0; d < head_dim; ++d) {
      score += static_cast<double>(query[d]) * static_cast<double>(key[d]);
    }
    score *= heads_.scale();
    if (heads_.softcap > 0) score = heads_.softcap * std::tanh(score / heads_.softcap);
    weights.push_back(score);
  }
  const double largest = *std::max_element(weights.begin(), weights.end());
  double sum = 0.0;
  for (double& weight : weights) sum += weight = std::exp(weight - largest);

  std::vector<double> result(static_cast<size_t>(head_dim), 0.0);
  for (int64_t token = keys.begin; token < keys.end; ++token) {
    const float* const value = pool_.row(key_row(row, token, standard) * head_dim, kValuesOffset);
    const double weight = weights[static_cast<size_t>(token - keys.begin)] / sum;
    for (int64_t d = 0; d < head_dim; ++d) {
      result[static_cast<size_t>(d)] += weight * static_cast<double>(value[d]);
    }
  }
  return result;
}

std::vector<double> AttentionInputs::computed_row(const AttentionRow& row, bool standard) const {
  const int64_t head_dim = heads_.head_dim;
  const int64_t index = query_row(row, standard);
  const Tensor source = out_.reshape({out_.dim(0) * out_.dim(1), head_dim}).slice(index, index + 1);
  std::vector<float> storage(static_cast<size_t>(head_dim));  // large enough for every type
  const Tensor host{storage.data(), source.dtype, DeviceType::kCpu, source.shape};
  operations_.device().download(host, source);
  std::vector<double> result;
  for (int64_t d = 0; d < head_dim; ++d) {
    if (source.dtype == DType::kFloat32) {
      result.push_back(host.as<float>()[d]);
    } else if (source.dtype == DType::kBFloat16) {
      result.push_back(to_float(host.as<BFloat16>()[d]));
    } else {
      result.push_back(to_float(host.as<Float16>()[d]));
    }
  }
  return result;
}

}  // namespace tessera
