#include "kernels/cpu/machine.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <string>
#include <thread>

#include "kernels/cpu/vector_level.h"
#include "kernels/tensor/check.h"

namespace tessera {
namespace {

// The hardware threads of the core that `cpu` belongs to, as the kernel writes them: "0,64". Empty
// when it does not say.
std::string core_of(int cpu) {
  std::ifstream file(concat("/sys/devices/system/cpu/cpu", cpu, "/topology/thread_siblings_list"));
  std::string siblings;
  std::getline(file, siblings);
  return siblings;
}

}  // namespace

int count_physical_cores() {
  const auto fallback = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return fallback;
  std::set<std::string> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    const std::string core = core_of(cpu);
    if (core.empty()) return CPU_COUNT(&allowed);
    cores.insert(core);
  }
  return std::max(1, static_cast<int>(cores.size()));
}

std::string_view vector_instruction_set() {
  switch (best_vector_level()) {
    case VectorLevel::kAvx512:
      return "AVX-512";
    case VectorLevel::kAvx2:
      return "AVX2";
    case VectorLevel::kPlain:
      break;
  }
#if defined(__x86_64__)
  return "SSE2";
#else
  return "no vector dispatch";
#endif
}

}  // namespace tessera
