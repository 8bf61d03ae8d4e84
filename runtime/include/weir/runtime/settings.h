#pragma once

#include <weir/runtime/result.h>

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

// Settings are a plain struct per part plus one table of Property: Kafka's name where Kafka has
// one, default (the struct's own), range and a line of documentation. Read once at start; all
// mistakes are reported together, unknown keys with the nearest valid name.

namespace weir {

template <class Struct>
struct Property {
  std::string_view name;
  std::variant<std::int64_t Struct::*, bool Struct::*, std::string Struct::*> member;
  std::int64_t min = INT64_MIN;  // numbers only, inclusive
  std::int64_t max = INT64_MAX;
  // std::string only: comma-separated legal values; empty allows any.
  std::string_view one_of;
  std::string_view doc;
};

namespace internal {
// The untyped half, compiled once.
struct SettingProblem {
  std::string text;
};
std::vector<std::string> unknown_key_problems(const std::map<std::string, std::string>& given,
                                              std::span<const std::string_view> known);
Result<std::int64_t> parse_number(std::string_view name, std::string_view text, std::int64_t min,
                                  std::int64_t max);
Result<bool> parse_flag(std::string_view name, std::string_view text);
Status check_choice(std::string_view name, std::string_view text, std::string_view one_of);
// "0 to 100", "1 or more".
std::string range_text(std::int64_t min, std::int64_t max);
// kInvalidConfig with one problem a line. Requires: !problems.empty().
Error settings_error(std::string_view part, const std::vector<std::string>& problems);
}  // namespace internal

// A setting's value as text.
template <class Struct>
std::string property_text(const Property<Struct>& property, const Struct& settings) {
  if (const auto* number = std::get_if<std::int64_t Struct::*>(&property.member)) {
    return std::to_string(settings.**number);
  }
  if (const auto* flag = std::get_if<bool Struct::*>(&property.member)) {
    return settings.**flag ? "true" : "false";
  }
  return settings.*std::get<std::string Struct::*>(property.member);
}

// A setting as tools show it.
struct SettingDescription {
  std::string name;
  std::string default_value;
  std::string range;  // "0 to 100", "1 or more", "all,1", "true,false"; empty: any text
  std::string doc;
};

template <class Struct>
std::vector<SettingDescription> describe_settings(std::span<const Property<Struct>> properties,
                                                  const Struct& defaults = {}) {
  std::vector<SettingDescription> descriptions;
  for (const Property<Struct>& property : properties) {
    std::string range;
    if (std::holds_alternative<std::int64_t Struct::*>(property.member)) {
      range = internal::range_text(property.min, property.max);
    } else if (std::holds_alternative<bool Struct::*>(property.member)) {
      range = "true,false";
    } else {
      range = property.one_of;
    }
    descriptions.push_back({std::string(property.name), property_text(property, defaults),
                            std::move(range), std::string(property.doc)});
  }
  return descriptions;
}

// Edit distance based suggestion; empty when nothing is near. For settings, commands and topics.
std::string nearest_name(std::string_view name, std::span<const std::string_view> candidates);

// Sets one member from text. Errors: kInvalidConfig.
template <class Struct>
Status read_property(const Property<Struct>& property, const std::string& text, Struct& settings) {
  if (const auto* number = std::get_if<std::int64_t Struct::*>(&property.member)) {
    WEIR_TRY_ASSIGN(settings.**number,
                    internal::parse_number(property.name, text, property.min, property.max));
    return {};
  }
  if (const auto* flag = std::get_if<bool Struct::*>(&property.member)) {
    WEIR_TRY_ASSIGN(settings.**flag, internal::parse_flag(property.name, text));
    return {};
  }
  WEIR_TRY(internal::check_choice(property.name, text, property.one_of));
  settings.*std::get<std::string Struct::*>(property.member) = text;
  return {};
}

// Reads `given` over the defaults in `settings`. `part` names the object in messages ("topic
// orders"), `problems` are mistakes that the caller found, to be reported with the others.
// Errors: kInvalidConfig that lists every unknown key and bad value.
template <class Struct>
Result<Struct> parse_settings(std::string_view part, std::span<const Property<Struct>> properties,
                              const std::map<std::string, std::string>& given, Struct settings = {},
                              std::vector<std::string> problems = {}) {
  std::vector<std::string_view> known;
  for (const Property<Struct>& property : properties) {
    known.push_back(property.name);
  }
  for (std::string& problem : internal::unknown_key_problems(given, known)) {
    problems.push_back(std::move(problem));
  }
  for (const Property<Struct>& property : properties) {
    const auto found = given.find(std::string(property.name));
    if (found == given.end()) {
      continue;
    }
    Status read = read_property(property, found->second, settings);
    if (!read.ok()) {
      problems.push_back(read.error().message());
    }
  }
  if (!problems.empty()) {
    return internal::settings_error(part, problems);
  }
  return settings;
}

}  // namespace weir
