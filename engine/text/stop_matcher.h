// Finds stop strings in streamed text without ever showing a part of one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tessera {

class StopMatcher {
 public:
  explicit StopMatcher(std::vector<std::string> stops = {}) : stops_(std::move(stops)) {}

  // The text that may be shown now that `text` has arrived: everything before the first stop
  // string, less a tail that could still become one. Unless `may_end`, stop strings may begin in
  // `text` but none ends in it.
  std::string append(std::string_view text, bool may_end = true);

  // What was held back; call at the end of the text. Empty after a match.
  std::string finish();

  bool has_matched() const { return has_matched_; }

 private:
  std::vector<std::string> stops_;
  std::string pending_;
  size_t num_passed_ = 0;  // bytes of pending_ in which no stop string ends
  bool has_matched_ = false;
};

}  // namespace tessera
