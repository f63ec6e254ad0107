#include "kernels/cpu/vector_level.h"

#include <atomic>

namespace tessera {
namespace {

std::atomic<VectorLevel>& level_in_use() {
  static std::atomic<VectorLevel> level = best_vector_level();
  return level;
}

}  // namespace

VectorLevel best_vector_level() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("x86-64-v4")) return VectorLevel::kAvx512;
  if (__builtin_cpu_supports("x86-64-v3")) return VectorLevel::kAvx2;
#endif
  return VectorLevel::kPlain;
}

VectorLevel vector_level() { return level_in_use().load(std::memory_order_relaxed); }

void set_vector_level(VectorLevel level) { level_in_use().store(level, std::memory_order_relaxed); }

}  // namespace tessera
