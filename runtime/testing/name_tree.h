#pragma once

#include "runtime/testing/file_content.h"
#include "runtime/testing/mapped_region.h"

#include <weir/runtime/result.h>
#include <weir/runtime/rng.h>
#include <weir/runtime/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::testing::internal {

struct Node;
// Shared: cached names, durable names, waiting name changes and open files all keep a node alive.
using NodePointer = std::shared_ptr<Node>;

// One entry of a folder's journal. A rename inside a folder is one change; one between folders is a
// change in each, joined by `transaction`, and reaches the disk in both or in none.
struct NameChange {
  std::string removed;
  std::string added;
  NodePointer node;               // of `added`
  std::uint64_t transaction = 0;  // 0: concerns this folder only
  std::weak_ptr<Node> other;      // the other folder of the transaction
};

// A file or a folder.
struct Node {
  using Names = std::map<std::string, NodePointer, std::less<>>;

  explicit Node(std::optional<FileContent> bytes) : content(std::move(bytes)) {}
  bool is_folder() const { return !content.has_value(); }
  // Mapped memory changes behind our back: moves what it holds into the cached content.
  void pull_mapped();
  // Shows a change of the cached content to those who mapped the file.
  void push_mapped();

  std::optional<FileContent> content;  // files
  Names names;                         // folders, as the cache has them
  Names durable_names;
  std::vector<NameChange> pending;  // since the folder's last sync, in order
  Node* parent = nullptr;           // in the cached tree
  bool linked = false;              // has a name in the cached tree
  bool locked = false;
  int open_handles = 0;
  int mappings = 0;
  std::unique_ptr<MappedRegion> region;  // while there are mappings
  Timestamp modified = 0;
};

// The names of a simulated disk: what the cache shows, what is durable, and the changes between.
// Threading: confined to its owner.
class NameTree {
 public:
  // A name in a folder that exists. `node` is null when nothing has the name.
  struct Place {
    NodePointer folder;  // null for the root itself
    std::string name;
    NodePointer node;
  };

  NameTree();
  NameTree(const NameTree&) = delete;
  NameTree& operator=(const NameTree&) = delete;
  ~NameTree();

  // Errors: kNotFound when a folder on the way is missing, kIo when it is a file. `action` is for
  // the message.
  Result<Place> find(std::string_view action, const std::string& path) const;

  void add(const Place& place, const NodePointer& node);
  // Requires: place.node.
  void remove(const Place& place);
  // Replaces to.node if there is one. Requires: from.node; `to` is not below it.
  void move(const Place& from, const Place& to);
  // Whether `node` is `folder` or lies below it.
  static bool is_below(const Node* node, const Node* folder);

  // Makes the folder's changes durable, in order.
  void sync(const NodePointer& folder);
  // Keeps a prefix of each folder's changes and cuts the power of each file that is still named.
  void power_cut(Rng& rng);
  std::unique_ptr<NameTree> clone() const;
  // All nodes that the cache, the disk or a waiting change names; each once, in an order that
  // depends on names only. The root is the first.
  std::vector<NodePointer> all() const;
  // Only those that the cache names.
  std::vector<NodePointer> cached() const;

 private:
  using Positions = std::map<const Node*, std::size_t>;

  Positions choose_kept(const std::vector<NodePointer>& nodes, Rng& rng) const;
  static void apply(Node& folder, std::size_t count);

  NodePointer root_;
  std::uint64_t last_transaction_ = 0;
};

}  // namespace weir::testing::internal
