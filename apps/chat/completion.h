// What Tab completes in a chat: commands, the keys and switches of /set, branches, and names of
// files.
#pragma once

#include <string_view>

#include "apps/chat/branches.h"
#include "apps/line_editor/terminal_editor.h"

namespace tessera {

// For a line that begins with "/"; nothing elsewhere.
Completions complete_chat_command(std::string_view before_cursor, const Branches& branches);

}  // namespace tessera
