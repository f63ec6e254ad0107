#include "model_loaders/hub_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "model_loaders/model_folder.h"
#include "tests/model_loaders/temporary_folder.h"
#include "tests/model_loaders/thrown_error.h"

namespace tessera {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kCommit(40, 'a');
const std::string kOtherCommit(40, 'b');
const std::string kRepository = "models--org--name";

// A cache with one model whose main is kCommit.
class HubCache : public testing::Test {
 protected:
  void SetUp() override {
    cache_.write(kRepository + "/refs/main", kCommit + "\n");
    cache_.write(kRepository + "/refs/refs/pr/1", kOtherCommit);
    cache_.write(kRepository + "/snapshots/" + kCommit + "/config.json", "{}");
    cache_.write(kRepository + "/snapshots/" + kOtherCommit + "/config.json", "{}");
  }
  std::string snapshot(const std::string& commit) const {
    return cache_.path(kRepository + "/snapshots/" + commit);
  }
  std::string resolve(const std::string& model) {
    warnings_.clear();
    return resolve_model_folder(model, cache_.path(), warnings_);
  }
  ThrownError resolve_error(const std::string& model) {
    return thrown_error([&] { resolve(model); });
  }

  TemporaryFolder cache_;
  std::vector<std::string> warnings_;  // of the last resolve()
};

TEST_F(HubCache, PrefersAFolderThatExists) {
  const TemporaryFolder folder;
  EXPECT_EQ(resolve(folder.path()), folder.path());
}

TEST_F(HubCache, FindsBranchesAndCommits) {
  EXPECT_EQ(resolve("org/name"), snapshot(kCommit));
  EXPECT_EQ(resolve("org/name@main"), snapshot(kCommit));
  EXPECT_EQ(resolve("org/name@refs/pr/1"), snapshot(kOtherCommit));
  EXPECT_EQ(resolve("org/name@" + kOtherCommit), snapshot(kOtherCommit));
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(HubCache, TakesTheOnlySnapshotWhenThereIsNoMain) {
  std::filesystem::remove(cache_.path(kRepository + "/refs/main"));
  const ThrownError error = resolve_error("org/name");
  EXPECT_EQ(error.message,
            concat("org/name: the cache has 2 snapshots and no refs/main that chooses one: ",
                   kCommit, " ", kOtherCommit));
  EXPECT_EQ(error.hint, "choose one: org/name@" + kCommit);
  EXPECT_EQ(resolve("org/name@" + kCommit), snapshot(kCommit));
  std::filesystem::remove_all(snapshot(kCommit));
  EXPECT_EQ(resolve("org/name"), snapshot(kOtherCommit));
  EXPECT_THAT(warnings_, ElementsAre(AllOf(HasSubstr("there is no"), HasSubstr("refs/main"),
                                           HasSubstr(kOtherCommit))));
  EXPECT_THAT(resolve_error("org/name@main").message, HasSubstr("nor in the cache"));
}

TEST_F(HubCache, SaysWhatItTriedAndHowToDownload) {
  const ThrownError error = resolve_error("org/absent@v2");
  EXPECT_THAT(error.message,
              AllOf(HasSubstr("org/absent@v2: is not a Hugging Face model folder"),
                    HasSubstr(concat("'", cache_.path("models--org--absent/refs/v2"), "'"))));
  EXPECT_EQ(error.hint, "hf download org/absent --revision v2");
  EXPECT_EQ(resolve_error("org/absent").hint, "hf download org/absent");
  EXPECT_EQ(thrown_error([] {
              std::vector<std::string> warnings;
              resolve_model_folder("org/name", "", warnings);
            }).hint,
            "hf download org/name");
}

TEST_F(HubCache, NamesTheMissingSnapshot) {
  std::filesystem::remove_all(snapshot(kCommit));
  EXPECT_THAT(resolve_error("org/name").message, HasSubstr(concat("'", snapshot(kCommit), "'")));
}

TEST_F(HubCache, RefusesWhatIsNoName) {
  for (const char* const model :
       {"/no/such/folder", "../../no_such_folder", "org/../name", "org", "a/b/c", "org/", "/name",
        "", "org/name@", "org/name@../../../etc", "org/name@/etc/passwd", "org/name@a//b",
        "./org/name"}) {
    EXPECT_THAT(resolve_error(model).message,
                HasSubstr("is not a Hugging Face model folder: it does not exist"))
        << model;
  }
}

TEST_F(HubCache, RefusesAFile) {
  const std::string path = cache_.write("model.safetensors", "");
  EXPECT_EQ(resolve_error(path).message, path + ": is not a Hugging Face model folder but a file");
  EXPECT_EQ(resolve_error(path).hint, "give the folder that holds config.json");
  const std::string config = cache_.write("config.json", "{}");
  EXPECT_EQ(resolve_error(config).hint, "give the folder that holds config.json: " + cache_.path());
  EXPECT_EQ(resolve_error(cache_.write("m.gguf", "GGUF\3")).message,
            cache_.path("m.gguf") + ": this is a GGUF file, not safetensors");
}

TEST_F(HubCache, RefusesARefThatIsNoCommit) {
  const std::string path = cache_.write(kRepository + "/refs/evil", "../../../../etc\x1b");
  EXPECT_EQ(resolve_error("org/name@evil").message,
            path + ": must hold a commit of 40 hex digits, got '../../../../etc\\x1b'");
  cache_.write(kRepository + "/refs/empty", "");
  EXPECT_THAT(resolve_error("org/name@empty").message, HasSubstr("must hold a commit"));
}

}  // namespace
}  // namespace tessera
