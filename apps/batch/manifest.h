// The settings an output file was begun with, kept beside it as OUTPUT.manifest.json, so that a
// resumed batch does not mix answers of two models or of two ways to sample.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace tessera {

// How to go on where an output file may not be resumed.
inline constexpr const char* kResumeHint =
    "--force goes on with the answers as they are, --overwrite starts anew";

class BatchManifest {
 public:
  using Json = nlohmann::json;

  // Of the output file that `output_path` leads to. Reads nothing yet.
  explicit BatchManifest(const std::string& output_path);

  const std::string& path() const { return path_; }

  // Throws UsageError when there is none, or the file is not one.
  void read();

  // Throws UsageError when a file of this name is there that is no manifest: write() would replace
  // what somebody keeps in it. An empty one is nobody's loss.
  void require_replaceable() const;

  // What was read.
  const Json& settings() const { return settings_; }

  // The seed of the settings that were read, if they have one.
  std::optional<uint64_t> seed() const;

  // Throws UsageError that names every difference between the settings that were read and `now`.
  void require_same(const Json& now) const;

  // Replaces the file as a whole, unless it says the same; durable when this returns.
  void write(const Json& settings) const;

 private:
  std::string output_path_;
  std::string path_;
  Json settings_;
};

}  // namespace tessera
