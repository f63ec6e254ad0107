#!/usr/bin/env bash
# Runs compute-sanitizer over the kernels whose warps and blocks hand each other data: decode
# attention, over pages of float8_e4m3 too, prefill attention in 16 bits and in float8_e4m3, both
# in one step, skinny and gated products, log-probabilities, the decode step in one kernel.
#
#   tests/sanitize_gpu.sh BUILD RACECHECK_BUILD
#
# BUILD is a build folder with tests, for memcheck and synccheck. RACECHECK_BUILD is one configured
# with -DTESSERA_RACECHECK=ON. Ends with a line for each tool and part of the tests, and with status
# 1 when any found anything. A few minutes on an H100 with 16 CPU cores.
set -uo pipefail

if ! nvidia-smi -L >/dev/null 2>&1; then
  echo "skipped: there is no GPU"
  exit 77
fi
if (( $# != 2 )); then
  sed -n '2,10s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi

kernels='FusedDecoderTest.OneSequence/cuda_bf16:FusedDecoderTest.LongContexts/cuda_bf16'
kernels+=':FusedDecoderTest.SeveralSequences/cuda_bf16:FusedDecoderTest.SlidingWindow/cuda_bf16'
kernels+=':FusedDecoderTest.TwoKindsOfLayers/cuda_bf16:FusedDecoderTest.BlocksOfFamilies/cuda_bf16'
kernels+=':FusedDecoderTest.SeveralTokensOfASequence/cuda_bf16:FusedDecoderHeadsTest.HeadsOf96/cuda_bf16'
kernels+=':FusedDecoderHeadsTest.ManyKvHeads/cuda_bf16'
kernels+=':AttentionDecodeTest.*/cuda_bf16:Fp8PrefillTest.SequencesBesideDecodes/cuda_bf16'
kernels+=':Fp8PrefillTest.SequencesOneAfterTheOther/cuda_bf16'
kernels+=':AttentionFp8Test.SeveralQueryTokens/cuda_bf16:AttentionFp8Test.LargeGroups/cuda_bf16'
kernels+=':FusedDecoderHeadsTest.PagesOfFp8/cuda_bf16:AttentionSharedPrefixTest.SeveralGroups/cuda_bf16'
kernels+=':AttentionSharedPrefixTest.ManySequences/cuda_bf16'
kernels+=':AttentionRepeatsTest.Prefills/cuda_bf16:AttentionRepeatsTest.MixedSteps/cuda_bf16'
kernels+=':LinearGatedTest.OneProductOfEveryPlan/cuda_bf16'
logs=$(mktemp -d)
status=0
jobs=()

# check TOOL BUILD TEST FILTER: the tests pass, some ran, and the tool found nothing.
check() {
  local tool=$1 build=$2 test=$3 filter=$4 log="$logs/$1-$3-${GTEST_SHARD_INDEX:-0}"
  if timeout 1800 compute-sanitizer --tool "$tool" --error-exitcode 9 --print-limit 20 \
       "$build/$test" --gtest_filter="$filter" >"$log" 2>&1 && grep -q '^\[       OK' "$log"; then
    echo "$tool: $test: $(grep -c '^\[       OK' "$log") tests, $(grep 'SUMMARY' "$log" | tail -1 | sed 's/=* //')"
  else
    echo "$tool: $test: FAILED, status $?"
    grep -E 'Race reported|Error|ERROR SUMMARY|RACECHECK SUMMARY|FAILED' "$log" | sort | uniq -c | head -20
    return 1
  fi
}

# check_in_parts PARTS TOOL BUILD TEST FILTER: starts that many checks, each of a part of the tests.
# Racecheck, the slowest tool, gets the most parts.
check_in_parts() {
  local parts=$1 part
  shift
  for (( part = 0; part < parts; ++part )); do
    GTEST_TOTAL_SHARDS=$parts GTEST_SHARD_INDEX=$part check "$@" & jobs+=($!)
  done
}

for tool in memcheck synccheck racecheck; do
  build=$1
  others='LinearSkinnyTest.*/cuda_bf16:LogprobsTest.*/cuda_bf16'
  if [[ $tool == racecheck ]]; then
    build=$2
    # Every kernel at least once; all of these tests would take an hour.
    # Products with more steps than their rings have places (OneProductOfEveryPlan) pass in this
    # build, but racecheck does not come to their end within seven minutes.
    others='LinearSkinnyTest.OneProductOfSeveralTilesOfEveryPlan/cuda_bf16'
    others+=':LinearSkinnyTest.OneProductOfEveryGatedPlan/cuda_bf16'
    others+=':LogprobsTest.EqualLogitsAreInTheOrderOfTheirIds/cuda_bf16'
  fi
  parts=2
  [[ $tool == racecheck ]] && parts=5
  check_in_parts $parts "$tool" "$build" kernels_test "$kernels:$others"
  check_in_parts 2 "$tool" "$build" golden_test '*.LogitsMatch/*one_kernel_cuda_bfloat16'
done
for job in "${jobs[@]}"; do wait "$job" || status=1; done
rm -rf "$logs"
exit "$status"
