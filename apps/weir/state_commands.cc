#include "apps/weir/commands.h"
#include "apps/weir/serde_text.h"

#include <weir/operators/store_reader.h>

#include <fmt/core.h>

namespace weir::cli {
namespace {

void print_row(Output& out, const CommonOptions& common, const StoreReader& store,
               const StoreReader::Row& row) {
  if (common.format == Format::kJson) {
    out.line(fmt::format(R"({{"key":{},"value":{},"timestamp":{}}})",
                         value_json(store.key_serde(), row.key),
                         value_json(store.value_serde(), row.value), row.timestamp));
  } else {
    out.line(value_text(store.key_serde(), row.key) + "\t" +
             value_text(store.value_serde(), row.value));
  }
}

Result<std::unique_ptr<StoreReader>> open_store(log::EmbeddedLog& log,
                                                const StateOptions& options) {
  return StoreReader::open(log, posix_file_system(),
                           {log.state_directory(), options.application, options.store});
}

Status get(log::EmbeddedLog& log, const CommonOptions& common, const StateOptions& options) {
  WEIR_TRY_ASSIGN(const std::unique_ptr<StoreReader> store, open_store(log, options));
  WEIR_TRY_ASSIGN(const std::string key, value_bytes(store->key_serde(), *options.key));
  WEIR_TRY_ASSIGN(const std::optional<StoreReader::Row> row, store->get(key));
  if (!row) {
    return Error(Errc::kNotFound, fmt::format("store {} of application {} has no key '{}'",
                                              options.store, options.application, *options.key));
  }
  Output out;
  if (common.format == Format::kJson) {
    print_row(out, common, *store, *row);
  } else {
    out.line(value_text(store->value_serde(), row->value));
  }
  return {};
}

Status scan(log::EmbeddedLog& log, const CommonOptions& common, const StateOptions& options) {
  WEIR_TRY_ASSIGN(const std::unique_ptr<StoreReader> store, open_store(log, options));
  std::string from;
  std::optional<std::string> to;
  if (options.from) {
    WEIR_TRY_ASSIGN(from, value_bytes(store->key_serde(), *options.from));
  }
  if (options.to) {
    WEIR_TRY_ASSIGN(to, value_bytes(store->key_serde(), *options.to));
  }
  Output out;
  return store->scan(from, to ? std::optional<ByteView>(*to) : std::nullopt,
                     [&](const StoreReader::Row& row) {
                       print_row(out, common, *store, row);
                       return !out.broken();
                     });
}

}  // namespace

int state_get(const CommonOptions& common, const StateOptions& options) {
  return with_log(common, Access::kRead,
                  [&](log::EmbeddedLog& log) { return get(log, common, options); });
}
int state_scan(const CommonOptions& common, const StateOptions& options) {
  return with_log(common, Access::kRead,
                  [&](log::EmbeddedLog& log) { return scan(log, common, options); });
}

}  // namespace weir::cli
