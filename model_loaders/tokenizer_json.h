// tokenizer.json, the file of Hugging Face's tokenizers library: how text becomes tokens, as data.
//
// What models with byte-pair encoding and unigram models use is understood. Everything else is an
// Error that names it and what is supported.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model_loaders/tokenizer_config.h"

namespace tessera {

// What a step looks for in text: a string as it stands, or a regular expression of Oniguruma.
struct TokenizerPattern {
  std::string text;
  bool is_regex = false;
};

// Changes the text before it is divided.
struct NormalizerStep {
  enum class Kind : uint8_t {
    kNfc,
    kNfd,
    kNfkc,
    kNfkd,
    kLowercase,
    kStripAccents,  // marks go, wherever they stand
    kStrip,         // white space goes at the ends
    kPrepend,
    kReplace,
  };
  Kind kind = Kind::kNfc;
  TokenizerPattern pattern;  // kReplace
  std::string content;       // kPrepend, kReplace: what is put there
  bool strips_left = true;   // kStrip
  bool strips_right = true;  // kStrip
  std::string field;         // "normalizer.normalizers[0]", for messages
};

enum class SplitBehavior : uint8_t {
  kIsolated,            // a match is a word of its own
  kRemoved,             // a match is dropped
  kMergedWithPrevious,  // a match ends the word before it
  kMergedWithNext,      // a match begins the word after it
  kContiguous,          // neighbouring matches are one word
};

enum class PrependScheme : uint8_t { kAlways, kFirst, kNever };

// Divides text into words, of which each becomes tokens on its own.
struct PreTokenizerStep {
  enum class Kind : uint8_t { kByteLevel, kSplit, kMetaspace };
  Kind kind = Kind::kSplit;
  TokenizerPattern pattern;                           // kSplit
  SplitBehavior behavior = SplitBehavior::kIsolated;  // kSplit
  bool inverts = false;                               // kSplit: what lies between matches is one
  bool adds_prefix_space = true;                      // kByteLevel
  std::string replacement;                            // kMetaspace: what stands for a space
  PrependScheme prepend_scheme = PrependScheme::kAlways;  // kMetaspace
  bool splits = true;                                     // kMetaspace: words begin at replacements
  std::string field;
};

// Turns tokens into text.
struct DecoderStep {
  enum class Kind : uint8_t { kByteLevel, kReplace, kByteFallback, kFuse, kStrip, kMetaspace };
  Kind kind = Kind::kFuse;
  std::string pattern;  // kReplace: a string; kMetaspace: what stands for a space
  std::string content;  // kReplace: what is put there; kStrip: the character to remove
  int64_t start = 0;    // kStrip: how many at the beginning
  PrependScheme prepend_scheme = PrependScheme::kAlways;  // kMetaspace
  std::string field;
};

struct VocabularyEntry {
  std::string_view piece;
  int32_t id = 0;
};

struct Merge {
  std::string_view left;
  std::string_view right;
  uint32_t rank = 0;  // the lower, the sooner; of equal ranks the leftmost
};

// The model: byte-pair encoding, or a unigram model.
struct TokenizerModel {
  enum class Kind : uint8_t { kBytePairs, kUnigram };
  Kind kind = Kind::kBytePairs;
  std::optional<std::string> unknown_token;  // a unigram model has one
  bool fuses_unknown = false;                // neighbouring unknown characters are one token
  bool has_byte_fallback = false;            // unknown characters become tokens such as <0x0A>
  bool ignores_merges = false;               // a word that is in the vocabulary is a token at once
  std::vector<VocabularyEntry> vocabulary;
  std::vector<Merge> merges;   // kBytePairs
  std::vector<double> scores;  // kUnigram: of the tokens, logarithms of their probabilities
};

// The tokens that the post-processor puts around a text.
struct PromptTemplate {
  std::vector<std::string> prefix;
  std::vector<std::string> suffix;
};

struct TokenizerJson {
  std::string path;
  std::vector<NormalizerStep> normalizer;
  std::vector<PreTokenizerStep> pre_tokenizer;
  TokenizerModel model;
  PromptTemplate prompt_template;
  std::vector<DecoderStep> decoder;  // not empty
  std::vector<AddedToken> added_tokens;
  std::string eos_token;              // where the file knows it
  std::unique_ptr<std::string> text;  // what vocabulary and merges are views of
};

// GPT-2's regular expression, which ByteLevel splits by unless it says otherwise.
inline constexpr std::string_view kByteLevelPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

inline constexpr uint64_t kMaxTokenizerJsonBytes = uint64_t{64} << 20;

// Reads the text of a tokenizer.json. `path` begins every message, which goes on with the place in
// the document ("pre_tokenizer.pretokenizers[1].behavior must be ...").
TokenizerJson parse_tokenizer_json(std::string text, const std::string& path);

}  // namespace tessera
