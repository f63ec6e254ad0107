#include "engine/model/memory_plan.h"

#include <algorithm>
#include <cstdio>

#include "kernels/tensor/checked_math.h"

namespace tessera {
namespace {

// Left to the driver, its modules, other processes, and the few megabytes that backends, the fused
// decoder and recorded steps take.
constexpr size_t kReserveBytes = size_t{256} << 20;

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

}  // namespace

bool MemoryPlan::fits() const { return total_bytes() + kReserveBytes <= free_bytes; }

bool MemoryPlan::fits_with_activations_in_one_of(size_t num_parts) const {
  const size_t beside_weights = free_bytes - std::min(free_bytes, weights_bytes);
  return fits() && activation_bytes <= beside_weights / num_parts;
}

size_t MemoryPlan::unplanned_bytes() const {
  return free_bytes - std::min(free_bytes, weights_bytes + activation_bytes + kReserveBytes);
}

std::string MemoryPlan::table() const {
  const int64_t sequence_pages = ceil_divide(limits.context_size, page_size);
  const bool holds_all = num_pages >= sequence_pages * limits.max_sequences;
  const auto row = [](const char* name, size_t bytes, const std::string& note) {
    char line[160];
    std::snprintf(line, sizeof(line), "  %-12s %9.3f GiB  %s\n", name,
                  static_cast<double>(bytes) / kGiB, note.c_str());
    return std::string(line);
  };
  return row("weights", weights_bytes, "") +
         row("KV cache", kv_bytes,
             concat(limits.kv_dtype == KvDType::kFloat8E4M3 ? "float8_e4m3, " : "",
                    holds_all ? "" : concat(num_pages * page_size, " tokens shared by up to "),
                    limits.max_sequences, " x ", counted(limits.context_size, "token"), ", ",
                    counted(kv_bytes_per_token, "byte"), " each, ", counted(num_pages, "page"),
                    " of ", page_size)) +
         row("activations", activation_bytes, "") + row("together", total_bytes(), "") +
         row("free", free_bytes, concat(kReserveBytes >> 20, " MiB of it stay in reserve")) +
         row("in use", used_bytes, "before the model is loaded");
}

}  // namespace tessera
