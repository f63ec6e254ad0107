#include "apps/batch/manifest.h"

#include <filesystem>
#include <system_error>

#include "apps/files/atomic_file.h"
#include "apps/process/exit_codes.h"
#include "engine/input_files.h"

namespace tessera {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMaxBytes = uint64_t{16} << 20;

std::string written(const Json& settings) {
  return Json{{"settings", settings}}.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

// As they would be read back: JSON has no bytes that are not UTF-8.
Json as_written(const Json& settings) { return Json::parse(written(settings))["settings"]; }

std::string shown_setting(const Json& value) {
  return value.is_null() ? "not set" : printable(value.dump());
}

// Throws Error when there is none, or the file is not one.
Json settings_in(const std::string& path) {
  const Json document = parse_strict_json(read_whole_file(path, kMaxBytes), {path});
  CHECK(document.is_object() && document.contains("settings") && document["settings"].is_object(),
        path, ": is not the manifest of a batch");
  return document["settings"];
}

}  // namespace

BatchManifest::BatchManifest(const std::string& output_path) : output_path_(output_path) {
  std::error_code problem;
  const std::filesystem::path target = std::filesystem::canonical(output_path, problem);
  path_ = (problem ? output_path : target.string()) + ".manifest.json";
}

void BatchManifest::read() {
  try {
    settings_ = settings_in(path_);
  } catch (const Error& error) {
    std::error_code problem;
    throw UsageError(
        concat(error.what(), "; it says with which settings ", output_path_, " was begun"),
        std::filesystem::exists(path_, problem)
            ? "--force goes on with the answers as they are; to start anew, remove this file and "
              "give --overwrite"
            : kResumeHint);
  }
}

void BatchManifest::require_replaceable() const {
  std::error_code problem;
  const std::filesystem::file_status status = std::filesystem::status(path_, problem);
  if (!std::filesystem::exists(status)) return;
  if (std::filesystem::is_regular_file(status) && std::filesystem::file_size(path_, problem) == 0) {
    return;
  }
  try {
    settings_in(path_);
  } catch (const Error&) {
    throw UsageError(concat(path_, ": is not the manifest of a batch, and the settings of ",
                            output_path_, " would replace it"),
                     "move it elsewhere, or name another output");
  }
}

std::optional<uint64_t> BatchManifest::seed() const {
  if (!settings_.contains("seed") || !settings_["seed"].is_number_unsigned()) return std::nullopt;
  return settings_["seed"].get<uint64_t>();
}

void BatchManifest::require_same(const Json& now) const {
  const Json settings = as_written(now);
  std::string differences;
  for (const auto& [name, value] : settings.items()) {
    const Json before = settings_.contains(name) ? settings_[name] : Json(nullptr);
    if (before == value) continue;
    differences += concat(differences.empty() ? ": " : "; ", name, " was ", shown_setting(before),
                          ", now ", shown_setting(value));
  }
  if (differences.empty()) return;
  throw UsageError(output_path_ + " was begun with other settings" + differences, kResumeHint);
}

void BatchManifest::write(const Json& settings) const {
  if (as_written(settings) != settings_) replace_file(path_, written(settings));
}

}  // namespace tessera
