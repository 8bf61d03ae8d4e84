#pragma once

#include <weir/runtime/record.h>

#include <string>

namespace weir::log {

// What a record of a control batch says, in the words of Kafka's DumpLogSegments:
// "endTxnMarker: COMMIT coordinatorEpoch: 0", "LeaderChange: {..}", "SnapshotHeader {..}",
// "controlType: UNKNOWN(99)"; "control: <what is wrong>" when its key cannot be read.
std::string control_text(const RecordView& record);

}  // namespace weir::log
