// Text to token ids and back.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/token_id.h"
#include "model_loaders/model_folder.h"

namespace tessera {

// How much of a text has been tokenised; called every few kilobytes. What it throws ends the work.
using EncodeProgress = std::function<void(uint64_t done_bytes, uint64_t total_bytes)>;

// Immutable after loading; all functions are thread-safe. Functions that take a token throw Error
// when it is not in [0, size()).
class Tokenizer {
 public:
  // Loads folder.tokenizer_path. A SentencePiece file is validated before the library sees it: the
  // packaged version crashes on some malformed files. Throws Error with path and reason, also when
  // there are more pieces than folder.config.vocab_size; with a hint when a tokenizer.json fails
  // that has a tokenizer.model beside it.
  static std::unique_ptr<Tokenizer> load(const ModelFolder& folder);

  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // Ids of plain text. Special tokens spelled out in `text` ("</s>", "<|end|>") come out as the
  // ordinary text they are: only special_token() gives the real ones. `at_start` is true for the
  // first text of a prompt, where the model may want a leading space; models of the older
  // ("legacy") convention get one in front of every text. Linear time. Throws Error with the byte
  // offset when `text` is not UTF-8, and when more than 1 MiB in a row cannot be divided
  // (engine/text/text_chunker.h), such as as many spaces.
  std::vector<TokenId> encode(std::string_view text, bool at_start = true,
                              const EncodeProgress& progress = {}) const;

  // The same for a text that is a whole prompt: begins with prompt_prefix() and ends with
  // prompt_suffix().
  std::vector<TokenId> encode_prompt(std::string_view text,
                                     const EncodeProgress& progress = {}) const;

  // The most bytes of a text that become one token, so that a text of n bytes has n divided by this
  // many tokens or more. Nothing where there is no such limit: a model without byte pieces makes
  // one token of any number of unknown characters, and one that removes extra spaces none of them.
  std::optional<int64_t> max_token_bytes() const;

  // The id of a special token by its exact content ("<s>", "[INST]"), if the model has it. Tokens
  // that tokenizer_config.json adds without calling them special are found as well.
  std::optional<TokenId> special_token(std::string_view content) const;

  // The contents, in order, of all tokens that special_token() finds, but an empty one and those
  // that encode() makes of any text that has them, such as a run of line ends.
  std::vector<std::string> special_tokens() const;

  // Text of a whole sequence. Special tokens give nothing, invalid UTF-8 gives U+FFFD. Encoding and
  // decoding gives the text back but for U+2581, which becomes a space, extra spaces where the
  // model removes them, and characters unknown to a model without byte pieces, which are lost.
  std::string decode(const std::vector<TokenId>& tokens) const;

  // Bytes that one token adds to a text: "" for special tokens other than the marks of thoughts
  // (engine/text/thinking_marks.h), one byte for byte pieces.
  // `is_first`: only special tokens came before it, so that the space which encode() put in front
  // is left out. Joined over a sequence they give decode(); TextStream makes them whole characters.
  std::string token_bytes(TokenId token, bool is_first) const;

  // Whether the token means something that no text can say.
  bool is_special(TokenId token) const;

  // Whether the white space left or right of the special token is not to be encoded.
  bool strips_left(TokenId token) const;
  bool strips_right(TokenId token) const;

  // What inspect and error messages print for a token, e.g. "▁the" or "<0x0A>".
  std::string piece(TokenId token) const;

  // The file it was loaded from.
  const std::string& path() const;

  // Ids are in [0, size()); the model's vocab_size may be larger (padding).
  int64_t size() const;

  std::optional<TokenId> bos_token() const;
  std::optional<TokenId> eos_token() const;
  // What a prompt that no template renders begins with: BOS, with some models several special
  // tokens, or nothing.
  const std::vector<TokenId>& prompt_prefix() const;
  // What a tokenizer.json puts behind such a prompt, as EOS of models that were trained to expect
  // it; mostly nothing.
  const std::vector<TokenId>& prompt_suffix() const;

 private:
  struct Impl;
  explicit Tokenizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Turns a stream of tokens into a stream of complete UTF-8 characters.
class TextStream {
 public:
  // `is_first` as in Tokenizer::token_bytes(): false where a text comes before the stream.
  explicit TextStream(const Tokenizer& tokenizer, bool is_first = true)
      : tokenizer_(tokenizer), is_first_(is_first) {}

  // The text that `token` completes; "" while a character is still unfinished.
  std::string append(TokenId token);

  // What is left at the end: U+FFFD for an unfinished character, else "".
  std::string finish();

 private:
  const Tokenizer& tokenizer_;
  std::string pending_;  // bytes of an unfinished character, at most 3
  bool is_first_;
};

}  // namespace tessera
