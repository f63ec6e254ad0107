#include "engine/longer_context.h"

#include "model_loaders/context_stretch.h"

namespace tessera {

std::string longer_context(const EngineOptions& options, const ModelFolder& folder,
                           int64_t context_size) {
  const int64_t longest = folder.config.max_position_embeddings;
  if (context_size < longest) {
    const bool was_asked_for = options.context_size > 0;  // else it is all that memory holds
    return was_asked_for ? concat("a larger -c (up to ", counted(longest, "token"), ")") : "";
  }
  if (folder.config.stretch) return "a larger -c";
  return can_stretch_context(folder) ? "--rope-scaling auto -c N" : "";
}

}  // namespace tessera
