#include "engine/text/tokenizer_json/merge_reader.h"

#include "kernels/tensor/check.h"
#include "model_loaders/printable.h"

namespace tessera {

TokenId MergeReader::id_of(const PieceTable::Wanted& wanted, size_t rank) const {
  const auto id = pieces_.find(wanted);
  CHECK(id, path_, ": model.merges[", rank, "]: model.vocab has no ", printable(wanted.piece));
  return *id;
}

void MergeReader::read(std::span<const Merge> merges, size_t first_rank) {
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
    const size_t rank = first_rank + i;
    const TokenId left = id_of(wanted_[i][0], rank);
    const TokenId right = id_of(wanted_[i][1], rank);
    const TokenId result = id_of(wanted_[i][2], rank);
    entries_.push_back({left, right, {static_cast<uint32_t>(rank), result}});
  }
}

}  // namespace tessera
