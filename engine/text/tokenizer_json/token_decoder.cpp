#include "engine/text/tokenizer_json/token_decoder.h"

#include <algorithm>
#include <initializer_list>
#include <span>

#include "engine/text/sentencepiece_model.h"
#include "kernels/tensor/check.h"
#include "model_loaders/byte_level.h"
#include "model_loaders/printable.h"

namespace tessera {
namespace {

using DecoderKind = DecoderStep::Kind;

// Whether a step behind these can be applied token by token. ByteLevel makes one text of all
// tokens, as Fuse does; a piece's U+2581 must be what Metaspace sees.
bool may_follow(const DecoderStep& step, std::span<const DecoderStep> before) {
  const auto came = [&](DecoderKind kind) {
    return std::ranges::find(before, kind, &DecoderStep::kind) != before.end();
  };
  const auto only_these_came = [&](std::initializer_list<DecoderKind> kinds) {
    return std::ranges::all_of(before, [&](const DecoderStep& other) {
      return std::ranges::find(kinds, other.kind) != kinds.end();
    });
  };
  switch (step.kind) {
    case DecoderKind::kReplace:
    case DecoderKind::kByteLevel:
      return only_these_came({DecoderKind::kReplace});
    case DecoderKind::kByteFallback:
      return only_these_came({DecoderKind::kReplace, DecoderKind::kMetaspace});
    case DecoderKind::kMetaspace:
      return only_these_came({DecoderKind::kByteFallback});
    case DecoderKind::kFuse:
      return !came(DecoderKind::kStrip);
    case DecoderKind::kStrip:
      return (came(DecoderKind::kFuse) || came(DecoderKind::kByteLevel)) &&
             !came(DecoderKind::kMetaspace) && !came(DecoderKind::kStrip);
  }
  return false;
}

std::string replace_all(std::string_view text, std::string_view pattern, std::string_view content) {
  std::string result;
  for (size_t at; (at = text.find(pattern)) != std::string_view::npos;) {
    result += text.substr(0, at);
    result += content;
    text.remove_prefix(at + pattern.size());
  }
  return result += text;
}

}  // namespace

TokenDecoder::TokenDecoder(const TokenizerJson& json) : steps_(json.decoder) {
  for (size_t i = 0; i < steps_.size(); ++i) {
    const DecoderStep& step = steps_[i];
    CHECK(may_follow(step, std::span(steps_).first(i)), json.path, ": ", step.field,
          ": this step of a decoder is not supported at this place");
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
