#pragma once

#include <weir/operators/topology.h>

#include <string_view>

namespace weir::word_count {

// Lines of the topic `input` to words, counted in the store "counts", to the topic `output`: what
// the program runs and what bench measures.
Topology count_words(std::string_view input, std::string_view output);

}  // namespace weir::word_count
