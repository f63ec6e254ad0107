#include "engine/text/tokenizer_json/piece_table.h"

#include <bit>
#include <functional>

namespace tessera {
namespace {

size_t num_slots_for(size_t num_entries) { return std::bit_ceil(2 * num_entries + 2); }

uint32_t hash_of(std::string_view piece) {
  return static_cast<uint32_t>(std::hash<std::string_view>()(piece));
}

}  // namespace

PieceTable::PieceTable(size_t num_pieces) : slots_(num_slots_for(num_pieces)) {}

size_t PieceTable::slot_of(std::string_view piece, uint32_t hash) const {
  const size_t mask = slots_.size() - 1;
  for (size_t index = hash & mask;; index = (index + 1) & mask) {
    const Slot& slot = slots_[index];
    if (slot.id < 0) return index;
    if (slot.hash == hash && std::string_view(bytes_).substr(slot.offset, slot.length) == piece) {
      return index;
    }
  }
}

bool PieceTable::insert(std::string_view piece, TokenId id) {
  const uint32_t hash = hash_of(piece);
  Slot& slot = slots_[slot_of(piece, hash)];
  if (slot.id >= 0) return false;
  slot = {.hash = hash,
          .offset = static_cast<uint32_t>(bytes_.size()),
          .length = static_cast<uint32_t>(piece.size()),
          .id = id};
  bytes_ += piece;
  return true;
}

PieceTable::Wanted PieceTable::wanted(std::string_view piece) const {
  const uint32_t hash = hash_of(piece);
  __builtin_prefetch(&slots_[hash & (slots_.size() - 1)]);
  return {piece, hash};
}

void PieceTable::fetch(const Wanted& wanted) const {
  __builtin_prefetch(bytes_.data() + slots_[wanted.hash & (slots_.size() - 1)].offset);
}

std::optional<TokenId> PieceTable::find(const Wanted& wanted) const {
  const Slot& slot = slots_[slot_of(wanted.piece, wanted.hash)];
  if (slot.id < 0) return std::nullopt;
  return slot.id;
}

MergeTable::MergeTable(size_t num_merges) : slots_(num_slots_for(num_merges)) {}

void MergeTable::insert(TokenId left, TokenId right, MergeResult result) {
  const uint64_t pair = pair_of(left, right);
  slots_[slot_of(pair)] = {.pair = pair, .result = result};
}

void MergeTable::fetch(TokenId left, TokenId right) const {
  __builtin_prefetch(&slots_[first_slot(pair_of(left, right))], 1);
}

}  // namespace tessera
