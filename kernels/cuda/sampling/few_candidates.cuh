// The draw of a sequence when few of its logits can be drawn at all, as when top_k is small: one
// block has them all, a thread each, and compares each with each.
#pragma once

#include <cstdint>

#include "kernels/cuda/sampling/logit_select.cuh"

namespace tessera {

template <int kBlocks>
class FewCandidates {
 public:
  using Cluster = SamplingCluster<kBlocks>;
  static constexpr int kMaxCount = 256;

  // Gathers all logits of at least `smallest` in the first block, in order of token. Returns
  // whether they are few; they are not there otherwise.
  __device__ bool gather(const LogitShare& share, float smallest) {
    int in_lane = 0;
    share.for_each_of_warp([&](int, float logit) { in_lane += logit >= smallest ? 1 : 0; });
    Cluster::send(counts_, warp_index(), warp_sum(static_cast<uint64_t>(in_lane)));
    Cluster::sync();
    const int place = Cluster::rank() * kSampleWarps + warp_index();
    int before = 0;
    int total = 0;
    for (int i = lane_index(); i < kBlocks * kSampleWarps; i += kWarpSize) {
      const auto count = static_cast<int>(counts_[i]);
      total += count;
      before += i < place ? count : 0;
    }
    const auto add = [](int a, int b) { return a + b; };
    total = warp_reduce(total, add);
    if (total > kMaxCount) return false;
    if (threadIdx.x == 0) count_ = total;

    before = warp_reduce(before, add);
    if (counts_[place] > 0) {
      const int begin = share.warp_begin();
      const int end = share.warp_end();
      for (int first = begin; first < end; first += kWarpSize) {
        const int i = first + lane_index();
        const float logit = i < end ? share.logits[i] : -INFINITY;
        const bool is_one = i < end && logit >= smallest;
        const uint32_t ones = __ballot_sync(kFullWarp, is_one);
        if (is_one) {
          const int index = before + __popc(ones & ((1u << lane_index()) - 1));
          *Cluster::in_block(&logits_[index], 0) = logit;
          *Cluster::in_block(&tokens_[index], 0) = share.first_token + i;
        }
        before += __popc(ones);
      }
    }
    Cluster::sync();
    return true;
  }

  // The rest is for the first block alone, after gather() has returned true.

  // The largest logit such that it and all above it have a mass of at least target(total); see
  // select_logit().
  template <typename Mass, typename Target>
  __device__ float select(Mass mass, Target target) {
    const auto thread = static_cast<int>(threadIdx.x);
    const float mine = logits_[min(thread, count_ - 1)];
    __syncthreads();  // everybody has the result of the call before
    if (thread < count_) masses_[thread] = mass(mine);
    __syncthreads();
    if (thread < count_) {
      uint64_t total = 0;
      uint64_t above = 0;
      uint64_t reached = 0;
      for (int i = 0; i < count_; ++i) {
        total += masses_[i];
        if (logits_[i] > mine) above += masses_[i];
        if (logits_[i] >= mine) reached += masses_[i];
      }
      const uint64_t wanted = target(total);
      if (above < wanted && wanted <= reached) selected_ = mine;
    }
    __syncthreads();
    return selected_;
  }

  // The first token whose running sum of weights exceeds floor(random * total / 2^64).
  template <typename WeightOf>
  __device__ void draw(const WeightOf& weight_of, uint64_t random, int32_t* token) const {
    const auto thread = static_cast<int>(threadIdx.x);
    const uint64_t weight = thread < count_ ? weight_of(logits_[thread]) : 0;
    const BlockScan scan = block_scan(weight);
    const uint64_t place = __umul64hi(random, scan.total);
    if (scan.before <= place && place < scan.before + weight) *token = tokens_[thread];
  }

 private:
  uint64_t counts_[kBlocks * kSampleWarps];  // in each warp's range of tokens
  int count_;                                // of all
  float logits_[kMaxCount];                  // [count_]
  int tokens_[kMaxCount];                    // [count_]
  uint64_t masses_[kMaxCount];               // [count_]
  float selected_;
};

}  // namespace tessera
