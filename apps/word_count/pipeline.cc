#include "apps/word_count/pipeline.h"

#include "apps/word_count/words.h"

#include <weir/operators/stream_builder.h>

#include <string>

namespace weir::word_count {

Topology count_words(std::string_view input, std::string_view output) {
  StreamBuilder builder;
  builder.from(Topic<std::string, std::string>::named(input))
      .flat_map_values([](const std::string& line) { return words(line); })
      .group_by([](const std::string& word) { return word; })
      .count(KvStore<std::string, std::int64_t>{"counts"})
      .to_stream()
      .to(Topic<std::string, std::int64_t>::named(output));
  return std::move(builder).build();
}

}  // namespace weir::word_count
