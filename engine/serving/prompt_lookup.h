// Drafts of an answer's next tokens: answers that quote go on as their prompt, or they themselves,
// went on behind the same tokens.
//
// A step computes the drafts beside the token that is known, draws a token behind each of them, and
// keeps what plain decoding would have drawn: as many drafts as are equal to the drawn tokens, and
// the token drawn behind the last of these.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/serving/draft_gain.h"
#include "engine/serving/ngram_index.h"
#include "engine/text/token_id.h"

namespace tessera {

class PromptLookup {
 public:
  // For an answer that begins behind prompt_tokens, ends with max_length tokens at most and may
  // have drafts from first_length tokens on.
  struct Lengths {
    int64_t prompt_tokens = 0;
    int64_t first_length = 0;
    int64_t max_length = 0;
  };
  PromptLookup(const DraftCosts& costs, const Lengths& lengths) : lengths_(lengths), gain_(costs) {}

  // What the step that is asked for has room for.
  struct Room {
    int64_t drafts = 0;
    int64_t sequences = 1;  // in the step, this one included
  };

  // The tokens that probably follow the text, which is the prompt and the answer so far, as many as
  // pay. Often none.
  std::vector<TokenId> drafts(std::span<const TokenId> text, const Room& room);

  // Whether drafts will probably pay once the token behind the text is known: then no step should
  // be launched before.
  bool awaits_drafts(std::span<const TokenId> text, const Room& room);

 private:
  // Takes note of tokens that are new. O(1) each; the first call sees the whole prompt.
  void follow(std::span<const TokenId> text);
  void follow_token(std::span<const TokenId> text);
  // Drafts behind a text that long, as far as the answer can use them.
  int64_t most_drafts(int64_t num_tokens, const Room& room) const;

  Lengths lengths_;
  DraftGain gain_;
  std::optional<NgramIndex> index_;  // made when it is first needed
  int64_t num_followed_ = 0;
  NgramMatch match_;  // behind the tokens followed
};

}  // namespace tessera
