// Single rows of the attention that AttentionInputs describe: exact, and as the device computed
// them.
#include <algorithm>
#include <cmath>

#include "engine/benchmark/attention_inputs.h"
#include "kernels/device.h"

namespace tessera {

int64_t AttentionInputs::query_row(const AttentionRow& row, bool standard) const {
  return standard ? (row.sequence * heads_.num_heads + row.head) * case_.query_length + row.query
                  : (row.sequence * case_.query_length + row.query) * heads_.num_heads + row.head;
}

int64_t AttentionInputs::key_row(const AttentionRow& row, int64_t token, bool standard) const {
  if (standard) {
    return (row.sequence * heads_.num_kv_heads + kv_head(row)) * case_.context_length + token;
  }
  const auto entry = static_cast<size_t>(row.sequence * pages_per_sequence_ + token / page_size_);
  return (block_tables_[entry] * heads_.num_kv_heads + kv_head(row)) * page_size_ +
         token % page_size_;
}

int64_t AttentionInputs::kv_head(const AttentionRow& row) const {
  return row.head / (heads_.num_heads / heads_.num_kv_heads);
}

std::vector<double> AttentionInputs::exact_row(const AttentionRow& row, bool standard) const {
  const int64_t head_dim = heads_.head_dim;
  const KeyRange keys = visible_keys(heads_, case_, row.query);
  const auto head = static_cast<size_t>(kv_head(row));
  const double scale = static_cast<double>(key_scales_[head]) * heads_.scale();
  const float* const query = query_pool_.row(query_row(row, standard) * head_dim, 0);
  std::vector<double> weights;
  for (int64_t token = keys.begin; token < keys.end; ++token) {
    const float* const key = kv_pool_.row(key_row(row, token, standard) * head_dim, kKeysOffset);
    double score = 0.0;
    for (int64_t d = 0; d < head_dim; ++d) {
      score += static_cast<double>(query[d]) * static_cast<double>(key[d]);
    }
    score *= scale;
    if (heads_.softcap > 0) score = heads_.softcap * std::tanh(score / heads_.softcap);
    weights.push_back(score);
  }
  const double largest = *std::max_element(weights.begin(), weights.end());
  double sum = 0.0;
  for (double& weight : weights) sum += weight = std::exp(weight - largest);

  std::vector<double> result(static_cast<size_t>(head_dim), 0.0);
  for (int64_t token = keys.begin; token < keys.end; ++token) {
    const float* const value =
        kv_pool_.row(key_row(row, token, standard) * head_dim, kValuesOffset);
    const double weight =
        weights[static_cast<size_t>(token - keys.begin)] / sum * value_scales_[head];
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
