#pragma once

#include <weir/runtime/file_system.h>
#include <weir/runtime/result.h>
#include <weir/runtime/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// An application's folder below the state directory, for tools: what it recorded of itself, who
// runs it, and its end. (Its stores: <weir/operators/store_reader.h>.)

namespace weir {

// What an application recorded at its last start.
struct ApplicationPlan {
  struct SubTopology {
    std::vector<std::string> source_topics;  // names on the log
    std::vector<std::string> sink_topics;
    std::vector<std::string> stores;
    std::int32_t tasks = 0;  // 0 while an input topic does not exist
  };
  struct Store {
    std::string name;
    std::string key_serde;
    std::string value_serde;
    std::string changelog_topic;
  };
  std::string application_id;
  std::vector<SubTopology> sub_topologies;
  std::vector<Store> stores;
  std::vector<std::string> input_topics;  // that others write

  // Changelogs and repartition topics, which belong to the application alone; by name.
  std::vector<std::string> internal_topics() const;
};

// Where an application keeps its state.
struct ApplicationFolder {
  std::string state_dir;  // as AppOptions::state_dir
  std::string application_id;
};

// Ids of the applications that recorded themselves below `state_dir`, by name; empty when there is
// no such folder. Errors: kIo.
Result<std::vector<std::string>> list_applications(FileSystem& files, const std::string& state_dir);

// Errors: kNotFound (names the applications that there are), kCorrupt and kUnsupported (name the
// file), kIo.
Result<ApplicationPlan> read_application_plan(FileSystem& files, const ApplicationFolder& folder);

// Who runs the application, as its lock says ("application words in process 42"); nullopt when
// nobody does. Errors: kIo.
Result<std::optional<std::string>> application_holder(FileSystem& files,
                                                      const ApplicationFolder& folder);

// Keeps the application from starting as long as the lock lives. `purpose` is what others are told.
// Errors: kNotFound, kLocked (it runs; names the process), kIo.
Result<std::unique_ptr<FileLock>> lock_application(FileSystem& files,
                                                   const ApplicationFolder& folder,
                                                   std::string_view purpose);

// Removes stores, plan and folder; the plan last, so that what was interrupted is still listed.
// Requires: the caller holds lock_application(). Errors: kIo.
Status remove_application_state(FileSystem& files, const ApplicationFolder& folder);

}  // namespace weir
