// Several prompts computed together.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "apps/terminal/console.h"
#include "engine/engine.h"

namespace tessera {

// Computes as many prompts together as memory allows, and what they begin with once, in a time that
// grows as their number does. Shows under `label` how far it is. Results are in the order of the
// prompts; after a signal, which stays pending, those that had not ended are cancelled. One for
// which the model yields NaN or infinity ends with that, the others go on. Throws PromptTooLong
// before it computes anything where a prompt does not fit.
std::vector<GenerationResult> run_calls(Engine& engine,
                                        std::span<const std::vector<TokenId>> prompts,
                                        const SamplingParams& params, const std::string& label,
                                        const Console& console);

}  // namespace tessera
