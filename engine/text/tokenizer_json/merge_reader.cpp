#include "engine/text/tokenizer_json/merge_reader.h"

#include "kernels/tensor/check.h"
#include "model_loaders/printable.h"

namespace tessera {

TokenId MergeReader::id_of(const PieceTable::Wanted& wanted, size_t index) const {
  const auto id = pieces_.find(wanted);
  CHECK(id, path_, ": model.merges[", index, "]: model.vocab has no ", printable(wanted.piece));
  return *id;
}

void MergeReader::read(std::span<const Merge> merges, size_t first_index) {
  for (size_t i = 0; i < merges.size(); ++i) {
    joined_[i].assign(merges[i].left);
    joined_[i] += merges[i].right;
    wanted_[i] = {pieces_.wanted(merges[i].left), pieces_.wanted(merges[i].right),
                  pieces_.wanted(joined_[i])};
  }
  for (size_t i = 0; i < merges.size(); ++i) {
    for (const PieceTable::Wanted& wanted : wanted_[i]) pieces_.fetch(wanted);
  }
  entries_.clear();
  for (size_t i = 0; i < merges.size(); ++i) {
    const size_t index = first_index + i;
    const TokenId left = id_of(wanted_[i][0], index);
    const TokenId right = id_of(wanted_[i][1], index);
    const TokenId result = id_of(wanted_[i][2], index);
    entries_.push_back({left, right, {merges[i].rank, result}});
  }
}

}  // namespace tessera
