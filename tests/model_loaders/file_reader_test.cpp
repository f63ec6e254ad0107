#include "model_loaders/file_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>

#include "tests/model_loaders/temporary_folder.h"
#include "tests/model_loaders/thrown_error.h"

namespace tessera {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(FileReader, ReadsRanges) {
  const TemporaryFolder folder;
  const FileReader file(folder.write("data", "0123456789"));
  EXPECT_EQ(file.size_bytes(), 10u);
  std::string bytes(4, ' ');
  file.read(bytes.data(), 6, 4);
  EXPECT_EQ(bytes, "6789");
  file.read(bytes.data(), 10, 0);
  EXPECT_THROW(file.read(bytes.data(), 7, 4), Error);
  EXPECT_THROW(file.read(bytes.data(), ~uint64_t{0}, 4), Error);
  EXPECT_THROW(file.read(bytes.data(), 4, ~uint64_t{0}), Error);
}

TEST(FileReader, CanBeMoved) {
  const TemporaryFolder folder;
  FileReader first(folder.write("a", "first"));
  FileReader second(folder.write("b", "second"));
  second = std::move(first);
  const FileReader third(std::move(second));
  std::string bytes(5, ' ');
  third.read(bytes.data(), 0, 5);
  EXPECT_EQ(bytes, "first");
}

TEST(FileReader, NoticesThatTheFileShrank) {
  const TemporaryFolder folder;
  const std::string path = folder.write("data", "0123456789");
  const FileReader file(path);
  ASSERT_EQ(::truncate(path.c_str(), 5), 0);
  std::string bytes(10, ' ');
  EXPECT_THAT(thrown_error([&] { file.read(bytes.data(), 0, 10); }).message,
              HasSubstr("file changed during load"));
}

TEST(FileReader, SaysWhyAFileCannotBeRead) {
  const TemporaryFolder folder;
  const auto message = [](const std::string& path) {
    return thrown_error([&] { FileReader file(path); }).message;
  };
  const std::string absent = folder.path("absent");
  EXPECT_EQ(message(absent), absent + ": cannot open: No such file or directory");
  EXPECT_THAT(message(folder.path()), HasSubstr("is a directory"));

  const std::string pipe = folder.path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(message(pipe), HasSubstr("is not a regular file"));

  const std::string loop = folder.path("loop");
  std::filesystem::create_symlink(loop, loop);
  EXPECT_THAT(message(loop), HasSubstr("symbolic links"));
}

TEST(FileReader, NamesTheTargetOfABrokenSymlink) {
  const TemporaryFolder folder;
  std::filesystem::create_symlink("../../blobs/abc", folder.path("model.safetensors"));
  const ThrownError error =
      thrown_error([&] { FileReader file(folder.path("model.safetensors")); });
  EXPECT_THAT(error.message, HasSubstr("broken symlink to '../../blobs/abc'"));
  EXPECT_EQ(error.hint, "download the model again");
  EXPECT_TRUE(file_exists(folder.path("model.safetensors")));
}

TEST(ReadWholeFile, HasALimit) {
  const TemporaryFolder folder;
  const std::string path = folder.write("data", "0123456789");
  EXPECT_EQ(read_whole_file(path, 10), "0123456789");
  EXPECT_THAT(thrown_error([&] { read_whole_file(path, 9); }).message,
              StartsWith(path + ": has 10 bytes, at most 9"));
}

}  // namespace
}  // namespace tessera
