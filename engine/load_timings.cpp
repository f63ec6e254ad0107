#include "engine/load_timings.h"

#include <cstdio>

namespace tessera {

std::string LoadTimings::text() const {
  const double rate = weights_seconds > 0.0 ? static_cast<double>(file_bytes) / weights_seconds : 0;
  char line[200];
  std::snprintf(line, sizeof(line),
                "%.2f s = open %.2f + device %.2f + allocate %.2f + weights %.2f (%.1f GB/s) + "
                "warm-up %.2f",
                total_seconds, open_seconds, device_seconds, allocate_seconds, weights_seconds,
                rate / 1e9, warm_up_seconds);
  return line;
}

}  // namespace tessera
