#include "apps/files/foreign_text.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "engine/engine.h"

namespace tessera {
namespace {

using std::string_view_literals::operator""sv;

constexpr const char* kUtf16Hint = "convert it to UTF-8: iconv -f UTF-16 -t UTF-8";

struct Format {
  std::string_view begin;
  const char* name;
  const char* hint;
};

constexpr std::array kFormats = {
    Format{"\xff\xfe\0\0"sv, "UTF-32 text", "convert it to UTF-8: iconv -f UTF-32 -t UTF-8"},
    Format{"\xff\xfe"sv, "UTF-16 text", kUtf16Hint},
    Format{"\xfe\xff"sv, "UTF-16 text", kUtf16Hint},
    Format{"%PDF-"sv, "a PDF file", "make text of it first, for example with pdftotext"},
    Format{"PK\x03\x04"sv, "a ZIP archive or an Office document",
           "make text of it first, for example with unzip or pandoc"},
    Format{"\x1f\x8b"sv, "a file compressed by gzip", "decompress it first: gzip -d"},
    Format{"\x28\xb5\x2f\xfd"sv, "a file compressed by zstd", "decompress it first: zstd -d"},
    Format{"\x89PNG"sv, "an image", "text in images has to be recognised by another program"},
    Format{"\xff\xd8\xff"sv, "an image", "text in images has to be recognised by another program"},
};

// Of every second byte from `first` on.
int64_t count_nuls(std::string_view text, size_t first) {
  int64_t count = 0;
  for (size_t i = first; i < text.size(); i += 2) count += text[i] == '\0' ? 1 : 0;
  return count;
}

// Most characters of European languages have one byte that is 0 there, always the same one. A few
// bytes tell nothing.
bool is_unmarked_utf16(std::string_view begin) {
  constexpr int64_t kFewestPairs = 4;
  const auto num_pairs = static_cast<int64_t>(begin.size() / 2);
  if (num_pairs < kFewestPairs) return false;
  const int64_t high_first = count_nuls(begin, 0);
  const int64_t low_first = count_nuls(begin, 1);
  return std::min(high_first, low_first) == 0 && std::max(high_first, low_first) > num_pairs / 2;
}

}  // namespace

void refuse_foreign_text(std::string_view begin, const std::string& name) {
  for (const Format& format : kFormats) {
    if (!begin.starts_with(format.begin)) continue;
    throw Error(concat(name, ": is ", format.name, ", expected UTF-8 text"), format.hint);
  }
  if (!is_unmarked_utf16(begin)) return;
  throw Error(name + ": looks like UTF-16 text, expected UTF-8 text", kUtf16Hint);
}

}  // namespace tessera
