// Seeded damage to inputs, for the short form of fuzzing that needs no libFuzzer.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz_target.h"

namespace tessera {

// The same seed gives the same inputs on every machine.
class Mutator {
 public:
  Mutator(const FuzzTarget& target, uint32_t seed) : target_(target), random_(seed) {}

  // One of the target's seeds, changed in one to eight places.
  std::string next();

 private:
  // Below `bound`, which is not 0. std::uniform_int_distribution differs between libraries.
  size_t below(size_t bound) { return random_() % bound; }
  const std::string& any_of(const std::vector<std::string>& texts) {
    return texts[below(texts.size())];
  }
  void change(std::string& bytes);

  const FuzzTarget& target_;
  std::mt19937 random_;
};

}  // namespace tessera
