#pragma once

#include <weir/runtime/settings.h>

#include <vector>

// Every setting of the log's parts, by name, with default and range: what the tables say that read
// them.

namespace weir::log {

std::vector<SettingDescription> log_settings();  // EmbeddedLogOptions::set
std::vector<SettingDescription> topic_settings();
std::vector<SettingDescription> producer_settings();  // ProducerOptions::parse
std::vector<SettingDescription> consumer_settings();  // ConsumerOptions::parse

}  // namespace weir::log
