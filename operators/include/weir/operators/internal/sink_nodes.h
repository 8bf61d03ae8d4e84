#pragma once

#include <weir/operators/internal/nodes.h>
#include <weir/operators/internal/sink_buffer.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

// The ends of a sub-topology that serialise: topics, topics chosen by record, changes of a table.

namespace weir::internal {

// Serialises key and value. A record whose serde throws is rejected and leaves nothing behind.
template <class K, class WriteValue>
void write_record(const NodeSite& site, SinkBuffer& buffer, const K* key, Flow& flow,
                  WriteValue&& write_value) {
  std::string& out = buffer.bytes();
  SinkMark mark{.begin = out.size()};
  const auto write = [&] {
    if (is_null_key(key)) {
      mark.key_is_null = true;
    } else if (flow.has_key_bytes) {
      out.append(flow.key_bytes.view_or_empty());
    } else {
      append_bytes(*key, out);
    }
    mark.key_end = out.size();
    mark.value_is_null = !write_value(out);
  };
  if (site.guard(flow, write, ErrorStage::kProduction)) {
    buffer.add(mark, flow);
  } else {
    out.resize(mark.begin);
  }
}

// With `drop_null_keys` it is the filter of a repartition too: such records go without metric or
// log (Kafka's repartition filter).
template <class K, class V>
class SinkNode final : public Node, public Receiver<K, V> {
 public:
  SinkNode(const NodeSite& site, SinkBuffer& buffer, bool drop_null_keys)
      : site_(site), buffer_(buffer), drop_null_keys_(drop_null_keys) {}

  void receive(const K* key, const V& value, Flow& flow) override {
    if (drop_null_keys_ && is_null_key(key)) {
      return;
    }
    write_record(site_, buffer_, key, flow,
                 [&](std::string& out) { return append_bytes(value, out); });
  }

 private:
  NodeSite site_;
  SinkBuffer& buffer_;
  bool drop_null_keys_;
};

template <class K, class V>
using TopicChooser = std::function<std::string(const K* key, const V& value, const Flow& flow)>;

// Kafka's TopicNameExtractor.
template <class K, class V>
class DynamicSinkNode final : public Node, public Receiver<K, V> {
 public:
  DynamicSinkNode(const NodeSite& site, DynamicSinks& sinks, TopicChooser<K, V> choose)
      : site_(site), sinks_(sinks), choose_(std::move(choose)) {}

  void receive(const K* key, const V& value, Flow& flow) override {
    site_.guard(flow, [&] {
      if (SinkBuffer* buffer = sinks_.find_or_open(choose_(key, value, flow), flow);
          buffer != nullptr) {
        write_record(site_, *buffer, key, flow,
                     [&](std::string& out) { return append_bytes(value, out); });
      }
    });
  }

 private:
  NodeSite site_;
  DynamicSinks& sinks_;
  TopicChooser<K, V> choose_;
};

template <class K, class V>
class SinkFactory final : public NodeFactory {
 public:
  SinkFactory(std::string topic, bool drop_null_keys)
      : topic_(std::move(topic)), drop_null_keys_(drop_null_keys) {}
  std::unique_ptr<Node> make(const NodeSlot& slot, Wiring& wiring) const override {
    auto node = std::make_unique<SinkNode<K, V>>(NodeSite{wiring.task(), slot.name},
                                                 wiring.sink(topic_), drop_null_keys_);
    attach<K, V>(slot, wiring, *node);
    return node;
  }

 private:
  std::string topic_;
  bool drop_null_keys_;
};

template <class K, class V>
class DynamicSinkFactory final : public NodeFactory {
 public:
  explicit DynamicSinkFactory(TopicChooser<K, V> choose) : choose_(std::move(choose)) {}
  std::unique_ptr<Node> make(const NodeSlot& slot, Wiring& wiring) const override {
    auto node = std::make_unique<DynamicSinkNode<K, V>>(NodeSite{wiring.task(), slot.name},
                                                        wiring.dynamic_sinks(), choose_);
    attach<K, V>(slot, wiring, *node);
    return node;
  }

 private:
  TopicChooser<K, V> choose_;
};

}  // namespace weir::internal
