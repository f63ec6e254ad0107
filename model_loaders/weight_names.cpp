#include "model_loaders/weight_names.h"

#include "kernels/tensor/check.h"

namespace tessera {
namespace {

void put_in(std::string& name, std::string_view placeholder, std::optional<int64_t> index) {
  const size_t position = name.find(placeholder);
  CHECK((position != std::string::npos) == index.has_value(), "the weight name '", name, "' has ",
        index ? "no " : "an unexpected ", placeholder);
  if (index) name.replace(position, placeholder.size(), std::to_string(*index));
}

}  // namespace

std::string weight_name(std::string_view pattern, std::optional<int64_t> layer,
                        std::optional<int64_t> expert) {
  std::string name(pattern);
  put_in(name, "{layer}", layer);
  put_in(name, "{expert}", expert);
  return name;
}

bool is_ignorable_weight(std::string_view name) {
  // Tables that old versions of transformers saved although they follow from config.json.
  return name.ends_with(".rotary_emb.inv_freq") || name.ends_with(".rotary_emb.cos_cached") ||
         name.ends_with(".rotary_emb.sin_cached");
}

}  // namespace tessera
