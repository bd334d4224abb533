// What the rules of admit share; for oci/admit*.cc alone.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "oci/admit.h"

namespace benchsand::admission {

struct Admitting {
  nlohmann::json& document;
  const AdmitContext& context;
  Admission& result;

  const nlohmann::json* find(const std::string& pointer) const;
  void edit(const std::string& field, const std::string& from, const std::string& to, const std::string& wall);
  void refuse(const std::string& wall, const std::string& what, const std::string& cure);
  // Takes the field away, when it is there; empty ones without a word.
  void drop(const std::string& pointer, const std::string& to, const std::string& wall);
  void ask(const std::string& limit, std::uint64_t value, const std::string& field);  // the smaller one holds
};

using Apply = void (*)(Admitting&);
struct NamedRule {
  AdmitRule rule;
  Apply apply;
};

// One line of a value, for an Edit.
std::string brief(const nlohmann::json& value);
// A bound above zero. 0, -1 and what is not there are no bound.
std::optional<std::uint64_t> bound(const nlohmann::json* value);
bool asks_nothing(const nlohmann::json& value);  // 0, "", false, -1 and empty lists: how engines write "not there"
std::optional<std::uint64_t> asked_cpus_milli(const nlohmann::json& cpu);  // of `linux.resources.cpu`
bool one_of(std::string_view text, std::initializer_list<std::string_view> list);
bool is_inside(std::string_view path, std::string_view directory);
std::string wall_of_limit(const std::string& name);
bool privileged(const Admitting& admitting);

std::string normal_path(const std::string& path);  // without ".", "..", "//"

extern const std::vector<NamedRule> kTopRules, kProcessRules, kMountRules, kLinuxRules, kResourceRules;

}  // namespace benchsand::admission
