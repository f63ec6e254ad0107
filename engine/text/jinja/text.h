// Text whose bytes know where they came from.
//
// A chat template writes special tokens as text, and so may a user. Only those that the template
// wrote count: every operation on text keeps, byte by byte, whose it is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::jinja {

// kTemplate: literals of the template and what its makers named, such as bos_token. kData: what a
// conversation brought, and whatever an operation cannot account for.
enum class Origin : uint8_t { kData, kTemplate };

class Text {
 public:
  // Neighbouring bytes of one origin, from the end of the run before to `end`.
  struct Run {
    size_t end = 0;
    Origin origin = Origin::kData;
  };

  Text() = default;
  Text(std::string_view bytes, Origin origin) { append(bytes, origin); }

  const std::string& bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  // In order, neighbours of different origin, the last one's end is size().
  const std::vector<Run>& runs() const { return runs_; }
  // Whether it went through the filter safe: as markupsafe has it, + escapes text that it adds to
  // it. What + and * make of markup is markup too, and its parts and other cases; "~" makes plain
  // text of it. Python also keeps replace(), join(), % and indent of markup so, which are plain
  // here.
  bool is_markup() const { return is_markup_; }
  void set_markup() { is_markup_ = true; }
  // Of the byte at `offset` < size().
  Origin origin_at(size_t offset) const;

  void append(std::string_view bytes, Origin origin);
  void append(const Text& text) { append(text, 0, text.size()); }
  // Bytes [begin, end) of `text`, which is another object.
  void append(const Text& text, size_t begin, size_t end);
  Text slice(size_t begin, size_t end) const;  // markup, if this is

 private:
  size_t run_at(size_t offset) const;

  std::string bytes_;
  std::vector<Run> runs_;
  bool is_markup_ = false;
};

}  // namespace tessera::jinja
