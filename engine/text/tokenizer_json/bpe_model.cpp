#include "engine/text/tokenizer_json/bpe_model.h"

#include <algorithm>
#include <array>
#include <span>

#include "engine/text/sentencepiece_model.h"
#include "engine/text/tokenizer_json/merge_reader.h"
#include "engine/text/utf8.h"
#include "kernels/tensor/check.h"
#include "model_loaders/byte_level.h"
#include "model_loaders/printable.h"

namespace tessera {
namespace {

// So few that looking through all of them takes less time than a heap.
constexpr size_t kFewSymbols = 32;
constexpr size_t kSymbolsBetweenPauses = 1 << 14;

bool is_one_character(std::string_view piece) {
  return !piece.empty() && piece.size() == utf8_character_bytes(piece[0]);
}

bool is_special(const Vocabulary& vocabulary, TokenId id) {
  return vocabulary.tokens[static_cast<size_t>(id)].is_special;
}

// The lowest rank, then the leftmost, is at the front of a heap.
constexpr auto comes_later = [](const BpeModel::Memory::Candidate& a,
                                const BpeModel::Memory::Candidate& b) {
  return a.rank != b.rank ? a.rank > b.rank : a.position > b.position;
};

// `count`: of symbols dealt with, the present one included.
void pause_between_symbols(const Pause& pause, size_t count) {
  if (count % kSymbolsBetweenPauses == 0) pause();
}

void add_symbol(BpeModel::Memory& memory, TokenId id) {
  const auto index = static_cast<int32_t>(memory.symbols.size());
  if (index > 0) memory.symbols.back().next = index;
  memory.symbols.push_back({.id = id, .previous = index - 1});
}

}  // namespace

BpeModel::BpeModel(const TokenizerJson& json, const Vocabulary& vocabulary, bool is_byte_level)
    : is_byte_level_(is_byte_level),
      ignores_merges_(json.model.ignores_merges),
      fuses_unknown_(json.model.fuses_unknown),
      characters_(json.model.vocabulary.size()),
      merges_(json.model.merges.size()) {
  single_ids_.fill(kNoToken);
  fallback_ids_.fill(kNoToken);
  PieceTable pieces(json.model.vocabulary.size());
  for (const VocabularyEntry& entry : json.model.vocabulary) {
    CHECK(pieces.insert(entry.piece, entry.id), json.path,
          ": model.vocab: ", printable(entry.piece), " is there twice");
  }
  if (const auto& unknown = json.model.unknown_token) {
    unknown_token_ = pieces.find(*unknown);
    CHECK(unknown_token_, json.path, ": model.unk_token is ", printable(*unknown),
          ", which model.vocab does not have");
  }
  read_pieces(json, vocabulary);
  read_merges(json, vocabulary, pieces);
}

void BpeModel::read_pieces(const TokenizerJson& json, const Vocabulary& vocabulary) {
  for (const auto& [piece, id] : json.model.vocabulary) {
    if (is_special(vocabulary, id)) continue;
    const std::optional<char> byte =
        json.model.has_byte_fallback ? byte_of_piece(piece) : std::nullopt;
    if (byte) fallback_ids_[static_cast<unsigned char>(*byte)] = id;
    const auto bytes = is_byte_level_ ? bytes_of_byte_level(piece) : std::string(piece);
    if (!bytes || bytes->empty()) continue;
    longest_piece_ = std::max(longest_piece_, bytes->size());
    if (bytes->size() == 1) single_ids_[static_cast<unsigned char>((*bytes)[0])] = id;
    if (ignores_merges_ || is_one_character(*bytes)) characters_.insert(*bytes, id);
  }
  // Unknown characters may become one token across a cut, and whole words one without merges.
  if (is_byte_level_ || !has_all_bytes() || ignores_merges_) return;
  chunker_.emplace();
  for (const VocabularyEntry& entry : json.model.vocabulary) {
    if (!entry.piece.empty()) chunker_->add(entry.piece);
  }
}

void BpeModel::read_merges(const TokenizerJson& json, const Vocabulary& vocabulary,
                           const PieceTable& pieces) {
  const std::span<const Merge> merges = json.model.merges;
  MergeReader reader(json.path, pieces);
  for (size_t done = 0; done < merges.size(); done += MergeReader::kMost) {
    reader.read(merges.subspan(done, std::min(MergeReader::kMost, merges.size() - done)), done);
    for (const MergeReader::Entry& entry : reader.entries()) merges_.fetch(entry.left, entry.right);
    for (const MergeReader::Entry& entry : reader.entries()) {
      if (!is_special(vocabulary, entry.result.id)) {
        merges_.insert(entry.left, entry.right, entry.result);
      }
    }
  }
}

bool BpeModel::has_all_bytes() const {
  const auto& ids = is_byte_level_ ? single_ids_ : fallback_ids_;
  return std::ranges::find(ids, kNoToken) == ids.end();
}

std::optional<int64_t> BpeModel::max_token_bytes() const {
  if (!has_all_bytes()) return std::nullopt;
  return static_cast<int64_t>(longest_piece_);
}

bool BpeModel::add_byte_tokens(std::string_view character, Memory& memory) const {
  const auto id_of = [&](char byte) { return fallback_ids_[static_cast<unsigned char>(byte)]; };
  if (std::ranges::any_of(character, [&](char byte) { return id_of(byte) == kNoToken; }))
    return false;
  for (const char byte : character) add_symbol(memory, id_of(byte));
  return true;
}

// The symbols that a word begins with. The library holds the token of what is unknown back until a
// piece of the vocabulary comes, or the next unknown character; tokens of bytes go ahead of it.
class BpeModel::FirstSymbols {
 public:
  FirstSymbols(const BpeModel& model, Memory& memory) : model_(model), memory_(memory) {}

  void add(TokenId id) {
    finish();
    add_symbol(memory_, id);
  }
  void add_unknown(std::string_view character) {
    if (model_.add_byte_tokens(character, memory_) || !model_.unknown_token_) return;
    if (!model_.fuses_unknown_) finish();
    holds_unknown_ = true;
  }
  void finish() {
    if (holds_unknown_) add_symbol(memory_, *model_.unknown_token_);
    holds_unknown_ = false;
  }

 private:
  const BpeModel& model_;
  Memory& memory_;
  bool holds_unknown_ = false;
};

void BpeModel::start_with_bytes(std::string_view word, const Pause& pause, Memory& memory) const {
  FirstSymbols symbols(*this, memory);
  size_t count = 0;
  for (const char& byte : word) {
    pause_between_symbols(pause, ++count);
    const TokenId id = single_ids_[static_cast<unsigned char>(byte)];
    if (id != kNoToken) {
      symbols.add(id);
    } else {
      symbols.add_unknown(byte_level_of({&byte, 1}));
    }
  }
  symbols.finish();
}

void BpeModel::start_with_characters(std::string_view word, const Pause& pause,
                                     Memory& memory) const {
  FirstSymbols symbols(*this, memory);
  size_t count = 0;
  for (; !word.empty(); word.remove_prefix(utf8_character_bytes(word[0]))) {
    pause_between_symbols(pause, ++count);
    const std::string_view character = word.substr(0, utf8_character_bytes(word[0]));
    const TokenId id = character.size() == 1 ? single_ids_[static_cast<unsigned char>(word[0])]
                                             : characters_.find(character).value_or(kNoToken);
    if (id != kNoToken) {
      symbols.add(id);
    } else {
      symbols.add_unknown(character);
    }
  }
  symbols.finish();
}

void BpeModel::merge_few(Memory& memory) const {
  std::vector<Memory::Symbol>& symbols = memory.symbols;
  std::array<MergeResult, kFewSymbols> results;  // of each symbol and the next
  const auto update = [&](size_t left) {
    results[left] = merges_.find(symbols[left].id, symbols[left + 1].id);
  };
  for (size_t i = 0; i + 1 < symbols.size(); ++i) update(i);
  while (symbols.size() > 1) {
    const auto end = results.begin() + static_cast<std::ptrdiff_t>(symbols.size()) - 1;
    const auto best = std::ranges::min_element(results.begin(), end, {}, &MergeResult::rank);
    if (best->id < 0) return;
    const auto left = static_cast<size_t>(best - results.begin());
    symbols[left].id = best->id;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(left) + 1);
    std::copy(best + 1, end, best);
    if (left > 0) update(left - 1);
    if (left + 1 < symbols.size()) update(left);
  }
}

void BpeModel::merge(const Pause& pause, Memory& memory) const {
  auto& [symbols, heap] = memory;
  const auto symbol = [&](int32_t index) -> Memory::Symbol& {
    return symbols[static_cast<size_t>(index)];
  };
  const auto add_candidate = [&](int32_t left) {
    const MergeResult result = merges_.find(symbol(left).id, symbol(symbol(left).next).id);
    if (result.id >= 0) heap.push_back({result.rank, left, result.id});
    return result.id >= 0;
  };
  heap.clear();
  for (size_t count = 1; count < symbols.size(); ++count) {
    pause_between_symbols(pause, count);
    add_candidate(static_cast<int32_t>(count - 1));
  }
  std::ranges::make_heap(heap, comes_later);
  const auto push_candidate = [&](int32_t left) {
    if (add_candidate(left)) std::ranges::push_heap(heap, comes_later);
  };
  for (size_t count = 1; !heap.empty(); ++count) {
    pause_between_symbols(pause, count);
    std::ranges::pop_heap(heap, comes_later);
    const Memory::Candidate top = heap.back();
    heap.pop_back();
    Memory::Symbol& left = symbol(top.position);
    if (left.is_gone || left.next < 0) continue;
    Memory::Symbol& right = symbol(left.next);
    // Since it was found, one of the two may have merged with something else.
    if (merges_.find(left.id, right.id).id != top.id) continue;
    left.id = top.id;
    right.is_gone = true;
    left.next = right.next;
    if (left.next >= 0) symbol(left.next).previous = top.position;
    if (left.previous >= 0) push_candidate(left.previous);
    if (left.next >= 0) push_candidate(top.position);
  }
}

void BpeModel::encode(std::string_view word, const Pause& pause, Memory& memory,
                      std::vector<TokenId>& tokens) const {
  if (ignores_merges_) {
    if (const auto whole = characters_.find(word)) return tokens.push_back(*whole);
  }
  memory.symbols.clear();
  memory.symbols.reserve(word.size());
  if (is_byte_level_) {
    start_with_bytes(word, pause, memory);
  } else {
    start_with_characters(word, pause, memory);
  }
  if (memory.symbols.size() <= kFewSymbols) {
    merge_few(memory);
  } else {
    merge(pause, memory);
  }
  for (const Memory::Symbol& symbol : memory.symbols) {
    if (!symbol.is_gone) tokens.push_back(symbol.id);
  }
}

}  // namespace tessera
