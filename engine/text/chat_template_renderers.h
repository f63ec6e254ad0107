// The conversation formats that tessera can write.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/text/chat_template.h"

namespace tessera {

struct ChatFormat {
  std::string name;  // of --chat-template
  // The conversation, of at least one message, up to where the answer begins. Throws Error when the
  // format cannot express it.
  std::vector<Segment> (*render)(std::span<const Message> messages);
  std::vector<std::string> stop_tokens;  // special tokens that end an answer
};

std::span<const ChatFormat> chat_formats();

}  // namespace tessera
