// How often tests of repeated work run it. Races hide from a few runs: TESSERA_REPEATS asks for
// 10,000 on a GPU.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace tessera {

inline int64_t num_repeats(int64_t usual) {
  const char* text = std::getenv("TESSERA_REPEATS");
  return text == nullptr ? usual : std::atoll(text);
}

}  // namespace tessera
