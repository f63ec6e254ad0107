#include "apps/chat/typed_path.h"

#include "apps/process/environment.h"

namespace tessera {
namespace {

bool is_quoted(std::string_view text) {
  return text.size() >= 2 && text.front() == text.back() &&
         (text.front() == '"' || text.front() == '\'');
}

}  // namespace

std::string typed_path(std::string_view typed) {
  return with_home(is_quoted(typed) ? typed.substr(1, typed.size() - 2) : typed);
}

}  // namespace tessera
