#include "model_loaders/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/model_loaders/safetensors_builder.h"
#include "tests/model_loaders/temporary_folder.h"
#include "tests/model_loaders/thrown_error.h"

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kFirst = "model-00001-of-00002.safetensors";
constexpr const char* kSecond = "model-00002-of-00002.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

std::string one_tensor(const std::string& name, const std::string& data = "abcd") {
  return SafetensorsBuilder().add(name, "F32", "[1]", data).file();
}

ThrownError open_error(const TemporaryFolder& folder) {
  return thrown_error([&] { Checkpoint::open(folder.path()); });
}

std::string bytes_of(const Checkpoint& checkpoint, std::string_view name) {
  const TensorEntry& entry = *checkpoint.find(name);
  std::string bytes(entry.size_bytes, ' ');
  checkpoint.read(entry, bytes.data(), 0, entry.size_bytes);
  return bytes;
}

// "a" in the first file, "b" in the second.
class ShardedCheckpoint : public testing::Test {
 protected:
  void SetUp() override {
    folder_.write(kFirst, one_tensor("a", "AAAA"));
    folder_.write(kSecond, one_tensor("b", "BBBB"));
    write_index(kFirst, kSecond);
  }
  void write_index(const std::string& file_of_a, const std::string& file_of_b) const {
    folder_.write(kIndex, R"({"metadata": {"total_size": 8}, "weight_map": {"a": ")" + file_of_a +
                              R"(", "b": ")" + file_of_b + "\"}}");
  }
  TemporaryFolder folder_;
};

TEST(Checkpoint, ReadsPartsOfTensors) {
  const TemporaryFolder folder;
  folder.write("model.safetensors", SafetensorsBuilder()
                                        .add("a", "F32", "[2]", "01234567")
                                        .add("b", "BF16", "[1, 2]", "wxyz")
                                        .file());
  const Checkpoint checkpoint = Checkpoint::open(folder.path());
  EXPECT_EQ(checkpoint.tensors().size(), 2u);
  EXPECT_EQ(checkpoint.total_bytes(), 12u);
  EXPECT_THAT(checkpoint.file_paths(), ElementsAre(folder.path("model.safetensors")));
  EXPECT_THAT(checkpoint.warnings(), IsEmpty());
  EXPECT_EQ(bytes_of(checkpoint, "b"), "wxyz");
  std::string part(3, ' ');
  checkpoint.read(*checkpoint.find("a"), part.data(), 5, 3);
  EXPECT_EQ(part, "567");
  EXPECT_THROW(checkpoint.read(*checkpoint.find("a"), part.data(), 6, 3), Error);
  EXPECT_THROW(checkpoint.read(*checkpoint.find("a"), part.data(), ~uint64_t{0}, 3), Error);
}

TEST(Checkpoint, ExpectsShapes) {
  const TemporaryFolder folder;
  folder.write("model.safetensors", one_tensor("a"));
  const Checkpoint checkpoint = Checkpoint::open(folder.path());
  EXPECT_EQ(checkpoint.expect("a", {1}).name, "a");
  EXPECT_EQ(checkpoint.find("b"), nullptr);
  const std::string path = folder.path("model.safetensors");
  EXPECT_EQ(thrown_error([&] { checkpoint.expect("b", {1}); }).message,
            path + ": tensor 'b' is missing");
  EXPECT_EQ(thrown_error([&] {
              checkpoint.expect("a", {2, 3});
            }).message,
            path + ": tensor 'a' has shape [1], expected [2, 3]");
}

TEST(Checkpoint, NoticesThatAFileShrankAfterOpening) {
  const TemporaryFolder folder;
  const std::string path = folder.write("model.safetensors", one_tensor("a"));
  const Checkpoint checkpoint = Checkpoint::open(folder.path());
  std::filesystem::resize_file(path, 20);
  EXPECT_THAT(thrown_error([&] { bytes_of(checkpoint, "a"); }).message,
              HasSubstr(path + ": file changed during load"));
}

TEST(Checkpoint, SaysWhyThereAreNoWeights) {
  const TemporaryFolder folder;
  EXPECT_EQ(open_error(folder).message,
            folder.path() + ": no weights: neither model.safetensors nor " + kIndex);
  folder.write("model.gguf", "");
  EXPECT_THAT(open_error(folder).message, HasSubstr("has only GGUF weights"));
  std::filesystem::remove(folder.path("model.gguf"));
  folder.write("pytorch_model.bin", "");
  EXPECT_THAT(open_error(folder).message, HasSubstr("PyTorch pickle is not supported (unsafe"));
}

TEST(Checkpoint, NamesABrokenSymlink) {
  const TemporaryFolder folder;
  std::filesystem::create_symlink("../../blobs/abc", folder.path("model.safetensors"));
  EXPECT_THAT(open_error(folder).message, HasSubstr("broken symlink to '../../blobs/abc'"));
  EXPECT_EQ(open_error(folder).hint, "download the model again");
}

TEST_F(ShardedCheckpoint, ReadsAllFiles) {
  const Checkpoint checkpoint = Checkpoint::open(folder_.path());
  EXPECT_THAT(checkpoint.file_paths(), ElementsAre(folder_.path(kFirst), folder_.path(kSecond)));
  EXPECT_EQ(bytes_of(checkpoint, "a"), "AAAA");
  EXPECT_EQ(bytes_of(checkpoint, "b"), "BBBB");
  EXPECT_EQ(checkpoint.total_bytes(), 8u);
  EXPECT_THAT(checkpoint.warnings(), IsEmpty());
}

TEST_F(ShardedCheckpoint, FollowsSymlinksIntoTheCache) {
  folder_.write("blobs/123", one_tensor("b", "CCCC"));
  std::filesystem::remove(folder_.path(kSecond));
  std::filesystem::create_symlink("blobs/123", folder_.path(kSecond));
  EXPECT_EQ(bytes_of(Checkpoint::open(folder_.path()), "b"), "CCCC");
}

TEST_F(ShardedCheckpoint, PrefersTheSingleFileAndSaysSo) {
  folder_.write("model.safetensors", one_tensor("c"));
  const Checkpoint checkpoint = Checkpoint::open(folder_.path());
  EXPECT_EQ(checkpoint.find("a"), nullptr);
  EXPECT_THAT(checkpoint.warnings(),
              ElementsAre(folder_.path(kIndex) + ": not used, there is a model.safetensors"));
}

TEST_F(ShardedCheckpoint, CountsWhatAMissingFileLoses) {
  std::filesystem::remove(folder_.path(kSecond));
  EXPECT_EQ(open_error(folder_).message,
            concat(folder_.path(kIndex), ": '", kSecond,
                   "' is missing; 1 of 2 files and 1 of 2 tensors are not there"));
}

TEST_F(ShardedCheckpoint, OpensWhatIsThereForWhoShowsIt) {
  std::optional<Error> missing;
  EXPECT_EQ(Checkpoint::open_what_is_there(folder_.path(), missing).tensors().size(), 2u);
  EXPECT_FALSE(missing);
  std::filesystem::remove(folder_.path(kFirst));
  const Checkpoint checkpoint = Checkpoint::open_what_is_there(folder_.path(), missing);
  ASSERT_TRUE(missing);
  EXPECT_EQ(missing->what(), open_error(folder_).message);
  EXPECT_EQ(checkpoint.tensors().size(), 1u);
  EXPECT_EQ(bytes_of(checkpoint, "b"), "BBBB");
}

TEST_F(ShardedCheckpoint, RefusesAWrongMapping) {
  write_index(kSecond, kSecond);
  EXPECT_THAT(open_error(folder_).message, HasSubstr("tensor 'a' is not in"));
  write_index(kSecond, kFirst);
  EXPECT_EQ(open_error(folder_).message,
            concat(folder_.path(kIndex), ": tensor 'a' is not in ", kSecond,
                   ", where the index has it, but in ", kFirst));
}

TEST_F(ShardedCheckpoint, RefusesATensorInTwoFiles) {
  folder_.write(
      kSecond,
      SafetensorsBuilder().add("b", "F32", "[1]", "BBBB").add("a", "F32", "[1]", "AAAA").file());
  EXPECT_EQ(open_error(folder_).message,
            concat(folder_.path(kSecond), ": tensor 'a' is also in ", folder_.path(kFirst)));
}

TEST_F(ShardedCheckpoint, WarnsOfWhatIsOdd) {
  folder_.write(
      kSecond,
      SafetensorsBuilder().add("b", "F32", "[1]", "BBBB").add("c", "F32", "[1]", "CCCC").file());
  EXPECT_THAT(Checkpoint::open(folder_.path()).warnings(),
              ElementsAre(HasSubstr("1 tensor of the files is not in the index, the first is 'c'"),
                          HasSubstr("total_size is 8 bytes, the tensors have 12")));
}

TEST_F(ShardedCheckpoint, LetsTheIndexNameTablesThatAreLeftOut) {
  folder_.write(kSecond, SafetensorsBuilder()
                             .add("b", "F32", "[1]", "BBBB")
                             .add("x.rotary_emb.inv_freq", "F64", "[1]", "12345678")
                             .file());
  folder_.write(kIndex, concat(R"({"weight_map": {"a": ")", kFirst, R"(", "b": ")", kSecond,
                               R"(", "x.rotary_emb.inv_freq": ")", kSecond, "\"}}"));
  EXPECT_EQ(Checkpoint::open(folder_.path()).tensors().size(), 2u);
}

}  // namespace
}  // namespace tessera
