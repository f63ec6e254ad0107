// The lines of a chat that are commands.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apps/chat/session.h"

namespace tessera {

enum class ChatOutcome { kContinue, kLeave };

// Whether `line` is for run_chat_command: it begins with "/", or is "exit" or another word for it.
bool is_chat_command(std::string_view line);

// Carries out such a line. Throws Error with what to do instead when the command is unknown or
// cannot be done.
ChatOutcome run_chat_command(ChatSession& session, const std::string& line);

// What Tab offers: every command by its first name, and whether `command` takes a file.
std::vector<std::string_view> chat_command_names();
bool takes_file(std::string_view command);
// The keys of /set, and whether one of them is on or off.
std::vector<std::string_view> setting_names();
bool is_switch(std::string_view setting);

}  // namespace tessera
