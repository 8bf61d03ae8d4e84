#include "log/dump/message_schemas.h"

namespace weir::log {
namespace {

using enum FieldKind;

constexpr MessageField kEndPoints[] = {
    {"name", kString},
    {"host", kString},
    {"port", kUint16},
    {"securityProtocol", kInt16},
};
constexpr MessageField kFeatures[] = {
    {"name", kString},
    {"minSupportedVersion", kInt16},
    {"maxSupportedVersion", kInt16},
};
constexpr MessageField kRegisterBroker[] = {
    {"brokerId", kInt32},
    {"isMigratingZkBroker", kBool, {.since = 2}},
    {"incarnationId", kUuid},
    {"brokerEpoch", kInt64},
    {"endPoints", array_of(kEndPoints)},
    {"features", array_of(kFeatures)},
    {"rack", kString, {.nullable = true}},
    {"fenced", kBool},
    {"inControlledShutdown", kBool, {.since = 1}},
    {"logDirs", array_of(kUuid), {.since = 3, .tag = 0}},
    {"cordonedLogDirs", array_of(kUuid), {.since = 4, .nullable = true, .tag = 1}},
};
constexpr MessageField kUnregisterBroker[] = {
    {"brokerId", kInt32},
    {"brokerEpoch", kInt64},
};
constexpr MessageField kTopic[] = {
    {"name", kString},
    {"topicId", kUuid},
};
constexpr MessageField kPartition[] = {
    {"partitionId", kInt32},
    {"topicId", kUuid},
    {"replicas", array_of(kInt32)},
    {"isr", array_of(kInt32)},
    {"removingReplicas", array_of(kInt32)},
    {"addingReplicas", array_of(kInt32)},
    {"leader", kInt32},
    {"leaderRecoveryState", kInt8, {.tag = 0}},
    {"leaderEpoch", kInt32},
    {"partitionEpoch", kInt32},
    {"directories", array_of(kUuid), {.since = 1}},
    {"eligibleLeaderReplicas", array_of(kInt32), {.since = 2, .nullable = true, .tag = 1}},
    {"lastKnownElr", array_of(kInt32), {.since = 2, .nullable = true, .tag = 2}},
};
constexpr MessageField kConfig[] = {
    {"resourceType", kInt8},
    {"resourceName", kString},
    {"name", kString},
    {"value", kString, {.nullable = true}},
};
constexpr MessageField kPartitionChange[] = {
    {"partitionId", kInt32},
    {"topicId", kUuid},
    {"isr", array_of(kInt32), {.nullable = true, .tag = 0}},
    {"leader", kInt32, {.tag = 1, .absent = -2}},
    {"replicas", array_of(kInt32), {.nullable = true, .tag = 2}},
    {"removingReplicas", array_of(kInt32), {.nullable = true, .tag = 3}},
    {"addingReplicas", array_of(kInt32), {.nullable = true, .tag = 4}},
    {"leaderRecoveryState", kInt8, {.tag = 5, .absent = -1}},
    {"directories", array_of(kUuid), {.since = 1, .nullable = true, .tag = 8}},
    {"eligibleLeaderReplicas", array_of(kInt32), {.since = 2, .nullable = true, .tag = 6}},
    {"lastKnownElr", array_of(kInt32), {.since = 2, .nullable = true, .tag = 7}},
};
constexpr MessageField kFenceBroker[] = {
    {"id", kInt32},
    {"epoch", kInt64},
};
constexpr MessageField kRemoveTopic[] = {
    {"topicId", kUuid},
};
constexpr MessageField kDelegationToken[] = {
    {"owner", kString},         {"requester", kString},   {"renewers", array_of(kString)},
    {"issueTimestamp", kInt64}, {"maxTimestamp", kInt64}, {"expirationTimestamp", kInt64},
    {"tokenId", kString},
};
constexpr MessageField kUserScramCredential[] = {
    {"name", kString},     {"mechanism", kInt8},  {"salt", kBytes},
    {"storedKey", kBytes}, {"serverKey", kBytes}, {"iterations", kInt32},
};
constexpr MessageField kFeatureLevel[] = {
    {"name", kString},
    {"featureLevel", kInt16},
};
constexpr MessageField kQuotaEntity[] = {
    {"entityType", kString},
    {"entityName", kString, {.nullable = true}},
};
constexpr MessageField kClientQuota[] = {
    {"entity", array_of(kQuotaEntity)},
    {"key", kString},
    {"value", kFloat64},
    {"remove", kBool},
};
constexpr MessageField kProducerIds[] = {
    {"brokerId", kInt32},
    {"brokerEpoch", kInt64},
    {"nextProducerId", kInt64},
};
constexpr MessageField kBrokerRegistrationChange[] = {
    {"brokerId", kInt32},
    {"brokerEpoch", kInt64},
    {"fenced", kInt8, {.tag = 0}},
    {"inControlledShutdown", kInt8, {.since = 1, .tag = 1}},
    {"logDirs", array_of(kUuid), {.since = 2, .tag = 2}},
    {"cordonedLogDirs", array_of(kUuid), {.since = 3, .nullable = true, .tag = 3}},
};
constexpr MessageField kAccessControlEntry[] = {
    {"id", kUuid},          {"resourceType", kInt8},   {"resourceName", kString},
    {"patternType", kInt8}, {"principal", kString},    {"host", kString},
    {"operation", kInt8},   {"permissionType", kInt8},
};
constexpr MessageField kRemoveAccessControlEntry[] = {
    {"id", kUuid},
};
constexpr MessageField kZkMigrationState[] = {
    {"zkMigrationState", kInt8},
};
constexpr MessageField kRemoveUserScramCredential[] = {
    {"name", kString},
    {"mechanism", kInt8},
};
constexpr MessageField kBeginTransaction[] = {
    {"name", kString, {.nullable = true, .tag = 0}},
};
constexpr MessageField kAbortTransaction[] = {
    {"reason", kString, {.nullable = true, .tag = 0}},
};
constexpr MessageField kRemoveDelegationToken[] = {
    {"tokenId", kString},
};
constexpr MessageField kRegisterController[] = {
    {"controllerId", kInt32},          {"incarnationId", kUuid},
    {"zkMigrationReady", kBool},       {"endPoints", array_of(kEndPoints)},
    {"features", array_of(kFeatures)},
};
constexpr MessageField kClearElr[] = {
    {"topicName", kString},
};

constexpr MessageSchema kMetadataSchemas[] = {
    {0, "REGISTER_BROKER_RECORD", 4, 0, kRegisterBroker},
    {1, "UNREGISTER_BROKER_RECORD", 0, 0, kUnregisterBroker},
    {2, "TOPIC_RECORD", 0, 0, kTopic},
    {3, "PARTITION_RECORD", 2, 0, kPartition},
    {4, "CONFIG_RECORD", 0, 0, kConfig},
    {5, "PARTITION_CHANGE_RECORD", 2, 0, kPartitionChange},
    {7, "FENCE_BROKER_RECORD", 0, 0, kFenceBroker},
    {8, "UNFENCE_BROKER_RECORD", 0, 0, kFenceBroker},
    {9, "REMOVE_TOPIC_RECORD", 0, 0, kRemoveTopic},
    {10, "DELEGATION_TOKEN_RECORD", 0, 0, kDelegationToken},
    {11, "USER_SCRAM_CREDENTIAL_RECORD", 0, 0, kUserScramCredential},
    {12, "FEATURE_LEVEL_RECORD", 0, 0, kFeatureLevel},
    {14, "CLIENT_QUOTA_RECORD", 0, 0, kClientQuota},
    {15, "PRODUCER_IDS_RECORD", 0, 0, kProducerIds},
    {17, "BROKER_REGISTRATION_CHANGE_RECORD", 3, 0, kBrokerRegistrationChange},
    {18, "ACCESS_CONTROL_ENTRY_RECORD", 0, 0, kAccessControlEntry},
    {19, "REMOVE_ACCESS_CONTROL_ENTRY_RECORD", 0, 0, kRemoveAccessControlEntry},
    {20, "NO_OP_RECORD", 0, 0, {}},
    {21, "ZK_MIGRATION_STATE_RECORD", 0, 0, kZkMigrationState},
    {22, "REMOVE_USER_SCRAM_CREDENTIAL_RECORD", 0, 0, kRemoveUserScramCredential},
    {23, "BEGIN_TRANSACTION_RECORD", 0, 0, kBeginTransaction},
    {24, "END_TRANSACTION_RECORD", 0, 0, {}},
    {25, "ABORT_TRANSACTION_RECORD", 0, 0, kAbortTransaction},
    {26, "REMOVE_DELEGATION_TOKEN_RECORD", 0, 0, kRemoveDelegationToken},
    {27, "REGISTER_CONTROLLER_RECORD", 0, 0, kRegisterController},
    {28, "CLEAR_ELR_RECORD", 0, 0, kClearElr},
};

// Control records of the metadata log and of its snapshots. Their first field is the version.

constexpr MessageField kLeaderChangeVoters[] = {
    {"voterId", kInt32},
    {"voterDirectoryId", kUuid, {.since = 1}},
};
constexpr MessageField kLeaderChange[] = {
    {"version", kInt16},
    {"leaderId", kInt32},
    {"voters", array_of(kLeaderChangeVoters)},
    {"grantingVoters", array_of(kLeaderChangeVoters)},
};
constexpr MessageField kSnapshotHeader[] = {
    {"version", kInt16},
    {"lastContainedLogTimestamp", kInt64},
};
constexpr MessageField kSnapshotFooter[] = {
    {"version", kInt16},
};
constexpr MessageField kKRaftVersion[] = {
    {"version", kInt16},
    {"kRaftVersion", kInt16},
};
constexpr MessageField kVoterEndpoints[] = {
    {"name", kString},
    {"host", kString},
    {"port", kUint16},
};
constexpr MessageField kVoterFeature[] = {
    {"minSupportedVersion", kInt16},
    {"maxSupportedVersion", kInt16},
};
constexpr MessageField kVoter[] = {
    {"voterId", kInt32},
    {"voterDirectoryId", kUuid},
    {"endpoints", array_of(kVoterEndpoints)},
    {"kRaftVersionFeature", struct_of(kVoterFeature)},
};
constexpr MessageField kVoters[] = {
    {"version", kInt16},
    {"voters", array_of(kVoter)},
};

constexpr MessageSchema kControlSchemas[] = {
    {2, "LeaderChange:", 1, 0, kLeaderChange},
    {3, "SnapshotHeader", 0, 0, kSnapshotHeader},
    {4, "SnapshotFooter", 0, 0, kSnapshotFooter},
    {5, "KRaftVersion", 0, 0, kKRaftVersion},
    {6, "KRaftVoters", 0, 0, kVoters},
};

}  // namespace

std::span<const MessageSchema> metadata_schemas() {
  return kMetadataSchemas;
}
std::span<const MessageSchema> control_schemas() {
  return kControlSchemas;
}

}  // namespace weir::log
