#include "oci/install_docker.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "oci/json_text.h"

namespace benchsand {

namespace {

using nlohmann::json;

constexpr const char* kRuntimes = "runtimes";

bool is_blank(const std::string& text) {
  return text.find_first_not_of(" \t\r\n") == std::string::npos;
}

// dockerd's decoder takes names in any case and the last of two; such a text means something else to every reader.
Result<void> check_names(const std::string& text, std::size_t object, const std::string& file, const std::string& of) {
  std::vector<std::string> seen;
  for (const auto& member : json_members(text, object)) {
    std::string lower = member.key;
    std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
    if (std::find(seen.begin(), seen.end(), lower) != seen.end())
      return usage("read " + file + ": '" + member.key + "' stands twice in " + of + "; remove one of them");
    seen.push_back(std::move(lower));
  }
  return {};
}

std::optional<std::size_t> runtimes_at(const std::string& text) {
  for (const auto& member : json_members(text, json_root(text)))
    if (member.key == kRuntimes) return member.value_at;
  return std::nullopt;
}

Result<json> read_daemon_json(const std::string& text, const std::string& file) {
  json document = TRY(parse_json(text, file));
  if (!document.is_object()) return usage("read " + file + ": its content is no object");
  TRY_VOID(check_names(text, json_root(text), file, "it"));
  for (const auto& [key, value] : document.items())
    if (key != kRuntimes && key.size() == 8 &&
        std::equal(key.begin(), key.end(), kRuntimes, [](unsigned char a, char b) { return std::tolower(a) == b; }))
      return usage("read " + file + ": '" + key + "' has to be written '" + kRuntimes + "'");
  if (!document.contains(kRuntimes)) return document;
  if (!document[kRuntimes].is_object()) return usage("read " + file + ": '" + kRuntimes + "' is no object");
  TRY_VOID(check_names(text, *runtimes_at(text), file, std::string("'") + kRuntimes + "'"));
  return document;
}

json entry_of(const NamedRuntime& runtime) {
  return {{"path", runtime.path}};
}

// Only what install writes: a path whose file has the runtime's name, and no arguments.
bool is_ours(const std::string& name, const json& entry) {
  if (name != "benchsand" && !name.starts_with("benchsand-")) return false;
  if (!entry.is_object() || entry.size() != 1 || !entry.contains("path") || !entry["path"].is_string()) return false;
  return entry["path"].get<std::string>().ends_with("/" + name);
}

std::vector<std::string> ours(const json& document) {
  std::vector<std::string> names;
  if (!document.contains(kRuntimes)) return names;
  for (const auto& [name, entry] : document[kRuntimes].items())
    if (is_ours(name, entry)) names.push_back(name);
  return names;
}

bool is_registered(const json& document, const std::vector<NamedRuntime>& runtimes) {
  return ours(document).size() == runtimes.size() &&
         std::all_of(runtimes.begin(), runtimes.end(), [&](const NamedRuntime& runtime) {
           return document[kRuntimes].contains(runtime.name) && document[kRuntimes][runtime.name] == entry_of(runtime);
         });
}

std::string without(std::string text, const std::vector<std::string>& names) {
  for (const auto& name : names) text = erase_member(text, *runtimes_at(text), name);
  if (!names.empty() && json_members(text, *runtimes_at(text)).empty())
    text = erase_member(text, json_root(text), kRuntimes);
  return text;
}

}  // namespace

Result<std::string> add_to_daemon_json(const std::string& given, const std::string& file,
                                       const std::vector<NamedRuntime>& runtimes) {
  const std::string text = is_blank(given) ? "{}\n" : given;
  const json document = TRY(read_daemon_json(text, file));
  for (const auto& runtime : runtimes)
    if (document.contains(kRuntimes) && document[kRuntimes].contains(runtime.name) &&
        !is_ours(runtime.name, document[kRuntimes][runtime.name]))
      return usage("register " + runtime.name + " in " + file + ": a runtime of that name is there already, as " +
                   document[kRuntimes][runtime.name].dump() + "; remove or rename it");
  if (is_registered(document, runtimes)) return given;
  std::string changed = without(text, ours(document));
  if (!runtimes_at(changed)) changed = insert_member(changed, json_root(changed), kRuntimes, "{}");
  for (const auto& runtime : runtimes)
    changed = insert_member(changed, *runtimes_at(changed), runtime.name, entry_of(runtime).dump());
  return changed;
}

Result<std::string> remove_from_daemon_json(const std::string& text, const std::string& file) {
  if (is_blank(text)) return text;
  const json document = TRY(read_daemon_json(text, file));
  const auto names = ours(document);
  const auto by_default = document.find("default-runtime");
  for (const auto& name : names)
    if (by_default != document.end() && *by_default == name)
      return usage("remove " + name + " from " + file + ": it is the default-runtime there; set another one first");
  std::string changed = without(text, names);
  return !names.empty() && json_members(changed, json_root(changed)).empty() ? "" : changed;
}

}  // namespace benchsand
