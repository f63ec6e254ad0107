// A file of keys and values. Its header gets the checksum that it needs, so that mutations of what
// it says come as far as what they say is judged.
#include "model_loaders/kv_file.h"

#include <cstring>

#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/memory_folder.h"
#include "tests/fuzz/oracle.h"
#include "tests/model_loaders/kv_file_builder.h"

namespace tessera {
namespace {

std::string sealed(std::string_view bytes) {
  std::string result(bytes);
  if (result.size() < kKvHeaderBytes) return result;
  KvHeaderBytes header;
  std::memcpy(header.data(), result.data(), header.size());
  seal(header);
  std::memcpy(result.data(), header.data(), header.size());
  return result;
}

std::string with_header(const KvFileHeader& header) {
  const KvHeaderBytes bytes = to_bytes(header);
  return std::string(bytes.data(), bytes.size()) + small_kv_file().substr(kKvHeaderBytes);
}

void read(std::string_view bytes) {
  static const MemoryFolder memory("document.kv");
  memory.replace(sealed(bytes));
  const KvFile file = KvFile::open(memory.path());
  const KvFileHeader& header = file.header();
  require(header.file_bytes() == bytes.size(), "the header gives the length");
  require(file.text().size() == header.text_bytes, "the header gives the text's length");
  require(std::ssize(file.tokens()) == header.num_tokens(), "tokens fill the pages");
  require(parse_kv_header(to_bytes(header), memory.path()) == header,
          "a header written from what it says reads the same");
  std::vector<std::byte> page(header.layout.page_bytes());
  for (uint64_t tensor = 0; tensor < header.layout.num_tensors(); ++tensor) {
    for (uint64_t i = 0; i < static_cast<uint64_t>(header.num_pages); ++i) {
      file.read_pages(tensor, i, i + 1, page.data());
    }
  }
}

std::vector<std::string> seeds() {
  std::vector<std::string> files = {small_kv_file(),
                                    small_kv_file(""),
                                    small_kv_file(std::string(300, 'x')),
                                    "",
                                    small_kv_file().substr(0, 255),
                                    std::string(256, '\0')};
  for (const int64_t size : {int64_t{0}, int64_t{-1}, int64_t{1} << 28, int64_t{1} << 62}) {
    KvFileHeader header = small_header();
    header.num_pages = size;
    files.push_back(with_header(header));
    header.layout.num_layers = size;
    files.push_back(with_header(header));
    header = small_header();
    header.text_bytes = static_cast<uint64_t>(size);
    files.push_back(with_header(header));
    header.layout.head_dim = size;
    files.push_back(with_header(header));
  }
  return files;
}

}  // namespace

FuzzTarget kv_file_target() {
  return {"kv_file",
          read,
          seeds(),
          {"tess.kv\n", "float32", "float16", "bfloat16", "int32", std::string(8, '\xff'),
           std::string("\0\0\0\0\0\0\0\x40", 8), std::string("\0\0\0\x10\0\0\0\0", 8)},
          /*max_bytes=*/6000};
}

}  // namespace tessera
