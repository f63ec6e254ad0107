#include "apps/terminal/graphemes.h"

#include <langinfo.h>
#include <utf8proc.h>

#include <algorithm>
#include <clocale>
#include <cwchar>

namespace tessera {
namespace {

// The code point at `at`, and the byte after it. Bytes that are not UTF-8 count one each.
utf8proc_int32_t decode(std::string_view text, size_t at, size_t& end) {
  utf8proc_int32_t code_point = -1;
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data() + at);
  const utf8proc_ssize_t length =
      utf8proc_iterate(bytes, static_cast<utf8proc_ssize_t>(text.size() - at), &code_point);
  end = at + static_cast<size_t>(std::max<utf8proc_ssize_t>(length, 1));
  return length > 0 ? code_point : 0xFFFD;
}

// wcwidth() answers by the locale; text here is always UTF-8.
bool use_utf8_locale() {
  std::setlocale(LC_CTYPE, "");
  if (std::string_view(nl_langinfo(CODESET)) != "UTF-8") std::setlocale(LC_CTYPE, "C.UTF-8");
  return true;
}

}  // namespace

size_t next_grapheme(std::string_view text, size_t at) {
  size_t end = 0;
  utf8proc_int32_t before = decode(text, at, end);
  utf8proc_int32_t state = 0;
  while (end < text.size()) {
    size_t after = 0;
    const utf8proc_int32_t code_point = decode(text, end, after);
    if (utf8proc_grapheme_break_stateful(before, code_point, &state)) break;
    before = code_point;
    end = after;
  }
  return end;
}

size_t previous_grapheme(std::string_view text, size_t at) {
  // Whether two code points belong together can depend on all that come before (flags are pairs of
  // letters), but never on those before a line break.
  const size_t line_end = text.substr(0, at - 1).rfind('\n');
  size_t begin = line_end == std::string_view::npos ? 0 : line_end + 1;
  for (size_t next = begin; next < at; next = next_grapheme(text.substr(0, at), next)) begin = next;
  return begin;
}

int display_width(std::string_view text) {
  static const bool has_locale = use_utf8_locale();
  int width = 0;
  for (size_t at = 0; has_locale && at < text.size();) {
    width += std::max(wcwidth(static_cast<wchar_t>(decode(text, at, at))), 0);
  }
  return width;
}

}  // namespace tessera
