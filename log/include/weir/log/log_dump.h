#pragma once

#include <weir/runtime/file_system.h>
#include <weir/runtime/result.h>

#include <functional>
#include <string>
#include <string_view>

namespace weir::log {

// What keys and values of records are shown as.
enum class RecordDecoder {
  kByTopic,          // by the folder's name; kNone for a topic that is not one of those below
  kNone,             // bytes
  kOffsets,          // __consumer_offsets
  kTransactionLog,   // __transaction_state
  kClusterMetadata,  // __cluster_metadata and its snapshots
};

struct DumpOptions {
  bool json = false;
  // False: batches only, nothing inside them is decoded.
  bool records = true;
  RecordDecoder decoder = RecordDecoder::kByTopic;
};

// Shows what stands in the files of a partition, as far as it can be read.
//
// `path` is a partition folder (any name, with or without a data directory around it) or one of its
// files: .log, .index, .timeindex, .txnindex, .snapshot, also with .deleted, .cleaned or .swap
// behind it, leader-epoch-checkpoint, partition.metadata, a snapshot of the metadata log
// (.checkpoint); or a log directory's recovery-point-, replication-, log-start- or
// cleaner-offset-checkpoint, or the directory for all of those.
//
// Text is that of Kafka's DumpLogSegments --deep-iteration --print-data-log with the decoder's
// option, file after file by name, with these differences: bytes that are no printable UTF-8 stand
// as \xNN; a range that cannot be read is a line "Damaged: position: .. endPosition: ..
// firstOffset: .. nextOffset: .. reason: ..", behind which the dump goes on; an index that the .log
// beside it contradicts has a line "Damaged: reason: .." behind its entries; what a decoder does
// not know is {"hex": .., "reason": ..}; and there are the files that Kafka's does not know:
// "epoch: 0 startOffset: 0", "version: 0 topicId: ..", "topic: .. partition: .. offset: ..".
//
// JSON is one object on one line, in this order:
//   folder, nextOffsetInFiles (-1: no batch), files {name: size}, leaderEpochs [{epoch,
//   startOffset}], partitionMetadata {version, topicId}, producerSnapshots {file: [..]},
//   metadataSnapshots [{file, endOffset, epoch}], checkpoints {file: {topic-partition: offset}},
//   segments [{file, baseOffset, size, validBytes, offsetIndex, timeIndex, txnIndex}], batches,
//   control, records, decoded [{offset, keyType, keyName, key, valueVersion, value}; of the
//   metadata log {offset, type, version, data}], abortedTransactions [{producerId, firstOffset,
//   lastOffset}] in the order of their markers, damaged [{segment, position, endPosition,
//   firstOffset, nextOffset, reason}] and, only if there are any, damagedFiles [{file, reason}].
// leaderEpochs to checkpoints and txnIndex are absent when their files are, records and decoded
// without DumpOptions::records, decoded without a decoder. nextOffset is null when nothing readable
// stands behind the range. For a single file the object has that file's parts only; the records of
// a metadata snapshot are in the dump of that file alone.
//
// Message sets of magic 0 and 1 are ranges that cannot be read, and named as what they are.
//
// Threading: any thread. Reads only, beside a running writer too: a file is dumped up to the size
//            that it had at the start; a batch that is being appended right there is left out.
// Ownership: borrows everything. Only this call calls `write`, with pieces of about 64 KiB; larger
//            ones only for one record.
// Bounds:    one batch (at most 256 MiB, and as much decompressed), 512 open files, the index files
// of
//            a segment (at most 64 MiB each), and an entry
//            for each producer with an open transaction. JSON walks a segment up to eight times.
// Errors:    kNotFound         `path` does not exist;
//            kInvalidArgument  it is neither a partition folder nor one of those files;
//            kIo               a .log file cannot be read; other files are listed as damaged.
Status dump_log(FileSystem& files, const std::string& path, const DumpOptions& options,
                const std::function<void(std::string_view)>& write);

}  // namespace weir::log
