#include "model_loaders/kv_file.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "tests/model_loaders/kv_file_builder.h"
#include "tests/model_loaders/temporary_folder.h"
#include "tests/model_loaders/thrown_error.h"

namespace tessera {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

class KvFileTest : public testing::Test {
 protected:
  std::string write(std::string_view bytes) const {
    const std::string path = folder_.path("document.kv");
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  // Why a file of these bytes is refused.
  std::string problem(const std::string& bytes) const {
    const std::string path = write(bytes);
    const std::string message = thrown_error([&] { KvFile::open(path); }).message;
    EXPECT_THAT(message, testing::StartsWith(path + ": "));
    return message;
  }
  // The same for a header that says something else, with its checksum, before the small file's
  // rest.
  std::string header_problem(const KvFileHeader& header) const {
    const KvHeaderBytes bytes = to_bytes(header);
    return problem(std::string(bytes.data(), bytes.size()) +
                   small_kv_file().substr(kKvHeaderBytes));
  }
  static KvFileHeader header_of_small_file() {
    const std::string bytes = small_kv_file();
    KvHeaderBytes first;
    std::memcpy(first.data(), bytes.data(), first.size());
    return parse_kv_header(first, "small");
  }

  TemporaryFolder folder_;
};

TEST_F(KvFileTest, IsToldFromOtherFiles) {
  EXPECT_TRUE(is_kv_file(write(small_kv_file())));
  EXPECT_TRUE(is_kv_file(write(small_kv_file().substr(0, 20))));
  EXPECT_FALSE(is_kv_file(write("")));
  EXPECT_FALSE(is_kv_file(write("a diary")));
  EXPECT_FALSE(is_kv_file(write(std::string(5000, 'x'))));
}

TEST_F(KvFileTest, HoldsWhatWasWritten) {
  const KvFile file = KvFile::open(write(small_kv_file("a text")));
  EXPECT_EQ(file.text(), "a text");
  EXPECT_THAT(file.tokens(), ElementsAre(5, 6, 7, 8, 9, 10, 11, 12));
  EXPECT_EQ(file.header().layout, kSmallLayout);
  EXPECT_EQ(file.header().model_fingerprint, std::string(64, 'a'));
  const size_t page_bytes = kSmallLayout.page_bytes();
  std::vector<std::byte> pages(2 * page_bytes);
  file.read_pages(3, 0, 2, pages.data());
  EXPECT_THAT(std::span(pages).first(page_bytes), Each(std::byte{6}));
  EXPECT_THAT(std::span(pages).last(page_bytes), Each(std::byte{7}));
}

TEST_F(KvFileTest, SaysForWhichContextRopeWasStretched) {
  KvFileHeader header = header_of_small_file();
  header.layout.rope_context = 5000;
  EXPECT_EQ(parse_kv_header(to_bytes(header), "small"), header);
  EXPECT_NE(header.layout, kSmallLayout);
  EXPECT_EQ(header.layout.text(), kSmallLayout.text() + ", RoPE stretched for 5000 tokens");
}

TEST_F(KvFileTest, EveryLengthButItsOwnIsRefused) {
  const std::string whole = small_kv_file();
  // Each in the header, some behind it, and the last.
  for (size_t size = 0; size < whole.size();
       size = std::min(size + (size < kKvHeaderBytes ? 1 : 101),
                       std::max(size + 1, whole.size() - 1))) {
    EXPECT_THAT(problem(whole.substr(0, size)), HasSubstr(concat("has ", counted(size, "byte"))));
  }
  EXPECT_THAT(
      problem(whole + '\0'),
      HasSubstr(concat("has ", whole.size() + 1, " bytes, its header describes ", whole.size())));
}

TEST_F(KvFileTest, EveryAlteredByteIsNoticed) {
  const std::string whole = small_kv_file();
  const KvFileHeader header = header_of_small_file();
  std::vector<std::byte> page(kSmallLayout.page_bytes());
  for (size_t at = 0; at < whole.size(); ++at) {
    if (at >= header.scales_begin() && at < header.pages_begin()) continue;  // between sections
    std::string altered = whole;
    altered[at] = static_cast<char>(altered[at] ^ 4);
    const std::string path = write(altered);
    const auto read_all = [&] {
      const KvFile file = KvFile::open(path);
      for (uint64_t tensor = 0; tensor < kSmallLayout.num_tensors(); ++tensor) {
        file.read_pages(tensor, 0, 1, page.data());
        file.read_pages(tensor, 1, 2, page.data());
      }
    };
    EXPECT_NE(thrown_error(read_all).message, "") << "byte " << at;
  }
}

TEST_F(KvFileTest, SaysWhichPageIsDamaged) {
  std::string bytes = small_kv_file();
  const KvFileHeader header = header_of_small_file();
  bytes[header.page_begin(3, 1) + 2] ^= 1;
  const KvFile file = KvFile::open(write(bytes));
  std::vector<std::byte> pages(2 * kSmallLayout.page_bytes());
  file.read_pages(2, 0, 2, pages.data());
  EXPECT_THAT(thrown_error([&] { file.read_pages(3, 0, 2, pages.data()); }).message,
              HasSubstr("page 1 of values of layer 1"));
}

TEST_F(KvFileTest, RefusesWhatCannotBe) {
  const KvFileHeader good = header_of_small_file();
  const auto with = [&good](auto change) {
    KvFileHeader header = good;
    change(header);
    return header;
  };
  constexpr int64_t kHuge = int64_t{1} << 62;
  EXPECT_THAT(header_problem(with([](auto& h) { h.layout.num_layers = kHuge; })),
              HasSubstr("number of layers must be 1 to 4096, got 4611686018427387904"));
  EXPECT_THAT(header_problem(with([](auto& h) { h.layout.num_kv_heads = 0; })),
              HasSubstr("number of KV heads"));
  EXPECT_THAT(header_problem(with([](auto& h) { h.layout.page_size = -4; })),
              HasSubstr("page size"));
  EXPECT_THAT(header_problem(with([](auto& h) { h.layout.head_dim = kHuge; })),
              HasSubstr("head_dim"));
  EXPECT_THAT(header_problem(with([](auto& h) { h.layout.rope_context = -1; })),
              HasSubstr("stretched context must be 0 to 1073741824, got -1"));
  EXPECT_THAT(header_problem(with([](auto& h) { h.num_pages = kHuge; })),
              HasSubstr("number of pages"));
  EXPECT_THAT(header_problem(with([](auto& h) { h.text_bytes = ~uint64_t{0}; })),
              HasSubstr("its text has 18446744073709551615 bytes"));
  EXPECT_THAT(header_problem(with([](auto& h) { h.scales_bytes = 4; })), HasSubstr("scales"));
  EXPECT_THAT(header_problem(with([](auto& h) {
                h.layout.head_dim = 65536;
                h.layout.page_size = 64;
              })),
              HasSubstr("pages have 16777216 bytes"));
  EXPECT_THAT(header_problem(with([](auto& h) { h.num_pages = 3; })), HasSubstr("describes"));
  EXPECT_THAT(header_problem(with([](auto& h) { h.layout.dtype = DType::kInt32; })),
              HasSubstr("'int32', which is not known"));
  EXPECT_THAT(header_problem(with([](auto& h) { h.model_fingerprint[3] = 'G'; })),
              HasSubstr("hexadecimal"));
}

TEST_F(KvFileTest, OtherFilesAndVersionsAreToldApart) {
  EXPECT_THAT(problem(std::string(10'000, 'x')), HasSubstr("is no file of keys and values"));
  std::string bytes = small_kv_file();
  bytes[8] = 2;
  EXPECT_THAT(problem(bytes), HasSubstr("version 2 of the format, this tessera reads version 1"));
}

TEST_F(KvFileTest, PagesTooLargeForOneReadAreNotWritten) {
  KvFileHeader header = small_header();
  header.layout.num_kv_heads = 64;
  header.layout.page_size = 256;
  header.layout.head_dim = 128;
  EXPECT_THAT(
      thrown_error([&] { KvFileWriter(header, "", {}, {}, [](std::string_view) {}); }).message,
      HasSubstr("--page-size"));
}

}  // namespace
}  // namespace tessera
