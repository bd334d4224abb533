#include "oci/runtime_settings.h"

#include "oci/yaml_reader.h"

namespace benchsand {

Result<RuntimeSettings> parse_runtime_settings(const std::string& text, const std::string& source) {
  const YamlSource yaml(source, text);
  const YamlNode root = TRY(parse_yaml(yaml));
  RuntimeSettings settings;
  if (root.kind == YamlNode::Kind::empty) return settings;
  Problems problems(yaml);
  const MappingReader reader(root, "", {"delegate"}, problems);
  if (const YamlNode* node = reader.find("delegate")) {
    const auto delegate = read_nonempty_text(*node, "delegate", problems);
    if (delegate && *delegate != "crun" && *delegate != "runc")
      problems.add(node->position, "delegate: crun or runc is due, not " + in_quotes(*delegate));
    settings.delegate = delegate;
  }
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
