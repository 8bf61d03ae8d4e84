#pragma once

#include <weir/operators/app.h>

#include <cstdint>
#include <string_view>

namespace weir::bench {

// Until all that stands in the inputs now is processed and committed. Errors: the application's.
Status run_until_drained(App& app);

// Sum over all labels.
std::uint64_t metric(App& app, std::string_view name);

}  // namespace weir::bench
