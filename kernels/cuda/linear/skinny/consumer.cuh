// The multiplying side of the skinny product: the work of a warpgroup. tiles.cuh has the terms.
#pragma once

#include "kernels/cuda/linear/quads.cuh"
#include "kernels/cuda/linear/skinny/rope.cuh"
#include "kernels/cuda/linear/skinny/scales.cuh"
#include "kernels/cuda/linear/skinny/tiles.cuh"
#include "kernels/cuda/primitives/activation.cuh"
#include "kernels/cuda/primitives/cluster.cuh"
#include "kernels/cuda/primitives/element.cuh"
#include "kernels/cuda/primitives/ring_position.cuh"
#include "kernels/cuda/primitives/wgmma_narrow.cuh"

namespace tessera {

template <typename Config, typename Out>
struct SkinnyConsumer {
  using Element = typename Config::Element;

  SkinnyShared<Config>& shared;
  const SkinnyArguments& arguments;
  const SkinnyShare<Config>& share;
  RingPosition weights, tokens;
  // Factors of the sums of the lane's two tokens.
  float2 scales = {arguments.multiplier, arguments.multiplier};
  using Sums = float[Config::kSums];
  Sums sums[Config::kTilesAtOnce];
  SkinnyRotation<Config> rotation;

  __device__ void release(int weight_stage, int token_stage, bool releases_tokens) const {
    if (!arrives_for_warp(lane_index())) return;
    mbarrier_arrive(&shared.weight_barriers.empty[weight_stage]);
    if (releases_tokens) mbarrier_arrive(&shared.token_barriers.empty[token_stage]);
  }

  // Starts the products of one step of a tile, as one group of tensor-core instructions.
  __device__ __forceinline__ void multiply_step(Sums& tile_sums, bool accumulate) {
    const int token_panel_bytes = arguments.token_panel_rows * kPanelRowBytes;
    const auto a = MatrixDescriptor::of_rows(
        shared.tokens + tokens.stage * kStepPanels * arguments.token_panel_rows * kPanelColumns);
    const auto b = MatrixDescriptor::of_rows(shared.weights[weights.stage], kBoxBytes);
    wgmma_fence();
#pragma unroll
    for (int panel = 0; panel < kStepPanels; ++panel) {
#pragma unroll
      for (int feature = 0; feature < kPanelColumns; feature += 16) {
        const int bytes = feature * static_cast<int>(sizeof(Element));
        wgmma_all_rows<Element, Config::kRows, kBoxBytes>(
            tile_sums, a.advanced(panel * token_panel_bytes + bytes), b,
            panel * kBoxRows * kPanelRowBytes + bytes, accumulate || panel > 0 || feature > 0);
      }
    }
    wgmma_commit();
  }

  // Computes `sums`: the products of the block's steps of kTiles tiles, side by side.
  template <int kTiles>
  __device__ __forceinline__ void multiply() {
    for (int step = 0; step < share.num_steps; ++step) {
      mbarrier_wait(&shared.token_barriers.full[tokens.stage], tokens.parity);
#pragma unroll
      for (int i = 0; i < kTiles; ++i) {
        mbarrier_wait(&shared.weight_barriers.full[weights.stage], weights.parity);
        multiply_step(sums[i], step > 0);
        // Waits for the products at once to free their stages: stages are scarcer than the tensor
        // cores' time.
        wgmma_wait<0>();
        pin_registers(sums[i]);
        release(weights.stage, tokens.stage, i + 1 == kTiles);
        weights.advance(1, Config::kWeightStages);
      }
      tokens.advance(1, arguments.num_token_stages);
    }
  }

  // A lane has sums of two tokens: this one and the one 8 further on.
  __device__ int first_token() const { return warp_index() * 16 + lane_index() / 4; }
  __device__ bool has_tokens() const { return warp_index() * 16 < arguments.num_tokens; }

  // Waits for the scales. Called once, by all warps that multiply, when the block's first sums are
  // complete.
  __device__ void take_scales() {
    if (arguments.squares == nullptr) return;
    wait_for_scales();
    const int last = arguments.num_tokens - 1;
    scales = {shared.scales[min(first_token(), last)], shared.scales[min(first_token() + 8, last)]};
  }

  // The lane's vector `index` of sums: those of weight rows 8 * index + 2 * (lane % 4) and the next
  // row, for the lane's first token (x, y) and for its second (z, w).
  __device__ float4 vector(const Sums& tile_sums, int index) const {
    return {tile_sums[index * 4] * scales.x, tile_sums[index * 4 + 1] * scales.x,
            tile_sums[index * 4 + 2] * scales.y, tile_sums[index * 4 + 3] * scales.y};
  }
  // Vector `index` of the tile's results: vector(), with the activation applied if the product is
  // gated.
  __device__ float4 result(const Sums& tile_sums, int index) const {
    const float4 gate = vector(tile_sums, index);
    if constexpr (Config::kGated) {
      const float4 up = vector(tile_sums, Config::kVectors / 2 + index);
      constexpr auto kActivate = activate<Config::kActivation>;
      return {kActivate(gate.x) * up.x, kActivate(gate.y) * up.y, kActivate(gate.z) * up.z,
              kActivate(gate.w) * up.w};
    }
    return gate;
  }
  __device__ static float4 plus(const float4& a, const float4& b) {
    return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
  }

  // The lane's first feature of vector `index` of a tile's results.
  __device__ int64_t feature(int tile, int index) const {
    return int64_t{tile} * Config::kOutRows + index * 8 + lane_index() % 4 * 2;
  }

  // Calls body(address of two neighbouring elements of out, how many of the two exist, their two
  // sums) for each of the lane's two tokens.
  template <typename Body>
  __device__ void for_each_pair(int tile, int index, float4& values, Body&& body) const {
    const int64_t row = feature(tile, index);
    const int64_t num_rows = arguments.out_features - row;
    if (num_rows <= 0) return;
    Out* const out =
        static_cast<Out*>(arguments.out) + first_token() * arguments.out_features + row;
    if (first_token() < arguments.num_tokens) body(out, num_rows, values.x, values.y);
    if (first_token() + 8 < arguments.num_tokens) {
      body(out + 8 * arguments.out_features, num_rows, values.z, values.w);
    }
  }
  // Two neighbouring elements can be stored at once where every row of `out` is aligned for it.
  __device__ bool has_pairs() const { return arguments.out_features % 2 == 0; }

  __device__ void load(int tile, int index, float4& values) const {
    for_each_pair(tile, index, values, [&](const Out* out, int64_t num_rows, float& a, float& b) {
      if (has_pairs()) {
        const auto pair = load_vector<2>(out, 0);
        a = as_float(pair.values[0]);
        b = as_float(pair.values[1]);
      } else {
        a = as_float(out[0]);
        if (num_rows > 1) b = as_float(out[1]);
      }
    });
  }
  __device__ void store_pairs(int tile, int index, float4& values) const {
    for_each_pair(tile, index, values, [&](Out* out, int64_t num_rows, float a, float b) {
      if (has_pairs()) {
        store_vector(out, 0, Vector<Out, 2>{from_float<Out>(a), from_float<Out>(b)});
      } else {
        out[0] = from_float<Out>(a);
        if (num_rows > 1) out[1] = from_float<Out>(b);
      }
    });
  }

  // Stores up to four vectors of 16-bit results, 16 bytes at a time, see round_to_quads(). Rows of
  // `out` must be aligned to 16 bytes.
  template <int kCount>
  __device__ void store_quads(Element* out, int tile, int index, const float4* values) const {
    uint32_t first[4] = {};
    uint32_t second[4] = {};
    round_to_quads<Element, kCount>(values, first, second);
    const int vector = lane_index() % 4;
    const int64_t row = int64_t{tile} * Config::kOutRows + (index + vector) * 8;
    if (vector >= kCount || row >= arguments.out_features) return;
    out += first_token() * arguments.out_features + row;
    if (first_token() < arguments.num_tokens) {
      *reinterpret_cast<uint4*>(out) = {first[0], first[1], first[2], first[3]};
    }
    if (first_token() + 8 < arguments.num_tokens) {
      *reinterpret_cast<uint4*>(out + 8 * arguments.out_features) = {second[0], second[1],
                                                                     second[2], second[3]};
    }
  }

  // Stores vectors index to index + kCount - 1, at most four. Called by all lanes of the warp
  // together.
  template <int kCount>
  __device__ void store(int tile, int index, float4* values) const {
    if constexpr (sizeof(Out) == 2) {
      if (arguments.out_features % 8 == 0) {
        store_quads<kCount>(static_cast<Element*>(arguments.out), tile, index, values);
        return;
      }
    }
#pragma unroll
    for (int i = 0; i < kCount; ++i) store_pairs(tile, index + i, values[i]);
  }

  // Loads the norm's weights for the features of four vectors.
  __device__ void load_norm_weights(int tile, int index, float2 (&factors)[4]) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      factors[i] =
          *reinterpret_cast<const float2*>(arguments.norm.weight + feature(tile, index + i));
    }
  }

  // Writes kSquaresFeatures features of the results for the next product, as arguments.norm says.
  __device__ void normalize(int tile, int index, const float4 (&values)[4],
                            const float2 (&factors)[4]) const {
    float4 weighted[4];
    float squares[2] = {};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float4& value = values[i];
      weighted[i] = {value.x * factors[i].x, value.y * factors[i].y, value.z * factors[i].x,
                     value.w * factors[i].y};
      squares[0] += value.x * value.x + value.y * value.y;
      squares[1] += value.z * value.z + value.w * value.w;
    }
    store_quads<4>(static_cast<Element*>(arguments.norm.values), tile, index, weighted);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      squares[i] += __shfl_xor_sync(kFullWarp, squares[i], 1);
      squares[i] += __shfl_xor_sync(kFullWarp, squares[i], 2);
      const int token = first_token() + 8 * i;
      if (lane_index() % 4 != 0 || token >= arguments.num_tokens) continue;
      const int64_t part = feature(tile, index) / kSquaresFeatures;
      arguments.norm.squares[token * (arguments.out_features / kSquaresFeatures) + part] =
          squares[i];
    }
  }
  static constexpr bool kMayNormalize = sizeof(Out) == 4 && !Config::kGated;
  __device__ bool normalizes() const { return arguments.norm.values != nullptr; }

  // For a block that multiplies all input features of its tiles.
  __device__ __forceinline__ void finish(int tile, const Sums& tile_sums) {
    if (!has_tokens()) return;
    constexpr int kVectors = Config::kOutRows / 8;
#pragma unroll
    for (int index = 0; index < kVectors; index += 4) {
      constexpr int kRest = kVectors % 4;
      const int count = index + 4 <= kVectors ? 4 : kRest;
      float4 results[4] = {};
      float2 factors[4];
      if (arguments.accumulate) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          if (i < count) load(tile, index + i, results[i]);
        }
      }
      if constexpr (kMayNormalize) {
        if (normalizes()) load_norm_weights(tile, index, factors);
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (i < count) results[i] = plus(results[i], result(tile_sums, index + i));
      }
      if (count == 4) {
        store<4>(tile, index, results);
      } else if constexpr (kRest > 0) {
        store<kRest>(tile, index, results);
      }
      if constexpr (kMayNormalize) {
        if (normalizes()) normalize(tile, index, results, factors);
      }
    }
  }

  // This block's vector `index` of the part of a tile that block `finisher` finishes. Registers
  // have no index: the parts are chosen from.
  __device__ float4 vector_of_part(const Sums& own_sums, int finisher, int index) const {
    constexpr int kLast = Config::kFinishers - 1;
    float4 chosen = vector(own_sums, kLast * Config::kFinishedVectors + index);
#pragma unroll
    for (int part = kLast - 1; part >= 0; --part) {
      if (finisher == part) chosen = vector(own_sums, part * Config::kFinishedVectors + index);
    }
    return chosen;
  }

  // Sends this block's sums of the part of a tile that block `finisher` finishes to it: every warp
  // to the same warp there.
  __device__ void send(const Sums& own_sums, int finisher) const {
    const int others_before = share.rank > finisher ? share.rank - 1 : share.rank;
    float4* const received = shared.received + others_before * Config::kReceived + threadIdx.x;
#pragma unroll
    for (int i = 0; i < Config::kFinishedVectors; ++i) {
      store_in_cluster(received + i * kWarpgroupSize, vector_of_part(own_sums, finisher, i),
                       &shared.all_received, finisher);
    }
  }

  // For a tile that several blocks share, which is the only tile of them. The first of them finish
  // a part of the tile's output features each.
  __device__ void multiply_together(int tile) {
    constexpr int kPart = Config::kFinishedVectors;
    static_assert(Config::kVectors % Config::kFinishers == 0 && !Config::kGated);
    constexpr bool kNormalizes = kMayNormalize && kPart == 4;
    const int begin = share.rank * kPart;
    float4 results[kPart] = {};
    [[maybe_unused]] float2 factors[4];
    if (has_tokens() && share.finishes()) {
      if (!Config::kRotates && arguments.accumulate) {
#pragma unroll
        for (int i = 0; i < kPart; ++i) load(tile, begin + i, results[i]);
      }
      if constexpr (kNormalizes) {
        if (normalizes()) load_norm_weights(tile, begin, factors);
      }
    }
    multiply<1>();
    take_scales();
    if (!has_tokens()) return;

    const Sums& own_sums = sums[0];
    if constexpr (Config::kSplit == 2) {
      send(own_sums, 1 - share.rank);
    } else {
#pragma unroll
      for (int finisher = 0; finisher < Config::kFinishers; ++finisher) {
        if (finisher != share.rank) send(own_sums, finisher);
      }
      if (!share.finishes()) return;
    }
    mbarrier_wait_for_cluster(&shared.all_received, 0);
#pragma unroll
    for (int i = 0; i < kPart; ++i) {
      float4 sum = vector_of_part(own_sums, share.rank, i);
#pragma unroll
      for (int other = 0; other < Config::kSplit - 1; ++other) {
        const int place = other * Config::kReceived + i * kWarpgroupSize;
        sum = plus(sum, shared.received[place + threadIdx.x]);
      }
      results[i] = plus(results[i], sum);
    }
    if constexpr (Config::kRotates) {
      rotation.store(arguments, first_token(), results);
      return;
    }
    constexpr int kRest = kPart % 4;
#pragma unroll
    for (int i = 0; i + 4 <= kPart; i += 4) store<4>(tile, begin + i, &results[i]);
    if constexpr (kRest > 0) store<kRest>(tile, begin + kPart - kRest, &results[kPart - kRest]);
    if constexpr (kNormalizes) {
      if (normalizes()) normalize(tile, begin, results, factors);
    }
  }

  // Does what needs no result of the kernel before, which may still run.
  __device__ void prepare() {
    if constexpr (Config::kRotates) {
      if (has_tokens()) rotation.prepare(arguments, share, first_token());
    }
  }

  __device__ void run() {
    for (int tile = share.first_tile; tile < arguments.num_tiles;
         tile += Config::kTilesAtOnce * share.stride) {
      if constexpr (Config::kSplit > 1) {
        multiply_together(tile);
      } else {
        const int num_at_once = share.num_at_once(arguments, tile);
        if (num_at_once == Config::kTilesAtOnce) {
          multiply<Config::kTilesAtOnce>();
        } else {
          multiply<1>();
        }
        if (tile == share.first_tile) take_scales();
#pragma unroll
        for (int i = 0; i < Config::kTilesAtOnce; ++i) {
          if (i < num_at_once) finish(tile + i * share.stride, sums[i]);
        }
      }
    }
  }
};

}  // namespace tessera
