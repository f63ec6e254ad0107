// Numbers as people read them.
#pragma once

#include <cstdint>
#include <string>

namespace tessera {

std::string fixed(double value, int digits);  // 3.14159, 2 -> "3.14"
std::string human_bytes(uint64_t bytes);      // 1536 -> "1.5 KiB"
std::string human_count(int64_t count);       // 8030261248 -> "8.03 B"; below 10,000 as it is
std::string human_duration(double seconds);   // 3725 -> "1 h 02 min"; 42 -> "42 s"

}  // namespace tessera
