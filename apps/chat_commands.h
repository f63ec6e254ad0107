// The lines of a chat that begin with "/".
#pragma once

#include <string>

#include "apps/chat_session.h"

namespace tessera {

enum class ChatOutcome { kContinue, kLeave };

// Carries out `line`, which begins with "/". Throws Error with what to do instead when the command
// is unknown or cannot be done.
ChatOutcome run_chat_command(ChatSession& session, const std::string& line);

}  // namespace tessera
