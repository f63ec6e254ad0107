#include "model_loaders/checkpoint.h"

#include <utility>

#include "kernels/tensor/checked_math.h"
#include "model_loaders/file_reader.h"
#include "model_loaders/foreign_format.h"
#include "model_loaders/printable.h"
#include "model_loaders/safetensors.h"
#include "model_loaders/sharded_index.h"
#include "model_loaders/weight_names.h"

namespace tessera {
namespace {

// Twice what the largest models have.
constexpr size_t kMaxTensors = 200'000;

// What is lost where files of the index are missing.
std::optional<Error> missing_shards(const std::string& folder, const std::string& index_path,
                                    const ShardedIndex& index) {
  std::vector<size_t> tensors_in(index.files.size());
  for (const auto& [tensor, file] : index.file_index_of) ++tensors_in[file];
  std::string first_missing;
  size_t missing_files = 0;
  size_t missing_tensors = 0;
  for (size_t i = 0; i < index.files.size(); ++i) {
    if (file_exists(join_path(folder, index.files[i]))) continue;
    if (missing_files++ == 0) first_missing = index.files[i];
    missing_tensors += tensors_in[i];
  }
  if (missing_files == 0) return std::nullopt;
  return Error(concat(index_path, ": '", first_missing, "' is missing; ", missing_files, " of ",
                      index.files.size(), " files and ", missing_tensors, " of ",
                      index.file_index_of.size(), " tensors are not there"),
               "download the model again");
}

}  // namespace

struct Checkpoint::Impl {
  std::vector<FileReader> files;
  std::vector<std::string> paths;
  std::map<std::string, TensorEntry, std::less<>> tensors;
  uint64_t total_bytes = 0;
  std::vector<std::string> warnings;

  void add_file(const std::string& path) {
    FileReader file(path);
    for (TensorEntry& entry : read_safetensors_header(file, files.size())) {
      std::string name = entry.name;
      total_bytes = checked_add(total_bytes, entry.size_bytes, path + ": size of all tensors");
      const auto [position, is_new] = tensors.try_emplace(std::move(name), std::move(entry));
      CHECK(is_new, path, ": tensor '", printable(position->first), "' is also in ",
            paths[position->second.file_index]);
      CHECK(tensors.size() <= kMaxTensors, path, ": more than ", kMaxTensors,
            " tensors in all files together");
    }
    files.push_back(std::move(file));
    paths.push_back(path);
  }

  void add_indexed_files(const std::string& folder, const std::string& index_path,
                         std::optional<Error>& missing) {
    const ShardedIndex index = read_sharded_index(index_path);
    missing = missing_shards(folder, index_path, index);
    for (const std::string& file : index.files) {
      const std::string path = join_path(folder, file);
      if (!missing || file_exists(path)) add_file(path);
    }
    if (missing) return;
    check_mapping(index_path, index);
    if (index.total_size_bytes && *index.total_size_bytes != static_cast<double>(total_bytes)) {
      warnings.push_back(concat(index_path, ": total_size is ",
                                counted(static_cast<uint64_t>(*index.total_size_bytes), "byte"),
                                ", the tensors have ", total_bytes));
    }
  }

  // Every tensor must be in the file that the index names.
  void check_mapping(const std::string& index_path, const ShardedIndex& index) {
    for (const auto& [name, file] : index.file_index_of) {
      if (is_ignorable_weight(name)) continue;
      const auto found = tensors.find(name);
      CHECK(found != tensors.end(), index_path, ": tensor '", printable(name), "' is not in ",
            index.files[file], ", where the index has it, nor in another file");
      CHECK(found->second.file_index == file, index_path, ": tensor '", printable(name),
            "' is not in ", index.files[file], ", where the index has it, but in ",
            index.files[found->second.file_index]);
    }
    size_t unmapped = 0;
    std::string first_unmapped;
    for (const auto& [name, entry] : tensors) {
      if (index.file_index_of.contains(name)) continue;
      if (unmapped++ == 0) first_unmapped = name;
    }
    if (unmapped == 0) return;
    warnings.push_back(concat(
        index_path, ": ", counted(unmapped, "tensor of the files is", "tensors of the files are"),
        " not in the index, the first is '", printable(first_unmapped), "'"));
  }
};

Checkpoint Checkpoint::open(const std::string& folder) {
  std::optional<Error> missing;
  Checkpoint checkpoint = open_what_is_there(folder, missing);
  if (missing) throw *missing;
  return checkpoint;
}

Checkpoint Checkpoint::open_what_is_there(const std::string& folder,
                                          std::optional<Error>& missing) {
  auto impl = std::make_unique<Impl>();
  const std::string single_path = join_path(folder, "model.safetensors");
  const std::string index_path = join_path(folder, "model.safetensors.index.json");
  if (file_exists(single_path)) {
    impl->add_file(single_path);
    if (file_exists(index_path)) {
      impl->warnings.push_back(index_path + ": not used, there is a model.safetensors");
    }
  } else if (file_exists(index_path)) {
    impl->add_indexed_files(folder, index_path, missing);
  } else {
    if (const auto error = recognise_foreign_folder(folder)) throw *error;
    throw Error(folder + ": no weights: neither model.safetensors nor model.safetensors.index.json",
                "download the model again");
  }
  return Checkpoint(std::move(impl));
}

Checkpoint::Checkpoint(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Checkpoint::Checkpoint(Checkpoint&&) noexcept = default;
Checkpoint& Checkpoint::operator=(Checkpoint&&) noexcept = default;
Checkpoint::~Checkpoint() = default;

const std::map<std::string, TensorEntry, std::less<>>& Checkpoint::tensors() const {
  return impl_->tensors;
}

const TensorEntry* Checkpoint::find(std::string_view name) const {
  const auto found = impl_->tensors.find(name);
  return found == impl_->tensors.end() ? nullptr : &found->second;
}

const TensorEntry& Checkpoint::expect(std::string_view name, const Shape& shape) const {
  const TensorEntry* const entry = find(name);
  CHECK(entry != nullptr, impl_->paths.front(), ": tensor '", name, "' is missing");
  CHECK(entry->shape == shape, impl_->paths[entry->file_index], ": tensor '", name, "' has shape ",
        entry->shape, ", expected ", shape);
  return *entry;
}

void Checkpoint::read(const TensorEntry& entry, void* destination, uint64_t begin_bytes,
                      uint64_t size_bytes) const {
  CHECK(begin_bytes <= entry.size_bytes && size_bytes <= entry.size_bytes - begin_bytes,
        impl_->paths.at(entry.file_index), ": bytes ", begin_bytes, " + ", size_bytes,
        " of tensor '", printable(entry.name), "', which has ", entry.size_bytes);
  const uint64_t offset_bytes = checked_add(entry.offset_bytes, begin_bytes, "file offset");
  impl_->files.at(entry.file_index).read(destination, offset_bytes, size_bytes);
}

const std::vector<std::string>& Checkpoint::file_paths() const { return impl_->paths; }

uint64_t Checkpoint::total_bytes() const { return impl_->total_bytes; }

const std::vector<std::string>& Checkpoint::warnings() const { return impl_->warnings; }

}  // namespace tessera
