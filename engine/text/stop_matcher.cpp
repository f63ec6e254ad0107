#include "engine/text/stop_matcher.h"

#include <algorithm>

namespace tessera {

std::string StopMatcher::append(std::string_view text, bool may_end) {
  if (has_matched_) return {};
  pending_ += text;
  if (!may_end) num_passed_ = pending_.size();
  size_t first = std::string::npos;
  for (const std::string& stop : stops_) {
    const size_t from = num_passed_ - std::min(num_passed_, stop.size() - 1);
    first = std::min(first, pending_.find(stop, from));
  }
  if (first != std::string::npos) {
    has_matched_ = true;
    std::string shown = pending_.substr(0, first);
    pending_.clear();
    return shown;
  }
  size_t held = 0;  // length of the longest tail that begins some stop string
  for (const std::string& stop : stops_) {
    for (size_t n = std::min(stop.size() - 1, pending_.size()); n > held; --n) {
      if (pending_.ends_with(std::string_view(stop).substr(0, n))) held = n;
    }
  }
  std::string shown = pending_.substr(0, pending_.size() - held);
  pending_.erase(0, pending_.size() - held);
  num_passed_ -= std::min(num_passed_, shown.size());
  return shown;
}

std::string StopMatcher::finish() {
  std::string rest;
  std::swap(rest, pending_);
  return rest;
}

}  // namespace tessera
