// The operations of a decoder, one by one: what they compute here is the definition, with which
// everything faster is compared (kernels/fused_operations.h, kernels/fused_decoder.h).
//
// Public functions check shapes, dtypes and devices once and then call the device's private
// implementation. Operations take effect in the order of calls and may return before that. Every
// tensor is on the operations' device and contiguous.
//
// Types: "activation" is activation_dtype(): float32 on the CPU, bfloat16 or float16 on CUDA. The
// residual stream and logits are float32 everywhere. Sums are accumulated in float32 or wider.
//
// The integers in tensors (token ids, rows, slots, pages, offsets) are on the device and are not
// checked: each has to lie within what it is an index of, unless an operation says otherwise.
#pragma once

#include <string>

#include "kernels/attention_params.h"
#include "kernels/block_spec.h"
#include "kernels/rope_params.h"
#include "kernels/sampling_params.h"
#include "kernels/tensor/tensor.h"
#include "kernels/weight_matrix.h"

namespace tessera {

class Device;
struct BackendLimits;

// Early reads. A device may begin an operation while the previous one, in the order of calls, ends,
// and read these of its inputs at once:
//   - weights, also of norms, biases, and RoPE tables;
//   - positions, slots, query starts, context lengths, block tables and shared prefixes;
//   - rows of KV pages of tokens before this step.
// So these inputs must be complete before the previous operation begins, and that operation may
// itself begin early. take_ids(), embed() and gather_rows() never begin early: they begin when
// all operations before them are complete. Therefore the engine copies a step's inputs
// (upload_inputs) before the first two, and a step writes KV rows of its own tokens only. Behind
// gather_rows(), attention may take tokens of this step for tokens before it.
class Operations {
 public:
  virtual ~Operations() = default;
  Operations(const Operations&) = delete;
  Operations& operator=(const Operations&) = delete;

  // The device on which they run, which outlives them.
  Device& device() const { return device_; }
  virtual DType activation_dtype() const = 0;
  // The dtype in which a weight matrix stored as `stored` is kept on this device.
  virtual DType weight_dtype(DType stored) const = 0;
  // For people: which attention kernels run for these sizes, and why.
  virtual std::string attention_description(const BackendLimits& limits) const = 0;
  // Scratch that attention needs within `limits`; AttentionParams::workspace is at least this.
  virtual size_t attention_workspace_bytes(const BackendLimits& limits) const = 0;

  // out[t] = multiplier * table[token_ids[t]]; an id below 0 stands for token 0: sample() leaves
  // kNonFiniteLogits where it draws no token
  //   out float32 [num_tokens, hidden_size], table [vocab_size, hidden_size],
  //   token_ids int32 [num_tokens]
  void embed(const Tensor& out, const WeightMatrix& table, const Tensor& token_ids,
             float multiplier = 1.0f);

  // ids[i] = drawn[from[i]] where from[i] >= 0, whatever was drawn; the others stay. Begins when
  // all before it is complete, as embed() does.
  //   ids int32 [num_ids], from int32 [num_ids], drawn int32 [num_drawn]
  void take_ids(const Tensor& ids, const Tensor& from, const Tensor& drawn);

  // out = x / sqrt(mean(x^2) + epsilon) * weight        (Zhang & Sennrich 2019)
  //   out activation [num_tokens, hidden_size], x float32 same shape, weight float32 [hidden_size]
  void rms_norm(const Tensor& out, const Tensor& x, const Tensor& weight, float epsilon);

  // out = (x - mean(x)) / sqrt(variance(x) + epsilon) * weight        (Ba et al. 2016)
  //   as in rms_norm()
  void layer_norm(const Tensor& out, const Tensor& x, const Tensor& weight, float epsilon);

  // rms_norm() or layer_norm()
  void norm(NormKind kind, const Tensor& out, const Tensor& x, const Tensor& weight, float epsilon);

  // residual += multiplier * rms_norm(x), without rounding to the activation type in between
  //   residual, x float32 [num_tokens, hidden_size], weight float32 [hidden_size]
  void rms_norm_add(const Tensor& residual, const Tensor& x, const Tensor& weight, float epsilon,
                    float multiplier = 1.0f);

  // out = x, rounded to the activation type
  //   out activation [num_tokens, hidden_size], x float32 same shape
  void cast(const Tensor& out, const Tensor& x);

  // out = x . weight^T + bias, the bias where the weight has one
  //   out activation or float32 [num_tokens, out_features], x activation [num_tokens, in_features]
  void linear(const Tensor& out, const Tensor& x, const WeightMatrix& weight);

  // residual += multiplier * (x . weight^T + bias)
  //   residual float32 [num_tokens, out_features]; the rest as in linear()
  void linear_add(const Tensor& residual, const Tensor& x, const WeightMatrix& weight,
                  float multiplier = 1.0f);

  // Splits qkv into heads, normalises queries and keys (where there are weights for it, each as
  // rms_norm() normalises a row), rotates both (Su et al. 2021, pairs j and j + head_dim / 2 as
  // Hugging Face checkpoints store them), scales queries by their position (where the block does)
  // and writes keys and values to their KV pages.
  void rope_store_kv(const RopeStoreKvParams& params);

  // Attention of every query token over its sequence's pages; never an N x N matrix.
  //   out activation [num_tokens, num_heads, head_dim]
  void attention(const Tensor& out, const AttentionParams& params);

  // out = activation(gate) * up, gate_up = [gate | up]        (Shazeer 2020)
  //   kSilu: x / (1 + exp(-x)),
  //   kGeluTanh: x / 2 * (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
  //   out activation [num_tokens, intermediate_size],
  //   gate_up activation [num_tokens, 2 * intermediate_size]
  void activate_mul(const Tensor& out, const Tensor& gate_up, Activation activation);

  // out[i] = x[rows[i]]. Begins when all before it is complete, as embed() does.
  //   out [num_rows, row_size] and x [num_tokens, row_size] both float32 or both activation,
  //   rows int32 [num_rows]
  void gather_rows(const Tensor& out, const Tensor& x, const Tensor& rows);

  // logits = cap * tanh(logits / cap), in place
  //   logits float32 [num_rows, vocab_size], cap above 0
  void softcap(const Tensor& logits, float cap);

  // Applies PenaltyBatch to logits float32 [num_sequences, vocab_size] in place.
  void penalize(const Tensor& logits, const PenaltyBatch& penalties);
  // Undoes penalize() bit by bit. Takes the same batch, whose `before` must not be empty.
  void restore_penalized(const Tensor& logits, const PenaltyBatch& penalties);

  // tokens[s] = a draw from logits[s] by SamplingBatch, or kNonFiniteLogits.
  //   tokens int32 [num_sequences], logits float32 [num_sequences, vocab_size]
  void sample(const Tensor& tokens, const Tensor& logits, const SamplingBatch& sampling);

  // What LogprobBatch says of logits float32 [num_sequences, vocab_size].
  void logprobs(const Tensor& logits, const LogprobBatch& batch);

 protected:
  explicit Operations(Device& device) : device_(device) {}

 private:
  virtual void embed_impl(const Tensor& out, const WeightMatrix& table, const Tensor& token_ids,
                          float multiplier) = 0;
  virtual void take_ids_impl(const Tensor& ids, const Tensor& from, const Tensor& drawn) = 0;
  virtual void rms_norm_impl(const Tensor& out, const Tensor& x, const Tensor& weight,
                             float epsilon) = 0;
  virtual void layer_norm_impl(const Tensor& out, const Tensor& x, const Tensor& weight,
                               float epsilon) = 0;
  virtual void rms_norm_add_impl(const Tensor& residual, const Tensor& x, const Tensor& weight,
                                 float epsilon, float multiplier) = 0;
  virtual void cast_impl(const Tensor& out, const Tensor& x) = 0;
  // linear_add() to `out` if `accumulate`; else linear(), with a multiplier of 1
  virtual void linear_impl(const Tensor& out, const Tensor& x, const WeightMatrix& weight,
                           bool accumulate, float multiplier) = 0;
  virtual void rope_store_kv_impl(const RopeStoreKvParams& params) = 0;
  virtual void attention_impl(const Tensor& out, const AttentionParams& params) = 0;
  virtual void activate_mul_impl(const Tensor& out, const Tensor& gate_up,
                                 Activation activation) = 0;
  virtual void gather_rows_impl(const Tensor& out, const Tensor& x, const Tensor& rows) = 0;
  virtual void softcap_impl(const Tensor& logits, float cap) = 0;
  virtual void penalize_impl(const Tensor& logits, const PenaltyBatch& penalties) = 0;
  virtual void restore_penalized_impl(const Tensor& logits, const PenaltyBatch& penalties) = 0;
  virtual void sample_impl(const Tensor& tokens, const Tensor& logits,
                           const SamplingBatch& sampling) = 0;
  virtual void logprobs_impl(const Tensor& logits, const LogprobBatch& batch) = 0;

  Device& device_;
};

}  // namespace tessera
