#include "engine/text/segment_encoder.h"

#include "engine/text/tokenizer_json/unicode_text.h"
#include "kernels/tensor/check.h"

namespace tessera {
namespace {

class SegmentEncoder {
 public:
  SegmentEncoder(const Tokenizer& tokenizer, const EncodeProgress& progress)
      : tokenizer_(tokenizer), progress_(progress) {}

  std::vector<TokenId> encode(std::span<const Segment> segments) {
    for (const Segment& segment : segments) {
      if (segment.kind == Segment::Kind::kText) total_bytes_ += segment.content.size();
    }
    for (const Segment& segment : segments) {
      if (segment.kind == Segment::Kind::kText) {
        text_ += segment.content;
      } else {
        add_special_token(segment.content);
      }
    }
    finish_text(std::nullopt);
    return std::move(tokens_);
  }

 private:
  void add_special_token(const std::string& content) {
    const auto token = tokenizer_.special_token(content);
    CHECK(token, tokenizer_.path(), ": has no special token '", content, "'");
    finish_text(token);
    tokens_.push_back(*token);
    strips_left_of_text_ = tokenizer_.strips_right(*token);
  }

  // Tokenises the text gathered so far, which `next` follows.
  void finish_text(std::optional<TokenId> next) {
    const std::string_view text =
        stripped(text_, strips_left_of_text_, next && tokenizer_.strips_left(*next));
    const std::vector<TokenId> encoded =
        tokenizer_.encode(text, tokens_.empty(), [this](uint64_t bytes, uint64_t) {
          if (progress_) progress_(done_bytes_ + bytes, total_bytes_);
        });
    tokens_.insert(tokens_.end(), encoded.begin(), encoded.end());
    done_bytes_ += text_.size();
    text_.clear();
  }

  const Tokenizer& tokenizer_;
  const EncodeProgress& progress_;
  uint64_t done_bytes_ = 0;   // of all texts
  uint64_t total_bytes_ = 0;  // of all texts
  std::vector<TokenId> tokens_;
  std::string text_;
  bool strips_left_of_text_ = false;
};

}  // namespace

std::vector<TokenId> encode_segments(const Tokenizer& tokenizer, std::span<const Segment> segments,
                                     const EncodeProgress& progress) {
  return SegmentEncoder(tokenizer, progress).encode(segments);
}

}  // namespace tessera
