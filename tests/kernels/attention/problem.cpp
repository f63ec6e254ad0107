#include "tests/kernels/attention/problem.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "tests/kernels/deadline.h"
#include "tests/kernels/e4m3.h"
#include "tests/kernels/random_values.h"

namespace tessera {
namespace {

constexpr int32_t kAbsurdPage = 0x3fffffff;
constexpr int64_t kSparePages = 3;
constexpr int64_t kSpareTableEntries = 2;
constexpr int64_t kManyTokens = int64_t{1} << 40;

// Of float8_e4m3 pages: powers of two, of keys and of values. The first leave the usual number
// among the subnormals of e4m3, the last cut a few off.
std::vector<double> fp8_scales(const AttentionSize& size, bool of_values) {
  std::vector<double> scales;
  for (int64_t head = 0; head < size.num_kv_heads; ++head) {
    const auto step = static_cast<int>((head + (of_values ? 1 : 0)) % 3);
    scales.push_back(std::ldexp(1.0, 5 - 6 * step));  // 32, 1/2, 1/128
  }
  return scales;
}

// Keys or values [num_tokens, num_kv_heads, head_dim] as their pages will hold them.
std::vector<double> stored(std::vector<double> tokens, const AttentionSize& size, bool of_values,
                           DType dtype) {
  tokens = rounded(rounded(std::move(tokens), size.kv_dtype), dtype);
  if (!size.fp8_pages) return tokens;
  const std::vector<double> scales = fp8_scales(size, of_values);
  for (size_t i = 0; i < tokens.size(); ++i) {
    const size_t head = i / static_cast<size_t>(size.head_dim) % scales.size();
    tokens[i] = rounded_e4m3(tokens[i], scales[head]);
  }
  return tokens;
}

// Pages on the host. Rows where no token was written are by turns NaN and infinite: a kernel that
// takes the maximum of what it should not have read may lose the one, but not the other.
class HostPages {
 public:
  HostPages(int64_t num_pages, const AttentionSize& size) : size_(size) {
    const int64_t num_rows = num_pages * size.num_kv_heads * size.page_size;
    values_.reserve(static_cast<size_t>(num_rows * size.head_dim));
    for (int64_t row = 0; row < num_rows; ++row) {
      values_.insert(values_.end(), static_cast<size_t>(size.head_dim),
                     row % 2 == 0 ? std::numeric_limits<double>::quiet_NaN()
                                  : std::numeric_limits<double>::infinity());
    }
  }

  // tokens: [num_tokens, num_kv_heads, head_dim], token t goes to page pages[t / page_size].
  void write(const std::vector<double>& tokens, const std::vector<int32_t>& pages) {
    const int64_t num_rows = static_cast<int64_t>(tokens.size()) / size_.head_dim;
    for (int64_t i = 0; i < num_rows; ++i) {
      const int64_t token = i / size_.num_kv_heads;
      const int64_t head = i % size_.num_kv_heads;
      const int64_t page = pages[static_cast<size_t>(token / size_.page_size)];
      const int64_t row =
          (page * size_.num_kv_heads + head) * size_.page_size + token % size_.page_size;
      std::copy_n(tokens.begin() + i * size_.head_dim, size_.head_dim,
                  values_.begin() + row * size_.head_dim);
    }
  }

  const std::vector<double>& values() const { return values_; }

  std::vector<Float8E4M3> fp8_values(const std::vector<double>& scales) const {
    std::vector<Float8E4M3> codes;
    const int64_t head_elements = size_.page_size * size_.head_dim;
    for (size_t i = 0; i < values_.size(); ++i) {
      const size_t head = i / static_cast<size_t>(head_elements) % scales.size();
      codes.push_back({nearest_e4m3(values_[i] / scales[head])});
    }
    return codes;
  }

 private:
  AttentionSize size_;
  std::vector<double> values_;
};

}  // namespace

AttentionProblem::AttentionProblem(Backend& backend, const AttentionSize& size,
                                   const std::vector<SequenceSize>& sequences, uint64_t seed)
    : backend_(backend), size_(size), sequence_sizes_(sequences) {
  const DType dtype = backend.operations().activation_dtype();
  const auto num_sequences = static_cast<int64_t>(sequences.size());
  RandomValues random(seed);
  for (const SequenceSize& sequence : sequences) {
    if (sequence.query_length > size.max_decode_query_length) break;
    ++num_decodes_;
    num_decode_keys_ += sequence.context_length;
    max_decode_query_length_ = std::max(max_decode_query_length_, sequence.query_length);
  }

  int64_t num_pages = kSparePages;
  std::vector<double> query;
  std::vector<int32_t> query_starts = {0}, context_lengths;
  for (const auto& [query_length, context_length] : sequences) {
    const int64_t kv_elements = context_length * size.num_kv_heads * size.head_dim;
    const int64_t query_elements = query_length * size.num_heads * size.head_dim;
    sequences_.push_back({rounded(random.normal(query_elements, size.query_deviation), dtype),
                          stored(random.normal(kv_elements), size, false, dtype),
                          stored(random.normal(kv_elements), size, true, dtype)});
    query.insert(query.end(), sequences_.back().queries.begin(), sequences_.back().queries.end());
    num_tokens_ += query_length;
    num_pages += ceil_divide(context_length, size.page_size);
    query_starts.push_back(static_cast<int32_t>(num_tokens_));
    context_lengths.push_back(static_cast<int32_t>(context_length));
    if (std::ssize(context_lengths) > num_decodes_) {
      num_prefill_scores_ += query_length * context_length;
    }
    max_query_length_ = std::max(max_query_length_, query_length);
    max_context_length_ = std::max(max_context_length_, context_length);
  }

  const int64_t table_width = ceil_divide(max_context_length_, size.page_size) + kSpareTableEntries;
  std::vector<int32_t> block_tables(static_cast<size_t>(num_sequences * table_width), kAbsurdPage);
  std::vector<int32_t> order = random.permutation(num_pages);
  if (size.pages_in_order) std::iota(order.begin(), order.end(), 0);
  HostPages keys(num_pages, size), values(num_pages, size);
  auto next_page = order.begin();
  std::vector<std::vector<int32_t>> pages;
  for (const SequenceSize& sequence : sequences) {
    const int64_t used = ceil_divide(sequence.context_length, size.page_size);
    pages.emplace_back(next_page, next_page + used);
    next_page += used;
  }
  share_prefixes(pages);
  for (int64_t s = 0; s < num_sequences; ++s) {
    const auto index = static_cast<size_t>(s);
    keys.write(sequences_[index].keys, pages[index]);
    values.write(sequences_[index].values, pages[index]);
    std::ranges::copy(pages[index], block_tables.begin() + s * table_width);
  }

  const Shape page_shape{num_pages, size.num_kv_heads, size.page_size, size.head_dim};
  if (size.fp8_pages) {
    const auto take = [&](const HostPages& pages, bool of_values, DeviceTensor& scales) {
      const std::vector<double> of_heads = fp8_scales(size, of_values);
      scales = to_device(backend, of_heads, DType::kFloat32, {size.num_kv_heads});
      return fp8_to_device(backend, pages.fp8_values(of_heads), page_shape);
    };
    keys_ = take(keys, false, key_scales_);
    values_ = take(values, true, value_scales_);
  } else {
    keys_ = to_device(backend, keys.values(), dtype, page_shape);
    values_ = to_device(backend, values.values(), dtype, page_shape);
  }
  query_ = to_device(backend, query, dtype, {num_tokens_, size.num_heads, size.head_dim});
  query_starts_ = to_device(backend, query_starts, {num_sequences + 1});
  context_lengths_ = to_device(backend, context_lengths, {num_sequences});
  block_tables_ = to_device(backend, block_tables, {num_sequences, table_width});
  // The smallest limits that this step keeps, hence the smallest workspace.
  const size_t workspace_bytes = backend.operations().attention_workspace_bytes(
      {.max_tokens = num_tokens_,
       .max_sequences = num_sequences,
       .max_context_length = max_context_length_,
       .num_heads = size.num_heads,
       .num_kv_heads = size.num_kv_heads,
       .head_dim = size.head_dim,
       .kv_dtype = size.fp8_pages ? KvDType::kFloat8E4M3 : KvDType::kActivation});
  workspace_ = poisoned(backend, DType::kFloat32,
                        {static_cast<int64_t>(ceil_divide(workspace_bytes, sizeof(float)))});
}

// The members of a group get the tokens and the pages of its first.
void AttentionProblem::share_prefixes(std::vector<std::vector<int32_t>>& pages) {
  if (size_.shared.empty()) return;
  std::vector<int32_t> starts = {0}, lengths, own_begins;
  for (const auto& [num_decodes, length] : size_.shared) {
    const auto first = static_cast<size_t>(starts.back());
    const ReferenceSequence& source = sequences_[first];
    for (size_t member = first; member < first + static_cast<size_t>(num_decodes); ++member) {
      own_begins.push_back(static_cast<int32_t>(length));
      if (member == first) continue;
      const int64_t elements = length * size_.num_kv_heads * size_.head_dim;
      std::copy_n(source.keys.begin(), elements, sequences_[member].keys.begin());
      std::copy_n(source.values.begin(), elements, sequences_[member].values.begin());
      std::copy_n(pages[first].begin(), length / size_.page_size, pages[member].begin());
    }
    starts.push_back(static_cast<int32_t>(starts.back() + num_decodes));
    lengths.push_back(static_cast<int32_t>(length));
  }
  own_begins.resize(static_cast<size_t>(num_decodes_));
  const auto num_groups = static_cast<int64_t>(lengths.size());
  group_starts_ = to_device(backend_, starts, {num_groups + 1});
  shared_lengths_ = to_device(backend_, lengths, {num_groups});
  own_begins_ = to_device(backend_, own_begins, {num_decodes_});
}

AttentionParams AttentionProblem::params() const {
  return {.query = query_,
          .pages = {keys_.view, values_.view, key_scales_.view, value_scales_.view},
          .batch = {.query_starts = query_starts_,
                    .context_lengths = context_lengths_,
                    .block_tables = block_tables_,
                    .num_sequences = static_cast<int64_t>(sequences_.size()),
                    .num_decodes = num_decodes_,
                    .max_decode_query_length = max_decode_query_length_,
                    .max_query_length = max_query_length_,
                    .max_context_length = max_context_length_,
                    .num_decode_keys = num_decode_keys_,
                    .num_prefill_scores = num_prefill_scores_,
                    .shared = {.group_starts = group_starts_,
                               .lengths = shared_lengths_,
                               .own_begins = own_begins_,
                               .num_groups = static_cast<int64_t>(size_.shared.size()),
                               .spared_tokens = size_.shared.empty() ? 0 : kManyTokens}},
          .scale = static_cast<float>(reference_params().scale),
          .softcap = static_cast<float>(size_.softcap),
          .causal = size_.causal,
          .sliding_window = size_.sliding_window,
          .workspace = workspace_};
}

ReferenceAttentionParams AttentionProblem::reference_params() const {
  const double scale =
      size_.scale > 0.0 ? size_.scale : 1.0 / std::sqrt(static_cast<double>(size_.head_dim));
  return {.num_heads = size_.num_heads,
          .num_kv_heads = size_.num_kv_heads,
          .head_dim = size_.head_dim,
          .scale = static_cast<float>(scale),
          .softcap = size_.softcap,
          .causal = size_.causal,
          .sliding_window = size_.sliding_window};
}

std::string AttentionProblem::description() const {
  return concat(size_.fp8_pages ? "float8_e4m3, " : "", size_.num_heads, "/", size_.num_kv_heads,
                " heads of ", size_.head_dim, ", pages of ", size_.page_size,
                size_.causal ? ", causal" : ", not causal", ", window ", size_.sliding_window,
                ", softcap ", size_.softcap, ", scale ", reference_params().scale, ", ",
                num_decodes_, " decodes of ", sequence_sizes_.size(), " sequences, ",
                size_.shared.size(), " groups that share prefixes");
}

void AttentionProblem::run_into(const Tensor& out) const {
  const Deadline deadline("attention, " + description());
  backend_.operations().attention(out, params());
  backend_.device().synchronize();
}

DeviceTensor AttentionProblem::run() const {
  DeviceTensor out =
      poisoned(backend_, backend_.operations().activation_dtype(), query_.view.shape);
  run_into(out);
  return out;
}

void AttentionProblem::check() const {
  SCOPED_TRACE(description());
  const DeviceTensor out = run();
  int64_t begin = 0;
  for (size_t s = 0; s < sequences_.size(); ++s) {
    const auto& [query_length, context_length] = sequence_sizes_[s];
    SCOPED_TRACE(testing::Message() << "sequence " << s << ": " << query_length << " queries of "
                                    << context_length << " tokens");
    if (query_length > 0) check_sequence(s, out.view.slice(begin, begin + query_length));
    begin += query_length;
  }
}

// Over float8_e4m3 pages, 16-bit backends may take weights below 2^-31 of the largest for zero. It
// shows where the value of the largest weight is zero.
double AttentionProblem::lost_weights(size_t index) const {
  if (!size_.fp8_pages || backend_.operations().activation_dtype() == DType::kFloat32) return 0.0;
  double largest = 0.0;
  for (const double value : sequences_[index].values) largest = std::max(largest, std::abs(value));
  return 0x1p-31 * static_cast<double>(sequence_sizes_[index].context_length) * largest;
}

void AttentionProblem::check_sequence(size_t index, const Tensor& out) const {
  const DType dtype = backend_.operations().activation_dtype();
  const ReferenceAttentionParams params = reference_params();
  const ReferenceAttention reference = reference_attention(sequences_[index], params);
  const std::vector<double> actual = to_host(backend_, out);
  // A probability is wrong by the error of its score, which is a float32 sum over head_dim of
  // terms that add up to largest_score; tanh is allowed 2^-21, and a softcap multiplies it. 16-bit
  // backends also round probabilities for the tensor cores.
  const double of_score = 2.0 * unit_roundoff(DType::kFloat32) *
                              std::sqrt(static_cast<double>(params.head_dim)) *
                              (1.0 + reference.largest_score) +
                          0x1p-21 * params.softcap;
  const double of_probability = dtype == DType::kFloat32 ? 0.0 : unit_roundoff(dtype);
  const int64_t context_length = sequence_sizes_[index].context_length;
  expect_close(actual, reference.out, out.shape,
               {.out = dtype,
                .length = context_length,
                .relative = of_score + of_probability,
                .absolute = lost_weights(index)});
  if (dtype == DType::kFloat32) return;
  // Where probabilities are rounded, the rule above is generous to long contexts: their errors
  // cancel as their terms do. FlashAttention's own tests ask for this much, from the same kind of
  // comparison.
  expect_as_exact(actual, reference.out.values, rounded_attention(sequences_[index], params, dtype),
                  params.softcap > 0.0 ? 3.0 : 2.0, dtype, out.shape);
}

void AttentionProblem::check_repeats(int64_t repeats) const {
  SCOPED_TRACE(description());
  const DType dtype = backend_.operations().activation_dtype();
  const std::vector<uint8_t> first = bytes_of(backend_, run());
  const std::vector<uint8_t> poison =
      bytes_of(backend_, poisoned(backend_, dtype, query_.view.shape));
  const DeviceTensor out = poisoned(backend_, dtype, query_.view.shape);
  std::vector<uint8_t> bytes = poison;
  const Tensor host{bytes.data(), dtype, DeviceType::kCpu, query_.view.shape};
  const Deadline deadline(concat(repeats, " times attention, ", description()),
                          std::chrono::minutes(5));
  for (int64_t repeat = 1; repeat < repeats; ++repeat) {
    bytes = poison;
    backend_.device().upload(out, host);
    backend_.operations().attention(out, params());
    backend_.device().download(host, out);
    ASSERT_TRUE(bytes == first) << "run " << repeat << " differs from the first";
  }
}

}  // namespace tessera
