#include "kernels/argument_check.h"

namespace tessera {

void ArgumentCheck::matrix(std::string_view name, const WeightMatrix& matrix) const {
  CHECK(matrix.format == WeightFormat::kDense, operation_, ": ", name, " is in format ",
        to_string(matrix.format), ", expected ", to_string(WeightFormat::kDense));
  rank(name, matrix.data, 2);
  shape(name, matrix.data, {matrix.out_features, matrix.in_features});
}

void ArgumentCheck::product(std::string_view out_name, const Tensor& out, const Tensor& x,
                            const WeightMatrix& weight) const {
  rank("x", x, 2);
  matrix("weight", weight);
  (*this)("x", x, activation_, x.shape);
  shape("weight", weight.data, {weight.out_features, x.dim(1)});
  shape(out_name, out, {x.dim(0), weight.out_features});
}

void ArgumentCheck::pages(const KvPages& pages) const {
  rank("key pages", pages.keys, 4);
  (*this)("key pages", pages.keys, activation_, pages.keys.shape);
  (*this)("value pages", pages.values, activation_, pages.keys.shape);
}

void ArgumentCheck::rope(const RopeStoreKvParams& params) const {
  pages(params.pages);
  rank("query", params.query, 3);
  const int64_t num_tokens = params.query.dim(0);
  const int64_t num_heads = params.query.dim(1);
  const int64_t head_dim = params.pages.head_dim();
  (*this)("query", params.query, activation_, {num_tokens, num_heads, head_dim});
  (*this)("qkv", params.qkv, activation_,
          {num_tokens, (num_heads + 2 * params.pages.num_kv_heads()) * head_dim});
  (*this)("positions", params.positions, DType::kInt32, {num_tokens});
  (*this)("kv_slots", params.kv_slots, DType::kInt32, {num_tokens});
  (*this)("inverse_frequencies", params.inverse_frequencies, DType::kFloat32, {head_dim / 2});
  if (params.qk_norm.shape.rank() > 0) {
    (*this)("qk_norm", params.qk_norm, DType::kFloat32, {2 * head_dim});
  }
  CHECK(head_dim % 2 == 0, operation_, ": head_dim is ", head_dim, ", expected an even number");
}

}  // namespace tessera
