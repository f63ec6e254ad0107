#include "engine/text/tokenizer_json/token_decoder.h"

#include "engine/text/sentencepiece_model.h"
#include "kernels/tensor/check.h"
#include "model_loaders/byte_level.h"
#include "model_loaders/printable.h"

namespace tessera {
namespace {

using DecoderKind = DecoderStep::Kind;

// Steps for single tokens come before those for the whole text.
int order_of(DecoderKind kind) {
  switch (kind) {
    case DecoderKind::kReplace:
      return 0;
    case DecoderKind::kByteLevel:
    case DecoderKind::kByteFallback:
    case DecoderKind::kMetaspace:
      return 1;
    case DecoderKind::kFuse:
      return 2;
    case DecoderKind::kStrip:
      return 3;
  }
  return 0;
}

std::string replace_all(std::string_view text, std::string_view pattern, std::string_view content) {
  std::string result;
  while (!pattern.empty() && !text.empty()) {
    const size_t at = text.find(pattern);
    if (at == std::string_view::npos) break;
    result += text.substr(0, at);
    result += content;
    text.remove_prefix(at + pattern.size());
  }
  return result += text;
}

}  // namespace

TokenDecoder::TokenDecoder(const TokenizerJson& json) : steps_(json.decoder) {
  int order = 0;
  for (const DecoderStep& step : steps_) {
    CHECK(order_of(step.kind) >= order, json.path, ": ", step.field,
          ": this step of a decoder is not supported at this place");
    order = order_of(step.kind);
    if (step.kind == DecoderKind::kMetaspace) {
      CHECK(step.pattern == kPieceSpace, json.path, ": ", step.field, ".replacement is ",
            printable(step.pattern), "; only U+2581 is supported");
      if (step.prepend_scheme != PrependScheme::kNever) leading_space_ = LeadingSpace::kAllGo;
    } else if (step.kind == DecoderKind::kStrip && step.start == 1) {
      CHECK(step.content == " ", json.path, ": ", step.field, ".content is ",
            printable(step.content), "; only a space is supported");
      leading_space_ = LeadingSpace::kOneGoes;
    }
  }
}

std::string TokenDecoder::bytes_of(std::string_view piece) const {
  std::string bytes(piece);
  for (const DecoderStep& step : steps_) {
    if (step.kind == DecoderKind::kReplace) {
      bytes = replace_all(bytes, step.pattern, step.content);
    } else if (step.kind == DecoderKind::kMetaspace) {
      bytes = replace_all(bytes, step.pattern, " ");
    } else if (step.kind == DecoderKind::kByteLevel) {
      bytes = bytes_of_byte_level(bytes).value_or(bytes);
    } else if (const auto byte = byte_of_piece(bytes);
               step.kind == DecoderKind::kByteFallback && byte) {
      return std::string(1, *byte);
    }
  }
  return bytes;
}

}  // namespace tessera
