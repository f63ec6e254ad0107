// One number for all answers of a batch, to tell whether two runs gave the same.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace tessera {

// A record as it is read back, without its log-probabilities: of a long answer they are millions of
// values, which nobody asks for. Throws Error beginning with `where`.
nlohmann::ordered_json read_record(std::string_view line, const std::string& where);

// The sum of a SHA-256 of each answer's custom_id and choices: the order of the answers does not
// matter, nor do times, statistics and log-probabilities beside them.
class AnswersDigest {
 public:
  // A record of the output file, as it is written or as it is read back.
  void add(const nlohmann::ordered_json& record);
  // Other answers.
  void add(const AnswersDigest& others);

  // 64 hexadecimal digits; zeros when there is no answer.
  std::string text() const;

 private:
  std::array<uint64_t, 4> sums_ = {};
};

}  // namespace tessera
