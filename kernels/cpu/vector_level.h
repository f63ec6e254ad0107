// Loops compiled once per instruction set, of which the best that the machine has is chosen while
// the program runs.
//
// Such a loop is the static member template run<kLanes>() of a struct, marked VECTOR_INLINE, and so
// is all that it calls: what is not inlined is compiled for any x86-64. run_vectorized<Struct>()
// calls it with as many lanes as a register of the chosen set has floats. Vectors wider than a
// register do work, but the compiler keeps them in memory: with 16 lanes AVX2 multiplies at a
// twentieth of its speed.
#pragma once

#include <cstdint>

#define VECTOR_INLINE [[gnu::always_inline]] inline

// Unrolls a short loop over an array of vectors. The compiler keeps an array in memory as long as
// one loop over it is left, and by itself it leaves those of nine sums and more: then three tokens
// cost twice as much as with their sums in registers.
#if defined(__clang__)
#define VECTOR_UNROLL _Pragma("clang loop unroll(full)")
#else
#define VECTOR_UNROLL _Pragma("GCC unroll 16")
#endif

#if defined(__x86_64__)
#define VECTOR_TARGET_AVX512                                                      \
  [[gnu::target(                                                                  \
      "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,bmi,bmi2,f16c,lzcnt," \
      "movbe")]]
#define VECTOR_TARGET_AVX2 [[gnu::target("avx2,fma,bmi,bmi2,f16c,lzcnt,movbe")]]
#else
#define VECTOR_TARGET_AVX512
#define VECTOR_TARGET_AVX2
#endif

namespace tessera {

// In rising order.
enum class VectorLevel { kPlain, kAvx2, kAvx512 };

// The best level of this machine.
VectorLevel best_vector_level();

// The level that run_vectorized uses: the best one, unless a test has set another. Not to be set
// while an operation runs, nor above the best.
VectorLevel vector_level();
void set_vector_level(VectorLevel level);

namespace vector_level_detail {

template <typename Loop, typename... Arguments>
VECTOR_TARGET_AVX512 void run_avx512(Arguments&... arguments) {
  Loop::template run<16>(arguments...);
}
template <typename Loop, typename... Arguments>
VECTOR_TARGET_AVX2 void run_avx2(Arguments&... arguments) {
  Loop::template run<8>(arguments...);
}
template <typename Loop, typename... Arguments>
void run_plain(Arguments&... arguments) {
  Loop::template run<4>(arguments...);
}

}  // namespace vector_level_detail

template <typename Loop, typename... Arguments>
void run_vectorized(Arguments&&... arguments) {
  switch (vector_level()) {
    case VectorLevel::kAvx512:
      return vector_level_detail::run_avx512<Loop>(arguments...);
    case VectorLevel::kAvx2:
      return vector_level_detail::run_avx2<Loop>(arguments...);
    case VectorLevel::kPlain:
      return vector_level_detail::run_plain<Loop>(arguments...);
  }
}

}  // namespace tessera
