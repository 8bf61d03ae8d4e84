#include "log/dump/message_schemas.h"

namespace weir::log {
namespace {

using enum FieldKind;

constexpr MessageField kTopicAndPartitions[] = {
    {"topic", kString},
    {"partitions", array_of(kInt32)},
};
constexpr MessageField kSubscription[] = {
    {"topics", array_of(kString)},
    {"userData", kBytes, {.nullable = true}},
    {"ownedPartitions", array_of(kTopicAndPartitions), {.since = 1}},
    {"generationId", kInt32, {.since = 2}},
    {"rackId", kString, {.since = 3, .nullable = true}},
};
constexpr MessageField kAssignment[] = {
    {"assignedPartitions", array_of(kTopicAndPartitions)},
    {"userData", kBytes, {.nullable = true}},
};
constexpr MessageField kTransactionPartitions[] = {
    {"topic", kString},
    {"partitionIds", array_of(kInt32)},
};
constexpr MessageField kTransactionValue[] = {
    {"producerId", kInt64},
    {"previousProducerId", kInt64, {.since = 1, .tag = 0, .absent = -1}},
    {"nextProducerId", kInt64, {.since = 1, .tag = 1, .absent = -1}},
    {"producerEpoch", kInt16},
    {"nextProducerEpoch", kInt16, {.since = 1, .tag = 3, .absent = -1}},
    {"transactionTimeoutMs", kInt32},
    {"transactionStatus", kInt8},
    {"transactionPartitions", array_of(kTransactionPartitions), {.nullable = true}},
    {"transactionLastUpdateTimestampMs", kInt64},
    {"transactionStartTimestampMs", kInt64},
    {"clientTransactionVersion", kInt16, {.since = 1, .tag = 2}},
};
constexpr MessageField kOffsetCommitValue[] = {
    {"offset", kInt64},
    {"leaderEpoch", kInt32, {.since = 3}},
    {"metadata", kString},
    {"commitTimestamp", kInt64},
    {"expireTimestamp", kInt64, {.since = 1, .until = 1}},
    {"topicId", kUuid, {.since = 4, .tag = 0}},
};
constexpr MessageField kGroupMembers[] = {
    {"memberId", kString},
    {"groupInstanceId", kString, {.since = 3, .nullable = true}},
    {"clientId", kString},
    {"clientHost", kString},
    {"rebalanceTimeout", kInt32, {.since = 1}},
    {"sessionTimeout", kInt32},
    {"subscription", kBytes},
    {"assignment", kBytes},
};
constexpr MessageField kGroupValue[] = {
    {"protocolType", kString},
    {"generation", kInt32},
    {"protocol", kString, {.nullable = true}},
    {"leader", kString, {.nullable = true}},
    {"currentStateTimestamp", kInt64, {.since = 2}},
    {"members", array_of(kGroupMembers)},
};
constexpr MessageField kGroupEpochValue[] = {
    {"epoch", kInt32},
    {"metadataHash", kInt64, {.tag = 0}},
};
constexpr MessageField kClassicProtocols[] = {
    {"name", kString},
    {"metadata", kBytes},
};
constexpr MessageField kClassicMember[] = {
    {"sessionTimeoutMs", kInt32},
    {"supportedProtocols", array_of(kClassicProtocols)},
};
constexpr MessageField kMemberValue[] = {
    {"instanceId", kString, {.nullable = true}},
    {"rackId", kString, {.nullable = true}},
    {"clientId", kString},
    {"clientHost", kString},
    {"subscribedTopicNames", array_of(kString)},
    {"subscribedTopicRegex", kString, {.nullable = true}},
    {"rebalanceTimeoutMs", kInt32},
    {"serverAssignor", kString, {.nullable = true}},
    {"classicMemberMetadata", struct_of(kClassicMember), {.nullable = true, .tag = 0}},
};
constexpr MessageField kTargetAssignmentEpochValue[] = {
    {"assignmentEpoch", kInt32},
    {"assignmentTimestamp", kInt64, {.tag = 0}},
};
constexpr MessageField kIdAndPartitions[] = {
    {"topicId", kUuid},
    {"partitions", array_of(kInt32)},
};
constexpr MessageField kTargetAssignmentValue[] = {
    {"topicPartitions", array_of(kIdAndPartitions)},
};
constexpr MessageField kAssignedPartitions[] = {
    {"topicId", kUuid},
    {"partitions", array_of(kInt32)},
    {"assignmentEpochs", array_of(kInt32), {.nullable = true, .tag = 0}},
};
constexpr MessageField kCurrentAssignmentValue[] = {
    {"memberEpoch", kInt32},
    {"previousMemberEpoch", kInt32},
    {"state", kInt8},
    {"assignedPartitions", array_of(kAssignedPartitions)},
    {"partitionsPendingRevocation", array_of(kAssignedPartitions)},
};
constexpr MessageField kRegularExpressionValue[] = {
    {"topics", array_of(kString)},
    {"version", kInt64},
    {"timestamp", kInt64},
};
// Share groups. No schema of theirs is among the recorded ones: the fields are those that a
// broker's records and Kafka's reading of them show (tests/data/log/offsets-topic).

constexpr MessageField kShareMemberValue[] = {
    {"rackId", kString, {.nullable = true}},
    {"clientId", kString},
    {"clientHost", kString},
    {"subscribedTopicNames", array_of(kString)},
};
constexpr MessageField kShareGroupEpochValue[] = {
    {"epoch", kInt32},
    {"metadataHash", kInt64},
};
constexpr MessageField kShareCurrentAssignmentValue[] = {
    {"memberEpoch", kInt32},
    {"previousMemberEpoch", kInt32},
    {"state", kInt8},
    {"assignedPartitions", array_of(kIdAndPartitions)},
};
constexpr MessageField kShareTopicPartitions[] = {
    {"topicId", kUuid},
    {"topicName", kString},
    {"partitions", array_of(kInt32)},
};
constexpr MessageField kShareTopics[] = {
    {"topicId", kUuid},
    {"topicName", kString},
};
constexpr MessageField kSharePartitionsValue[] = {
    {"initializingTopics", array_of(kShareTopicPartitions)},
    {"initializedTopics", array_of(kShareTopicPartitions)},
    {"deletingTopics", array_of(kShareTopics)},
};

constexpr MessageField kOffsetCommitKey[] = {
    {"group", kString},
    {"topic", kString},
    {"partition", kInt32},
};
constexpr MessageField kGroupKey[] = {
    {"group", kString},
};
constexpr MessageField kGroupIdKey[] = {
    {"groupId", kString},
};
constexpr MessageField kMemberKey[] = {
    {"groupId", kString},
    {"memberId", kString},
};
constexpr MessageField kRegularExpressionKey[] = {
    {"groupId", kString},
    {"regularExpression", kString},
};
constexpr MessageField kTransactionKey[] = {
    {"transactionalId", kString},
};

// A key's version is its type, so that each type has one.
constexpr MessageSchema kOffsetsKeys[] = {
    {0, "LEGACY_OFFSET_COMMIT", 0, kNeverFlexible, kOffsetCommitKey},
    {1, "OFFSET_COMMIT", 0, kNeverFlexible, kOffsetCommitKey},
    {2, "GROUP_METADATA", 0, kNeverFlexible, kGroupKey},
    {3, "CONSUMER_GROUP_METADATA", 0, kNeverFlexible, kGroupIdKey},
    {4, "CONSUMER_GROUP_PARTITION_METADATA", 0, kNeverFlexible, kGroupIdKey},
    {5, "CONSUMER_GROUP_MEMBER_METADATA", 0, kNeverFlexible, kMemberKey},
    {6, "CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA", 0, kNeverFlexible, kGroupIdKey},
    {7, "CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER", 0, kNeverFlexible, kMemberKey},
    {8, "CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT", 0, kNeverFlexible, kMemberKey},
    {10, "SHARE_GROUP_MEMBER_METADATA", 0, kNeverFlexible, kMemberKey},
    {11, "SHARE_GROUP_METADATA", 0, kNeverFlexible, kGroupIdKey},
    {12, "SHARE_GROUP_TARGET_ASSIGNMENT_METADATA", 0, kNeverFlexible, kGroupIdKey},
    {13, "SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER", 0, kNeverFlexible, kMemberKey},
    {14, "SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT", 0, kNeverFlexible, kMemberKey},
    {15, "SHARE_GROUP_STATE_PARTITION_METADATA", 0, kNeverFlexible, kGroupIdKey},
    {16, "CONSUMER_GROUP_REGULAR_EXPRESSION", 0, kNeverFlexible, kRegularExpressionKey},
};
constexpr MessageSchema kOffsetsValues[] = {
    {0, "LEGACY_OFFSET_COMMIT", 4, 4, kOffsetCommitValue},
    {1, "OFFSET_COMMIT", 4, 4, kOffsetCommitValue},
    {2, "GROUP_METADATA", 4, 4, kGroupValue},
    {3, "CONSUMER_GROUP_METADATA", 0, 0, kGroupEpochValue},
    {5, "CONSUMER_GROUP_MEMBER_METADATA", 0, 0, kMemberValue},
    {6, "CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA", 0, 0, kTargetAssignmentEpochValue},
    {7, "CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER", 0, 0, kTargetAssignmentValue},
    {8, "CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT", 0, 0, kCurrentAssignmentValue},
    {10, "SHARE_GROUP_MEMBER_METADATA", 0, 0, kShareMemberValue},
    {11, "SHARE_GROUP_METADATA", 0, 0, kShareGroupEpochValue},
    {12, "SHARE_GROUP_TARGET_ASSIGNMENT_METADATA", 0, 0, kTargetAssignmentEpochValue},
    {13, "SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER", 0, 0, kTargetAssignmentValue},
    {14, "SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT", 0, 0, kShareCurrentAssignmentValue},
    {15, "SHARE_GROUP_STATE_PARTITION_METADATA", 0, 0, kSharePartitionsValue},
    {16, "CONSUMER_GROUP_REGULAR_EXPRESSION", 0, 0, kRegularExpressionValue},
};
constexpr MessageSchema kTransactionKeys[] = {
    {0, "TRANSACTION_LOG", 0, kNeverFlexible, kTransactionKey},
};
constexpr MessageSchema kTransactionValues[] = {
    {0, "TRANSACTION_LOG", 1, 1, kTransactionValue},
};
constexpr MessageSchema kSubscriptionSchema = {0, "ConsumerProtocolSubscription", 3, kNeverFlexible,
                                               kSubscription};
constexpr MessageSchema kAssignmentSchema = {0, "ConsumerProtocolAssignment", 3, kNeverFlexible,
                                             kAssignment};

}  // namespace

std::span<const MessageSchema> offsets_key_schemas() {
  return kOffsetsKeys;
}
std::span<const MessageSchema> offsets_value_schemas() {
  return kOffsetsValues;
}
std::span<const MessageSchema> transaction_key_schemas() {
  return kTransactionKeys;
}
std::span<const MessageSchema> transaction_value_schemas() {
  return kTransactionValues;
}
const MessageSchema& consumer_subscription_schema() {
  return kSubscriptionSchema;
}
const MessageSchema& consumer_assignment_schema() {
  return kAssignmentSchema;
}
}  // namespace weir::log
