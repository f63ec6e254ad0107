#include "kernels/cpu/split_linear.h"

#include <algorithm>
#include <array>
#include <dnnl.hpp>
#include <map>

#include "kernels/cpu/single_threaded_library.h"
#include "kernels/cpu/vectors.h"
#include "kernels/tensor/checked_math.h"

namespace tessera {
namespace {

constexpr int64_t kParts = 3;
// Output features that are computed at a time: with the sums of a block they stay in the
// second-level cache.
constexpr int64_t kPanelRows = 128;
// Tokens that are computed at a time, of which there are few sizes, as oneDNN compiles code for
// each (0.5 ms). 64 tokens, 192 rows of parts, are as fast as more.
constexpr int64_t kBlockTokens = 64;
constexpr int64_t kSmallBlockTokens = 32;
// Tokens whose parts are in memory at a time.
constexpr int64_t kRoundTokens = 512;
// Of the time that float32 vectors take.
constexpr double kShareOfVectorTime = 0.5;

int64_t padded_block(int64_t num_tokens) {
  return num_tokens <= kSmallBlockTokens ? kSmallBlockTokens : kBlockTokens;
}

// parts[p][i], `stride` apart for each p: the 8 highest significant bits of x[i], the next 8, the
// rest.
struct SplitRow {
  template <int kLanes>
  VECTOR_INLINE static void run(const float* x, int64_t size, int64_t stride, BFloat16* parts) {
    using Vector = VectorOf<kLanes>;
    for (int64_t i = 0; i < size; i += kLanes) {
      const int64_t count = std::min<int64_t>(kLanes, size - i);
      typename Vector::Floats rest;
      load_first(x + i, count, rest);
      for (int64_t part = 0; part < kParts; ++part) {
        const typename Vector::Bits high = (typename Vector::Bits)rest & 0xffff0000u;
        rest -= (typename Vector::Floats)high;
        const typename Vector::HalfBits halves =
            __builtin_convertvector(high >> 16, typename Vector::HalfBits);
        std::memcpy(parts + part * stride + i, &halves,
                    static_cast<size_t>(count) * sizeof(BFloat16));
      }
    }
  }
};

// out = what the epilogue makes of the parts' sums, `stride` apart; bias of these elements.
struct AddParts {
  template <int kLanes>
  VECTOR_INLINE static void run(const float* sums, int64_t size, int64_t stride,
                                const LinearEpilogue& epilogue, const float* bias, float* out) {
    typename VectorOf<kLanes>::Floats parts[kParts], lanes;
    for (int64_t i = 0; i < size; i += kLanes) {
      const int64_t count = std::min<int64_t>(kLanes, size - i);
      for (int64_t part = 0; part < kParts; ++part) {
        load_first(sums + part * stride + i, count, parts[part]);
      }
      parts[0] += parts[2] + parts[1];
      if (bias != nullptr) {
        load_first(bias + i, count, lanes);
        parts[0] += lanes;
      }
      if (epilogue.accumulate) {
        load_first(out + i, count, lanes);
        parts[0] = lanes + parts[0] * epilogue.multiplier;
      }
      store_first(parts[0], count, out + i);
    }
  }
};

}  // namespace

class SplitLinear::Products {
 public:
  // sums [num_rows, panel_rows] = parts [num_rows, in_features] . panel^T, a part of the weights
  // [panel_rows, in_features].
  void run(int64_t num_rows, int64_t panel_rows, int64_t in_features, BFloat16* parts,
           BFloat16* panel, float* sums) {
    const std::array shape = {num_rows, panel_rows, in_features};
    auto found = products_.find(shape);
    if (found == products_.end()) {
      found = products_.emplace(shape, compile(num_rows, panel_rows, in_features)).first;
    }
    Product& product = found->second;
    product.parts.set_data_handle(parts);
    product.panel.set_data_handle(panel);
    product.sums.set_data_handle(sums);
    product.matmul.execute(stream_, {{DNNL_ARG_SRC, product.parts},
                                     {DNNL_ARG_WEIGHTS, product.panel},
                                     {DNNL_ARG_DST, product.sums},
                                     {DNNL_ARG_SCRATCHPAD, product.scratchpad}});
  }

 private:
  struct Product {
    dnnl::matmul matmul;
    dnnl::memory parts, panel, sums, scratchpad;
  };

  Product compile(int64_t num_rows, int64_t panel_rows, int64_t in_features) const {
    using Memory = dnnl::memory;
    const auto bfloat16 = Memory::data_type::bf16;
    const Memory::desc parts({num_rows, in_features}, bfloat16, Memory::format_tag::ab);
    const Memory::desc panel({in_features, panel_rows}, bfloat16, Memory::format_tag::ba);
    const Memory::desc sums({num_rows, panel_rows}, Memory::data_type::f32, Memory::format_tag::ab);
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const dnnl::matmul::primitive_desc description({parts, panel, sums}, attributes, engine_);
    return {.matmul = dnnl::matmul(description),
            .parts = Memory(parts, engine_, nullptr),
            .panel = Memory(panel, engine_, nullptr),
            .sums = Memory(sums, engine_, nullptr),
            .scratchpad = Memory(description.scratchpad_desc(), engine_)};
  }

  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  std::map<std::array<int64_t, 3>, Product> products_;
};

SplitLinear::SplitLinear(int num_threads) : products_(static_cast<size_t>(num_threads)) {}

SplitLinear::~SplitLinear() = default;

bool SplitLinear::takes(DType weight) {
  static const bool has_unit = dnnl::get_effective_cpu_isa() == dnnl::cpu_isa::avx512_core_amx;
  return has_unit && weight == DType::kBFloat16 && vector_level() == VectorLevel::kAvx512;
}

void SplitLinear::run(const Tensor& out, const Tensor& x, const Tensor& weight,
                      const LinearEpilogue& epilogue, ThreadScratch& scratch, ThreadPool& pool) {
  const int64_t in_features = x.dim(1);
  const int64_t out_features = weight.dim(0);
  const int64_t num_panels = ceil_divide(out_features, kPanelRows);
  const double panel_nanoseconds = kShareOfVectorTime * kNanosecondsPerMultiplyAdd *
                                   static_cast<double>(kBlockTokens * kPanelRows * in_features);
  const double split_nanoseconds = kNanosecondsPerByte * static_cast<double>(in_features) *
                                   (sizeof(float) + kParts * sizeof(BFloat16));
  for (int64_t begin = 0; begin < x.dim(0); begin += kRoundTokens) {
    const int64_t num_tokens = std::min(kRoundTokens, x.dim(0) - begin);
    const int64_t num_blocks = ceil_divide(num_tokens, kBlockTokens);
    // A block's parts are behind each other: [kParts, its tokens with padding, in_features].
    const int64_t block_elements = kParts * kBlockTokens * in_features;
    BFloat16* const parts = parts_.get<BFloat16>(num_blocks * block_elements);
    const auto tokens_of = [&](int64_t block) {
      return std::min(kBlockTokens, num_tokens - block * kBlockTokens);
    };
    pool.for_each(num_tokens, split_nanoseconds, [&](int64_t token) {
      const int64_t block = token / kBlockTokens;
      run_vectorized<SplitRow>(x.as<float>() + (begin + token) * in_features, in_features,
                               padded_block(tokens_of(block)) * in_features,
                               parts + block * block_elements + token % kBlockTokens * in_features);
    });
    pool.for_each(num_panels * num_blocks, panel_nanoseconds, [&](int64_t i, int thread) {
      const int64_t block = i % num_blocks;  // a panel's weights are read for all of them
      const int64_t row = i / num_blocks * kPanelRows;
      const int64_t panel_rows = std::min(kPanelRows, out_features - row);
      const int64_t padded_tokens = padded_block(tokens_of(block));
      float* const sums = scratch.get<float>(thread, kParts * kBlockTokens * kPanelRows);
      std::unique_ptr<Products>& products = products_[static_cast<size_t>(thread)];
      const SingleThreadedLibrary single_threaded;
      if (products == nullptr) products = std::make_unique<Products>();
      products->run(kParts * padded_tokens, panel_rows, in_features, parts + block * block_elements,
                    weight.as<BFloat16>() + row * in_features, sums);
      for (int64_t t = 0; t < tokens_of(block); ++t) {
        const int64_t token = begin + block * kBlockTokens + t;
        run_vectorized<AddParts>(sums + t * panel_rows, panel_rows, padded_tokens * panel_rows,
                                 epilogue, epilogue.bias == nullptr ? nullptr : epilogue.bias + row,
                                 out.as<float>() + token * out_features + row);
      }
    });
  }
}

}  // namespace tessera
