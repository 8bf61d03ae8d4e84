#pragma once

#include <weir/runtime/session_engine.h>
#include <weir/runtime/settings.h>

#include <map>
#include <string>
#include <vector>

namespace weir {

// Reads settings of lanes by name ("session.retry.max.attempts") over the defaults.
// Errors: kInvalidConfig that lists every unknown name, bad value and contradiction.
Result<SessionOptions> parse_session_options(const std::map<std::string, std::string>& given);
// Values out of range and contradictions, all of them: what SessionEngine::open() and
// parse_session_options() refuse alike. Errors: kInvalidConfig.
Status check_session_options(const SessionOptions& options);
// Every setting with its default, its range and a line of documentation.
std::vector<SettingDescription> describe_session_options();

}  // namespace weir
