// The branches of a chat: conversations that begin alike and went apart.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "apps/files/conversation.h"
#include "engine/engine.h"

namespace tessera {

// A conversation and the sequence whose KV pages follow it. What branches have in common lies in
// pages that all of them hold. Where they part is seldom the end of a page: the rest of that page
// is computed anew in the step that computes what comes next, which costs no more than copying it.
struct Branch {
  Conversation conversation;
  SequencePtr sequence;
};

class Branches {
 public:
  // Begins on the branch "main". `engine` must outlive the branches.
  Branches(Engine& engine, Conversation opening);

  Branch& current() { return branches_.at(name_); }
  const Branch& current() const { return branches_.at(name_); }
  const std::string& name() const { return name_; }
  const std::map<std::string, Branch>& all() const { return branches_; }

  // Goes to the branch called so. One that is not there yet begins as the current one stands.
  // Whether it is new.
  bool enter(const std::string& name);

 private:
  Engine& engine_;
  std::map<std::string, Branch> branches_;
  std::string name_ = "main";
};

}  // namespace tessera
