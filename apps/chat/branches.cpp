#include "apps/chat/branches.h"

#include <utility>

namespace tessera {

Branches::Branches(Engine& engine, Conversation opening) : engine_(engine) {
  branches_[name_] = {std::move(opening), engine_.create_sequence()};
}

bool Branches::enter(const std::string& name) {
  const bool is_new = !branches_.contains(name);
  if (is_new) branches_[name] = {current().conversation, engine_.create_sequence()};
  name_ = name;
  return is_new;
}

}  // namespace tessera
