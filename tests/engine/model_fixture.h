// Model folders for tests: a golden model copied to a temporary folder, where a test can damage its
// files or replace its weights.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "model_loaders/checkpoint.h"
#include "tests/engine/error_of.h"
#include "tests/golden/golden_data.h"

namespace tessera {

inline constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// A float32 tensor.
struct HostWeight {
  Shape shape;
  std::vector<float> values;
};
using HostWeights = std::map<std::string, HostWeight>;

// The weights as a safetensors file.
inline std::string safetensors_bytes(const HostWeights& weights) {
  std::string header, data;
  for (const auto& [name, weight] : weights) {
    const size_t begin = data.size();
    data.append(reinterpret_cast<const char*>(weight.values.data()), weight.values.size() * 4);
    header += concat(header.empty() ? "{" : ",", '"', name, R"(":{"dtype":"F32","shape":)",
                     weight.shape, R"(,"data_offsets":[)", begin, ",", data.size(), "]}");
  }
  header += "}";
  const uint64_t size = header.size();
  std::string length(sizeof(size), '\0');
  std::memcpy(length.data(), &size, sizeof(size));
  return length + header + data;
}

class ModelFixture {
 public:
  // Copies an unsharded golden model.
  explicit ModelFixture(const std::string& golden_model = "gqa_d64") {
    static int count = 0;
    path_ =
        std::filesystem::temp_directory_path() / concat("tessera_model_", getpid(), "_", count++);
    std::filesystem::create_directory(path_);
    for (const auto& file : std::filesystem::directory_iterator(golden_folder(golden_model))) {
      std::ofstream(path_ / file.path().filename(), std::ios::binary) << read_file(file.path());
    }
  }
  ~ModelFixture() { std::filesystem::remove_all(path_); }
  ModelFixture(const ModelFixture&) = delete;
  ModelFixture& operator=(const ModelFixture&) = delete;

  std::string path() const { return path_; }

  // On one CPU thread, which is fastest for models as small as these.
  EngineOptions options() const {
    EngineOptions options;
    options.model = path_;
    options.device = DeviceChoice::kCpu;
    options.num_threads = 1;
    return options;
  }

  void remove(const std::string& file) const { std::filesystem::remove(path_ / file); }

  // Replaces the first occurrence of `from`, which must be there.
  void edit(const std::string& file, std::string_view from, std::string_view to) const {
    std::string content = read_file(path_ / file);
    const size_t begin = content.find(from);
    CHECK(begin != std::string::npos, file, " does not contain '", from, "'");
    content.replace(begin, from.size(), to);
    std::ofstream(path_ / file, std::ios::binary) << content;
  }

  HostWeights read_weights() const {
    const Checkpoint checkpoint = Checkpoint::open(path_);
    HostWeights weights;
    for (const auto& [name, entry] : checkpoint.tensors()) {
      CHECK(entry.dtype == DType::kFloat32, "the fixture only edits float32 models");
      HostWeight weight{entry.shape, {}};
      weight.values.resize(static_cast<size_t>(entry.shape.num_elements()));
      checkpoint.read(entry, weight.values.data(), 0, entry.size_bytes);
      weights.emplace(name, std::move(weight));
    }
    return weights;
  }

  void write_weights(const HostWeights& weights) const {
    std::ofstream(path_ / "model.safetensors", std::ios::binary) << safetensors_bytes(weights);
  }

 private:
  static std::string read_file(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    CHECK(file.is_open(), path.string(), ": cannot be opened");
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::filesystem::path path_;
};

}  // namespace tessera
