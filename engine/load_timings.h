// Where the time of a load went. The phases follow one another, so they add up; what overlaps with
// a phase counts only as far as it outlasts it.
#pragma once

#include <cstdint>
#include <string>

namespace tessera {

struct LoadTimings {
  double open_seconds = 0.0;      // folder, headers, tokenizer; the device starts meanwhile
  double device_seconds = 0.0;    // what the device took longer to start
  double allocate_seconds = 0.0;  // planning and taking memory
  double weights_seconds = 0.0;   // reading, copying and converting; the warm-up runs meanwhile
  double warm_up_seconds = 0.0;   // what the warm-up took longer
  double total_seconds = 0.0;
  uint64_t file_bytes = 0;  // of weights, as stored

  // "1.21 s = open 0.05 + device 0.30 + allocate 0.03 + weights 0.81 (19.8 GB/s) + warm-up 0.02"
  std::string text() const;
};

}  // namespace tessera
