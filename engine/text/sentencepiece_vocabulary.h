// The vocabulary of a SentencePiece model and of what tokenizer_config.json adds to it.
#pragma once

#include "engine/text/sentencepiece_model.h"
#include "engine/text/vocabulary.h"
#include "model_loaders/model_folder.h"

namespace tessera {

// Makes control pieces of those that the folder's files call special or name as BOS or EOS: models
// that declare them user defined would let anyone type the end of a turn.
void mark_special_pieces(SentencePieceModel& model, const ModelFolder& folder);

// Added tokens from the folder's vocab_size on are left out: the embedding table has no row for
// them. Throws Error when an id is negative or absurd.
Vocabulary make_vocabulary(const SentencePieceModel& model, const ModelFolder& folder);

}  // namespace tessera
