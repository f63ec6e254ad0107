#include "model_loaders/weight_names.h"

#include <utility>

#include "kernels/tensor/check.h"

namespace tessera {
namespace {

void put_in(std::string& name, std::string_view placeholder, std::optional<int64_t> index) {
  const size_t position = name.find(placeholder);
  CHECK((position != std::string::npos) == index.has_value(), "the weight name '", name, "' has ",
        index ? "no " : "an unexpected ", placeholder);
  if (index) name.replace(position, placeholder.size(), std::to_string(*index));
}

// Beginnings of names, also behind "model.".
constexpr std::pair<std::string_view, std::string_view> kSkippedParts[] = {
    {"vision_tower.", "the vision tower"}, {"vision_model.", "the vision tower"},
    {"visual.", "the vision tower"},       {"multi_modal_projector.", "the projector of images"},
    {"audio_tower.", "the audio tower"},   {"mtp.", "multi-token prediction"},
};

}  // namespace

std::string weight_name(std::string_view pattern, std::optional<int64_t> layer,
                        std::optional<int64_t> expert) {
  std::string name(pattern);
  put_in(name, "{layer}", layer);
  put_in(name, "{expert}", expert);
  return name;
}

std::string prefixed(const std::string& name, NamePrefix prefix) {
  constexpr std::string_view kModel = "model.";
  switch (prefix) {
    case NamePrefix::kNone:
      return name;
    case NamePrefix::kLanguageModel:
      return "language_model." + name;
    case NamePrefix::kModelLanguageModel:
      return name.starts_with(kModel) ? "model.language_model." + name.substr(kModel.size()) : name;
  }
  throw Error("a name without a prefix");
}

std::string_view skipped_part(std::string_view name) {
  constexpr std::string_view kModel = "model.";
  if (name.starts_with(kModel)) name.remove_prefix(kModel.size());
  for (const auto& [prefix, part] : kSkippedParts) {
    if (name.starts_with(prefix)) return part;
  }
  return {};
}

bool is_ignorable_weight(std::string_view name) {
  // Tables that old versions of transformers saved although they follow from config.json.
  return name.ends_with(".rotary_emb.inv_freq") || name.ends_with(".rotary_emb.cos_cached") ||
         name.ends_with(".rotary_emb.sin_cached");
}

}  // namespace tessera
