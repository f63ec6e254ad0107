// The warp of the fused decode kernel that finishes a single token's products.
#pragma once

#include "kernels/cuda/decode_step/epilogue.cuh"

namespace tessera {

// Thanks to it, the warps that compute need not wait for each other: they may be two passes ahead
// of this warp.
//
// While this warp waits for a product's first sums, it rehearses: it goes through the code once for
// nothing. Otherwise, instructions that no cache near the warp holds any more would be fetched just
// when all other blocks wait for the results (docs/experiments/decode-step.md). A rehearsal reads
// sums and rotations that others may be writing and uses none of them; racecheck cannot know that,
// so there is no rehearsal in builds for it.
template <int kHeadDim, FusedInstance kInstance>
__device__ void run_epilogues(const FusedDecodeArguments& arguments,
                              FusedSignals<1, kHeadDim, kInstance>& signals) {
  FusedEpilogue<1, kHeadDim, kInstance> finish(arguments, signals, 0);
  PassWalk passes;
  RingPosition place;  // of sums
  for (FusedPosition position; !position.is_end(); position.advance(arguments.num_layers)) {
    if (kForRacecheck && position.product == kQkv) mbarrier_arrive(&signals.previous_layer_left);
#pragma unroll 1
    for (int turn = kForRacecheck ? 1 : 0; turn < 2; ++turn) {
      const bool rehearses = turn == 0;
      finish.begin_product(position);
      LanePass pass{.row = 0, .num_groups = 0, .is_last = true};
      do {
        if (!rehearses) {
          pass = passes.next(signals);
          if (pass.num_groups == 0) break;
        }
        finish.begin_pass(pass);
        finish.finish_pass(place, rehearses);
        if (!rehearses) place.advance(1, kSumBuffers);
      } while (!pass.is_last);
      finish.end_product(rehearses);
    }
  }
}

}  // namespace tessera
