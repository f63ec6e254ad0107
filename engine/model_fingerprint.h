// Tells whether two folders hold the same model without reading all of their weights.
#pragma once

#include <string>

#include "engine/options.h"

namespace tessera {

// The SHA-256, in hexadecimal digits, of what decides the model's answers: the content of its
// configuration, generation, tokenizer and template files (ModelFolder::text_files), and of every
// tensor the name, dtype, shape and 1 KiB from its middle. The same after the folder was copied,
// moved or cut into other files. Training changes every tensor that it touches and is noticed;
// weights edited by hand outside those bytes are not. Throws Error like Engine::load for a folder
// that is no model.
std::string model_fingerprint(const EngineOptions& options);

}  // namespace tessera
