#include "oci/runtime_settings.h"

#include <algorithm>

#include "oci/yaml_reader.h"

namespace benchsand {

namespace {

constexpr std::uint64_t kMostRecords = 1'000'000, kMostDays = 36'500;

void read_count(const MappingReader& reader, std::string_view key, std::uint64_t most, std::uint64_t& into,
                Problems& problems) {
  const YamlNode* node = reader.find(key);
  if (node == nullptr) return;
  const auto count = read_integer(*node, reader.path_of(key), problems);
  if (!count) return;
  if (*count == 0 || *count > most)
    problems.add(node->position, reader.path_of(key) + ": not between 1 and " + std::to_string(most));
  else
    into = *count;
}

void read_settings(const YamlNode& root, RuntimeSettings& settings, Problems& problems) {
  const MappingReader reader(root, "", {"delegate", "records"}, problems);
  if (const YamlNode* delegate = reader.find("delegate")) {
    const auto text = read_nonempty_text(*delegate, "delegate", problems);
    if (text && *text != "crun" && *text != "runc")
      problems.add(delegate->position, "delegate: crun or runc is due, not " + in_quotes(*text));
    settings.delegate = text;
  }
  const YamlNode* records = reader.find("records");
  if (records == nullptr) return;
  const MappingReader keep(*records, "records", {"keep", "days"}, problems);
  if (records->kind != YamlNode::Kind::mapping) return;
  read_count(keep, "keep", kMostRecords, settings.keep.records, problems);
  read_count(keep, "days", kMostDays, settings.keep.days, problems);
}

// Every line is blank or a comment: for other documents of benchsand a mistake, here an operator who keeps the defaults.
bool sets_nothing(const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    at = text.find_first_not_of(" \t\r\n", at);
    if (at == std::string::npos) return true;
    if (text[at] != '#') return false;
    at = std::min(text.find('\n', at), text.size());
  }
  return true;
}

}  // namespace

Result<RuntimeSettings> parse_runtime_settings(const std::string& text, const std::string& name) {
  RuntimeSettings settings;
  if (sets_nothing(text)) return settings;
  const YamlSource source(name, text);
  const YamlNode root = TRY(parse_yaml(source));
  Problems problems(source);
  read_settings(root, settings, problems);
  if (!problems.none()) return problems.report();
  return settings;
}

Result<std::string> profile_of_program(const std::string& argv0) {
  const std::string name = argv0.substr(argv0.rfind('/') + 1);
  if (name == "benchsand" || name == "benchsand-runtime") return std::string("strict");
  constexpr std::string_view kPrefix = "benchsand-";
  constexpr const char* kAllowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  const std::string profile = name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : "";
  if (profile.empty() || profile.size() > 64 || profile[0] == '.' || profile[0] == '-' ||
      profile.find_first_not_of(kAllowed) != std::string::npos)
    return usage("choose a profile by the program's name: " + in_quotes(name) +
                 " is not benchsand, benchsand-runtime or benchsand-PROFILE");
  return profile;
}

}  // namespace benchsand
