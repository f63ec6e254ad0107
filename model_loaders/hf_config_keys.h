// The keys of config.json that the model's numbers do not depend on.
#pragma once

#include <string_view>

namespace tessera {

// True for keys that say how a model was trained, saved or sampled: they may have any value.
bool is_ignorable_config_key(std::string_view key);

}  // namespace tessera
