#include "apps/terminal/remaining_time.h"

#include "apps/terminal/human_units.h"

namespace tessera {

std::string RemainingTime::text(double fraction) const {
  if (fraction <= 0.0) return "?";
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  return human_duration(seconds / fraction * (1.0 - fraction));
}

}  // namespace tessera
