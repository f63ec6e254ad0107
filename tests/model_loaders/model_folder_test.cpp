#include "model_loaders/model_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/model_loaders/model_files.h"
#include "tests/model_loaders/temporary_folder.h"
#include "tests/model_loaders/thrown_error.h"

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

ThrownError folder_error(const TemporaryFolder& folder) {
  return thrown_error([&] { read_model_folder(folder.path(), false); });
}

TEST(ModelFolder, ReadsEveryFile) {
  const TemporaryFolder folder;
  folder.write("config.json", kTinyConfigJson);
  folder.write("generation_config.json", R"({"eos_token_id": [2, 3]})");
  folder.write("tokenizer_config.json", R"({"bos_token": "<s>"})");
  folder.write("tokenizer.model", "");
  const ModelFolder model = read_model_folder(folder.path(), false);
  EXPECT_EQ(model.path, folder.path());
  EXPECT_EQ(model.config.hidden_size, 8);
  EXPECT_EQ(model.config.head_dim, 4);
  EXPECT_THAT(model.generation.eos_token_ids, ElementsAre(2, 3));
  EXPECT_EQ(model.tokenizer.bos_token, "<s>");
  EXPECT_EQ(model.tokenizer_path, folder.path("tokenizer.model"));
  EXPECT_THAT(model.warnings, IsEmpty());
}

TEST(ModelFolder, TextFilesAreAllThatDecideWhatItSays) {
  const TemporaryFolder folder;
  folder.write("config.json", kTinyConfigJson);
  folder.write("tekken.json", "");
  folder.write("README.md", "read by nobody");
  const auto names = [&](const std::string& tokenizer = "") {
    std::vector<std::string> result;
    for (const std::string& path : read_model_folder(folder.path(), false, tokenizer).text_files) {
      result.push_back(std::filesystem::relative(path, folder.path()));
    }
    return result;
  };
  EXPECT_THAT(names(), ElementsAre("config.json", "tekken.json"));
  folder.write("chat_template.json", R"({"chat_template": "t"})");
  EXPECT_THAT(names(), ElementsAre("config.json", "chat_template.json", "tekken.json"));
  folder.write("generation_config.json", "{}");
  folder.write("tokenizer_config.json", R"({"chat_template": "u"})");
  folder.write("special_tokens_map.json", "{}");
  folder.write("added_tokens.json", "{}");
  folder.write("chat_template.jinja", "v");
  std::filesystem::create_directory(folder.path("additional_chat_templates"));
  folder.write("additional_chat_templates/rag.jinja", "w");
  folder.write("tokenizer.json", "{}");
  folder.write("other.json", "{}");
  // chat_template.json is not read any more: tokenizer_config.json has a template.
  EXPECT_THAT(names("other.json"),
              ElementsAre("config.json", "generation_config.json", "tokenizer_config.json",
                          "special_tokens_map.json", "added_tokens.json", "chat_template.jinja",
                          "additional_chat_templates/rag.jinja"));
  EXPECT_EQ(names().back(), "tokenizer.json");
}

TEST(ModelFolder, NeedsAConfig) {
  const TemporaryFolder folder;
  EXPECT_EQ(folder_error(folder).message,
            folder.path() + ": is not a Hugging Face model folder: it has no config.json");
}

TEST(ModelFolder, NamesTheFolderWithinThatIsMeant) {
  const TemporaryFolder folder;
  const std::string hint = "give the folder that holds config.json and model.safetensors";
  EXPECT_EQ(folder_error(folder).hint, hint);
  folder.write("notes/readme.txt", "");
  folder.write("snapshots/abc/config.json", "{}");
  EXPECT_EQ(folder_error(folder).hint, hint + ": " + folder.path("snapshots/abc"));
  folder.write("inner/config.json", "{}");
  EXPECT_EQ(folder_error(folder).hint, hint + ", such as " + folder.path("inner"));
}

TEST(ModelFolder, NamesWeightsOfAnotherFormat) {
  const TemporaryFolder folder;
  folder.write("model-q4.gguf", "");
  const ThrownError error = folder_error(folder);
  EXPECT_EQ(error.message,
            folder.path() + ": has only GGUF weights, which are not supported: model-q4.gguf");
  EXPECT_THAT(error.hint, HasSubstr("use the model that the GGUF file was made from"));
  folder.write("model.safetensors", "");
  EXPECT_THAT(folder_error(folder).message, HasSubstr("it has no config.json"));
}

TEST(ModelFolder, NeedsATokenizer) {
  const TemporaryFolder folder;
  folder.write("config.json", kTinyConfigJson);
  EXPECT_THAT(folder_error(folder).message,
              HasSubstr("neither tokenizer.json nor tokenizer.model nor tekken.json"));
}

// Devstral Small, Magistral Small and Mistral Small 3.2 have no other.
TEST(ModelFolder, TakesATekkenFileWhereThereIsNoOther) {
  const TemporaryFolder folder;
  folder.write("config.json", kTinyConfigJson);
  folder.write("tekken.json", "{}");
  const auto tokenizer = [&] { return read_model_folder(folder.path(), false, "").tokenizer_path; };
  EXPECT_EQ(tokenizer(), folder.path("tekken.json"));
  folder.write("tokenizer.model", "");
  EXPECT_EQ(tokenizer(), folder.path("tokenizer.model"));
}

TEST(ModelFolder, TakesTokenizerJsonUnlessTold) {
  const TemporaryFolder folder;
  const auto tokenizer = [&](const std::string& choice) {
    return read_model_folder(folder.path(), false, choice).tokenizer_path;
  };
  folder.write("config.json", kTinyConfigJson);
  folder.write("tokenizer.model", "");
  EXPECT_EQ(tokenizer(""), folder.path("tokenizer.model"));
  folder.write("tokenizer.json", "{}");
  EXPECT_EQ(tokenizer(""), folder.path("tokenizer.json"));
  EXPECT_EQ(tokenizer("tokenizer.model"), folder.path("tokenizer.model"));
  const TemporaryFolder other;
  const std::string path = other.write("other.json", "{}");
  EXPECT_EQ(tokenizer(path), path);
  EXPECT_EQ(thrown_error([&] { tokenizer("none.json"); }).message,
            "there is no tokenizer none.json, neither in " + folder.path() + " nor here");
}

TEST(ModelFolder, NamesTheFileAtFault) {
  const TemporaryFolder folder;
  const std::string path = folder.write("config.json", R"({"model_type": "llama", )");
  EXPECT_EQ(folder_error(folder).message,
            path + ": invalid JSON at byte 24: the text ends too early");
  std::filesystem::remove(path);
  std::filesystem::create_symlink("../../blobs/abc", path);
  EXPECT_EQ(folder_error(folder).message, path + ": broken symlink to '../../blobs/abc'");
}

TEST(ModelFolder, PassesWarningsOn) {
  const TemporaryFolder folder;
  folder.write("config.json", R"({"model_type": "llama", "qk_norm": true})");
  folder.write("tokenizer.model", "");
  EXPECT_THAT(folder_error(folder).message,
              HasSubstr("not understood, results may be wrong: qk_norm"));
  EXPECT_THAT(read_model_folder(folder.path(), true).warnings, ElementsAre(HasSubstr("qk_norm")));
}

}  // namespace
}  // namespace tessera
