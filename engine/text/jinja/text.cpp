#include "engine/text/jinja/text.h"

#include <algorithm>

namespace tessera::jinja {

size_t Text::run_at(size_t offset) const {
  return static_cast<size_t>(std::ranges::upper_bound(runs_, offset, {}, &Run::end) -
                             runs_.begin());
}

Origin Text::origin_at(size_t offset) const { return runs_[run_at(offset)].origin; }

void Text::append(std::string_view bytes, Origin origin) {
  if (bytes.empty()) return;
  bytes_ += bytes;
  if (runs_.empty() || runs_.back().origin != origin) runs_.push_back({0, origin});
  runs_.back().end = bytes_.size();
}

void Text::append(const Text& text, size_t begin, size_t end) {
  if (begin >= end) return;
  for (size_t i = text.run_at(begin); begin < end; ++i) {
    const size_t run_end = std::min(text.runs_[i].end, end);
    append(std::string_view(text.bytes_).substr(begin, run_end - begin), text.runs_[i].origin);
    begin = run_end;
  }
}

Text Text::slice(size_t begin, size_t end) const {
  Text piece;
  piece.is_markup_ = is_markup_;
  piece.append(*this, begin, end);
  return piece;
}

}  // namespace tessera::jinja
