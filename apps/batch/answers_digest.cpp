#include "apps/batch/answers_digest.h"

#include "apps/batch/digests.h"
#include "engine/input_files.h"
#include "engine/text/sha256.h"

namespace tessera {
namespace {

constexpr const char* kLogprobs = "logprobs";

// Bytes that are not UTF-8 as the output file has them.
std::string written(const nlohmann::ordered_json& value) {
  return value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

// The choices without their log-probabilities, whose last digits may depend on what was computed
// beside them although the tokens do not.
nlohmann::ordered_json answers_of(const nlohmann::ordered_json& record) {
  nlohmann::ordered_json choices = record["response"]["body"]["choices"];
  for (auto& choice : choices) {
    if (choice.is_object()) choice.erase(kLogprobs);
  }
  return choices;
}

}  // namespace

nlohmann::ordered_json read_record(std::string_view line, const std::string& where) {
  return parse_ordered_json(line, {.path = where}, {.left_out = kLogprobs});
}

void AnswersDigest::add(const nlohmann::ordered_json& record) {
  const std::string digits = sha256(written(record["custom_id"]) + written(answers_of(record)));
  for (size_t i = 0; i < sums_.size(); ++i) {
    sums_[i] += hexadecimal_number(
        std::string_view(digits).substr(i * kHexadecimalDigits, kHexadecimalDigits));
  }
}

void AnswersDigest::add(const AnswersDigest& others) {
  for (size_t i = 0; i < sums_.size(); ++i) sums_[i] += others.sums_[i];
}

std::string AnswersDigest::text() const {
  std::string text;
  for (const uint64_t sum : sums_) text += hexadecimal(sum);
  return text;
}

}  // namespace tessera
