#include "apps/answer/load_report.h"

#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <sstream>
#include <string>

#include "apps/terminal/human_units.h"

namespace tessera {
namespace {

// Field 22 of /proc/self/stat: clock ticks from boot to the start of the process. The second field,
// the program's name in parentheses, may itself hold spaces and parentheses.
constexpr int kStartTimeAfterName = 22 - 2;

}  // namespace

double process_age_seconds() {
  std::ifstream file("/proc/self/stat");
  std::string line;
  std::getline(file, line, '\0');  // nothing when it cannot be read
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return 0.0;
  std::istringstream fields(line.substr(name_end + 1));
  std::string field;
  for (int i = 0; i < kStartTimeAfterName; ++i) fields >> field;
  const double started =
      std::strtod(field.c_str(), nullptr) / static_cast<double>(sysconf(_SC_CLK_TCK));
  timespec now = {};
  if (clock_gettime(CLOCK_BOOTTIME, &now) != 0 || started <= 0.0) return 0.0;
  return std::max(
      0.0, static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9 - started);
}

std::string FirstToken::text() const {
  return concat(fixed(total_seconds, 2), " s = start ", fixed(start_seconds(), 2), " + load ",
                fixed(load_seconds, 2), " + prompt ", fixed(prompt_seconds, 2));
}

FirstToken first_token(const Engine& engine, const GenerationResult& result) {
  FirstToken token;
  token.load_seconds = engine.load_timings().total_seconds;
  token.prompt_seconds = result.prefill_seconds;
  // The clock of /proc is coarse: it must not make the start negative.
  token.total_seconds = std::max(process_age_seconds() - result.decode_seconds,
                                 token.load_seconds + token.prompt_seconds);
  return token;
}

nlohmann::ordered_json load_json(const LoadTimings& timings) {
  return {
      {"open_seconds", timings.open_seconds},         {"device_seconds", timings.device_seconds},
      {"allocate_seconds", timings.allocate_seconds}, {"weights_seconds", timings.weights_seconds},
      {"warm_up_seconds", timings.warm_up_seconds},   {"file_bytes", timings.file_bytes}};
}

}  // namespace tessera
