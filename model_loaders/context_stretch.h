// Contexts longer than a model was trained for, by YaRN (Peng et al. 2023) without any training.
#pragma once

#include <cstdint>

#include "model_loaders/model_folder.h"

namespace tessera {

// Makes the folder's model reach `context_size` tokens, which becomes its max_position_embeddings,
// and adds a warning with the numbers. A model that reaches so far anyway stays as it is.
//
// Of the layers that rotate, those that see more than the trained context are stretched, by the
// smallest factor that reaches: exactly context_size / (trained context), not rounded.
//   no scaling  becomes YaRN with beta 32 and 1 and yarn_attention_factor(factor)
//   yarn        its factor grows, counted from its own original length, where it does not reach so
//               far already; its betas stay. Its attention factor follows where it is that of its
//               factor, and stays where it is 1
//   all others  (linear, dynamic, llama3, longrope, proportional) are refused: nobody knows what a
//               second scaling over the first would do. So is yarn with any other attention factor
// Layers that see no further back than in training keep their tables, also where they shared one
// with stretched layers: RoPE turns by the distance of two tokens, and theirs does not grow. Layers
// that do not rotate have nothing to stretch. Models of such layers alone only get the longer
// context. Throws Error naming the folder, with the numbers; the folder then stays as it was.
void stretch_context(ModelFolder& folder, int64_t context_size);

// Whether that would take the folder's model at least one token further.
bool can_stretch_context(ModelFolder folder);

}  // namespace tessera
