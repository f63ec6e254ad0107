#include "model_loaders/hub_cache.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "kernels/tensor/check.h"
#include "model_loaders/file_reader.h"
#include "model_loaders/foreign_format.h"
#include "model_loaders/model_folder.h"
#include "model_loaders/printable.h"
#include "model_loaders/safe_file_name.h"

namespace tessera {
namespace {

constexpr size_t kCommitDigits = 40;
constexpr uint64_t kMaxRefBytes = 4096;

bool is_commit(std::string_view text) {
  return text.size() == kCommitDigits && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

bool is_directory(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

// The commit that a branch or tag points to; nothing when there is no such file.
std::optional<std::string> read_ref(const std::string& path) {
  if (!file_exists(path)) return std::nullopt;
  std::string commit = read_whole_file(path, kMaxRefBytes);
  commit.erase(commit.find_last_not_of(" \t\r\n") + 1);
  CHECK(is_commit(commit), path, ": must hold a commit of ", kCommitDigits, " hex digits, got '",
        printable(commit), "'");
  return commit;
}

// The snapshot of a model whose cache does not say which one is main: the only one there is.
std::optional<std::string> only_snapshot(const HubName& name, const std::string& snapshots) {
  std::vector<std::string> commits;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(snapshots, error)) {
    if (is_directory(entry.path())) commits.push_back(entry.path().filename().string());
  }
  if (commits.empty()) return std::nullopt;
  std::ranges::sort(commits);
  if (commits.size() > 1) {
    std::string list;
    for (const std::string& commit : commits) list += " " + printable(commit);
    const std::string model = concat(name.organisation, '/', name.name);
    throw Error(concat(model, ": the cache has ", commits.size(),
                       " snapshots and no refs/main that chooses one:", list),
                concat("choose one: ", model, "@", printable(commits.front())));
  }
  return join_path(snapshots, commits.front());
}

}  // namespace

std::optional<HubName> parse_hub_name(std::string_view text) {
  HubName name;
  if (const size_t at = text.find('@'); at != std::string_view::npos) {
    name.revision = text.substr(at + 1);
    if (!is_safe_relative_path(name.revision)) return std::nullopt;
    text = text.substr(0, at);
  }
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  name.organisation = text.substr(0, slash);
  name.name = text.substr(slash + 1);
  if (!is_safe_file_name(name.organisation) || !is_safe_file_name(name.name)) return std::nullopt;
  return name;
}

std::optional<std::string> find_snapshot(const HubName& name, const std::string& cache_folder,
                                         std::vector<std::string>& tried) {
  const std::string repository =
      join_path(cache_folder, concat("models--", name.organisation, "--", name.name));
  const std::string snapshots = join_path(repository, "snapshots");
  const std::string revision = name.revision.empty() ? "main" : name.revision;
  std::optional<std::string> commit;
  if (is_commit(revision)) {
    commit = revision;
  } else {
    const std::string ref = join_path(join_path(repository, "refs"), revision);
    commit = read_ref(ref);
    if (!commit) tried.push_back(ref);
  }
  if (commit) {
    const std::string snapshot = join_path(snapshots, *commit);
    if (is_directory(snapshot)) return snapshot;
    tried.push_back(snapshot);
    return std::nullopt;
  }
  if (!name.revision.empty()) return std::nullopt;
  tried.push_back(snapshots);
  return only_snapshot(name, snapshots);
}

std::string resolve_model_folder(const std::string& model, const std::string& cache_folder,
                                 std::vector<std::string>& warnings) {
  if (is_directory(model)) return model;
  if (file_exists(model)) {
    if (const auto error = recognise_weights_file(model)) throw *error;
    const std::string folder = std::filesystem::path(model).parent_path().string();
    const bool is_in_model = file_exists(join_path(folder.empty() ? "." : folder, "config.json"));
    throw Error(model + ": is not a Hugging Face model folder but a file",
                concat("give the folder that holds config.json",
                       is_in_model ? ": " + (folder.empty() ? "." : folder) : ""));
  }
  const std::optional<HubName> name = parse_hub_name(model);
  if (!name) {
    throw Error(model + ": is not a Hugging Face model folder: it does not exist",
                "give a folder with config.json, or a model in the cache as org/name[@revision]");
  }
  std::vector<std::string> tried = {model};
  if (!cache_folder.empty()) {
    if (auto snapshot = find_snapshot(*name, cache_folder, tried)) {
      const bool is_guess = tried.size() > 1;  // what says which snapshot it is was not found
      if (is_guess) {
        warnings.push_back(concat(model, ": there is no '", tried[1],
                                  "'; taken is the only snapshot, ", *snapshot));
      }
      return *std::move(snapshot);
    }
  }
  std::string message = model + ": is not a Hugging Face model folder, nor in the cache; tried";
  for (const std::string& path : tried) message += " '" + path + "'";
  throw Error(message, concat("hf download ", name->organisation, "/", name->name,
                              name->revision.empty() ? "" : " --revision ", name->revision));
}

}  // namespace tessera
