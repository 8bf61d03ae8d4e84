#include "runtime/testing/name_tree.h"

#include "runtime/io/errno_error.h"

#include <weir/runtime/assert.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace weir::testing::internal {
namespace {

// Lexical: there are no symbolic links here. Relative paths start at the root.
std::vector<std::string_view> components(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const std::string_view part = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(path.size(), part.size() + 1));
    if (part == "..") {
      if (!parts.empty()) {
        parts.pop_back();
      }
    } else if (!part.empty() && part != ".") {
      parts.push_back(part);
    }
  }
  return parts;
}

// Where `transaction` waits in `folder`; none when it is durable already.
std::optional<std::size_t> position_of(const Node& folder, std::uint64_t transaction) {
  for (std::size_t i = 0; i < folder.pending.size(); ++i) {
    if (folder.pending[i].transaction == transaction) {
      return i;
    }
  }
  return std::nullopt;
}

class Walk {
 public:
  void visit(const NodePointer& node) {
    if (node != nullptr && seen_.insert(node.get()).second) {
      nodes_.push_back(node);
    }
  }
  void visit(const Node::Names& names) {
    for (const auto& [name, node] : names) {
      visit(node);
    }
  }
  const NodePointer* next() { return next_ < nodes_.size() ? &nodes_[next_++] : nullptr; }
  std::vector<NodePointer> take() { return std::move(nodes_); }
  bool saw(const Node* node) const { return seen_.contains(node); }

 private:
  std::vector<NodePointer> nodes_;
  std::unordered_set<const Node*> seen_;
  std::size_t next_ = 0;
};

}  // namespace

void Node::pull_mapped() {
  if (region != nullptr) {
    const std::span<char> bytes = region->bytes();
    content->write_changed({bytes.data(), bytes.size()});
  }
}

void Node::push_mapped() {
  if (region != nullptr) {
    const std::span<char> bytes = region->bytes();
    const std::size_t filled = content->read(0, bytes);
    std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(filled), bytes.end(), '\0');
  }
}

NameTree::NameTree() : root_(std::make_shared<Node>(std::nullopt)) {
  root_->linked = true;
}

// The cached and the durable tree may hold each other's folders in a ring.
NameTree::~NameTree() {
  for (const NodePointer& node : all()) {
    node->names.clear();
    node->durable_names.clear();
    node->pending.clear();
  }
}

Result<NameTree::Place> NameTree::find(std::string_view action, const std::string& path) const {
  Place place{nullptr, "", root_};
  if (path.empty()) {
    return weir::internal::errno_error(action, "''", ENOENT);
  }
  for (const std::string_view part : components(path)) {
    if (place.node == nullptr) {
      return weir::internal::errno_error(action, path, ENOENT);
    }
    if (!place.node->is_folder()) {
      return weir::internal::errno_error(action, path, ENOTDIR);
    }
    const auto found = place.node->names.find(part);
    NodePointer child = found == place.node->names.end() ? nullptr : found->second;
    place = Place{std::move(place.node), std::string(part), std::move(child)};
  }
  return place;
}

void NameTree::add(const Place& place, const NodePointer& node) {
  place.folder->names[place.name] = node;
  node->parent = place.folder.get();
  node->linked = true;
  place.folder->pending.push_back({"", place.name, node, 0, {}});
}

void NameTree::remove(const Place& place) {
  place.node->linked = false;
  place.node->parent = nullptr;
  place.folder->names.erase(place.name);
  place.folder->pending.push_back({place.name, "", nullptr, 0, {}});
}

void NameTree::move(const Place& from, const Place& to) {
  if (to.node != nullptr) {
    to.node->linked = false;
    to.node->parent = nullptr;
  }
  from.folder->names.erase(from.name);
  to.folder->names[to.name] = from.node;
  from.node->parent = to.folder.get();
  if (from.folder == to.folder) {
    from.folder->pending.push_back({from.name, to.name, from.node, 0, {}});
    return;
  }
  const std::uint64_t transaction = ++last_transaction_;
  from.folder->pending.push_back({from.name, "", nullptr, transaction, to.folder});
  to.folder->pending.push_back({"", to.name, from.node, transaction, from.folder});
}

bool NameTree::is_below(const Node* node, const Node* folder) {
  while (node != nullptr && node != folder) {
    node = node->parent;
  }
  return node == folder;
}

void NameTree::apply(Node& folder, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const NameChange& change = folder.pending[i];
    if (!change.removed.empty()) {
      folder.durable_names.erase(change.removed);
    }
    if (!change.added.empty()) {
      folder.durable_names[change.added] = change.node;
    }
  }
  folder.pending.erase(folder.pending.begin(),
                       folder.pending.begin() + static_cast<std::ptrdiff_t>(count));
}

void NameTree::sync(const NodePointer& folder) {
  struct Step {
    NodePointer folder;
    std::uint64_t transaction;  // up to and with it; 0: everything
  };
  std::deque<Step> steps{{folder, 0}};
  while (!steps.empty()) {
    const Step step = std::move(steps.front());
    steps.pop_front();
    std::size_t count = step.folder->pending.size();
    if (step.transaction != 0) {
      const auto position = position_of(*step.folder, step.transaction);
      count = position.has_value() ? *position + 1 : 0;
    }
    for (std::size_t i = 0; i < count; ++i) {
      const NameChange& change = step.folder->pending[i];
      if (NodePointer other = change.other.lock(); other != nullptr) {
        steps.push_back({std::move(other), change.transaction});
      }
    }
    apply(*step.folder, count);
  }
}

// A random prefix for each folder, then shortened until each rename between two folders is in both
// prefixes or in neither. Prefixes only shrink, so this ends.
NameTree::Positions NameTree::choose_kept(const std::vector<NodePointer>& nodes, Rng& rng) const {
  Positions kept;
  for (const NodePointer& node : nodes) {
    kept[node.get()] = static_cast<std::size_t>(rng.below(node->pending.size() + 1));
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (const NodePointer& node : nodes) {
      std::size_t& count = kept[node.get()];
      for (std::size_t i = 0; i < count; ++i) {
        const NodePointer other = node->pending[i].other.lock();
        const auto there = other == nullptr ? kept.end() : kept.find(other.get());
        if (there == kept.end()) {
          continue;
        }
        const auto position = position_of(*other, node->pending[i].transaction);
        if (position.has_value() && *position >= there->second) {
          count = i;
          changed = true;
        }
      }
    }
  }
  return kept;
}

void NameTree::power_cut(Rng& rng) {
  const std::vector<NodePointer> before = all();
  const Positions kept = choose_kept(before, rng);
  for (const NodePointer& node : before) {
    apply(*node, kept.at(node.get()));
    node->pending.clear();
    node->names = node->durable_names;
    node->parent = nullptr;
    node->linked = false;
    node->locked = false;
    node->open_handles = 0;
    node->mappings = 0;
  }
  Walk walk;
  walk.visit(root_);
  root_->linked = true;
  while (const NodePointer* next = walk.next()) {
    const NodePointer node = *next;
    for (const auto& [name, child] : node->names) {
      child->parent = node.get();
      child->linked = true;
    }
    walk.visit(node->names);
    if (!node->is_folder()) {
      node->content->power_cut(rng);
    }
  }
  for (const NodePointer& node : before) {
    if (!walk.saw(node.get())) {
      node->names.clear();
      node->durable_names.clear();
    }
  }
}

std::vector<NodePointer> NameTree::all() const {
  Walk walk;
  walk.visit(root_);
  while (const NodePointer* next = walk.next()) {
    const NodePointer node = *next;
    walk.visit(node->durable_names);
    walk.visit(node->names);
    for (const NameChange& change : node->pending) {
      walk.visit(change.node);
    }
  }
  return walk.take();
}

std::vector<NodePointer> NameTree::cached() const {
  Walk walk;
  walk.visit(root_);
  while (const NodePointer* next = walk.next()) {
    const NodePointer node = *next;
    walk.visit(node->names);
  }
  return walk.take();
}

std::unique_ptr<NameTree> NameTree::clone() const {
  const std::vector<NodePointer> nodes = all();
  std::unordered_map<const Node*, NodePointer> copies;
  for (const NodePointer& node : nodes) {
    copies[node.get()] = std::make_shared<Node>(node->content);
  }
  const auto copy_of = [&](const Node* node) {
    const auto found = copies.find(node);
    return found == copies.end() ? nullptr : found->second;
  };
  for (const NodePointer& node : nodes) {
    Node& copy = *copies[node.get()];
    for (const auto& [name, child] : node->names) {
      copy.names[name] = copy_of(child.get());
    }
    for (const auto& [name, child] : node->durable_names) {
      copy.durable_names[name] = copy_of(child.get());
    }
    for (const NameChange& change : node->pending) {
      copy.pending.push_back({change.removed, change.added, copy_of(change.node.get()),
                              change.transaction, copy_of(change.other.lock().get())});
    }
    copy.parent = copy_of(node->parent).get();
    copy.linked = node->linked;
    copy.modified = node->modified;
  }
  auto tree = std::make_unique<NameTree>();
  tree->root_ = copies[root_.get()];
  tree->last_transaction_ = last_transaction_;
  return tree;
}

}  // namespace weir::testing::internal
