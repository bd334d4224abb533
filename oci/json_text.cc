#include "oci/json_text.h"

#include <algorithm>

namespace benchsand {

namespace {

std::size_t after_blanks(const std::string& text, std::size_t at) {
  const auto found = text.find_first_not_of(" \t\r\n", at);
  return found == std::string::npos ? text.size() : found;
}

std::size_t after_string(const std::string& text, std::size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at)
    if (text[at] == '\\') ++at;
  return at + 1;
}

std::size_t after_value(const std::string& text, std::size_t at) {
  if (text[at] == '"') return after_string(text, at);
  if (text[at] != '{' && text[at] != '[') return std::min(text.find_first_of(" \t\r\n,]}", at), text.size());
  for (std::size_t depth = 0; at < text.size();) {
    if (text[at] == '"') {
      at = after_string(text, at);
      continue;
    }
    if (text[at] == '{' || text[at] == '[') ++depth;
    if ((text[at] == '}' || text[at] == ']') && --depth == 0) return at + 1;
    ++at;
  }
  return text.size();
}

// The blanks that the line of `at` begins with.
std::string indent_of(const std::string& text, std::size_t at) {
  const auto line = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
  const std::size_t begin = line == std::string::npos ? 0 : line + 1;
  return text.substr(begin, std::min(text.find_first_not_of(" \t", begin), text.size()) - begin);
}

// One step of indentation as this document has it: that of its first indented line.
std::string indent_step(const std::string& text) {
  for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 1)) {
    const auto end = text.find_first_not_of(" \t", at + 1);
    if (end != std::string::npos && end > at + 1 && text[end] == '"') return text.substr(at + 1, end - at - 1);
  }
  return "  ";
}

// What stands between two members: a line end and the indentation, or a blank.
std::string lead_of(const std::string& text, std::size_t object, const std::vector<JsonMember>& members) {
  const std::size_t begin =
      members.size() == 1 ? object + 1 : text.find(',', members[members.size() - 2].value_end) + 1;
  const std::string lead = text.substr(begin, members.back().key_at - begin);
  const auto line = lead.rfind('\n');
  if (line == std::string::npos) return " ";
  return lead.substr(line > 0 && lead[line - 1] == '\r' ? line - 1 : line);
}

}  // namespace

Result<nlohmann::json> parse_json(const std::string& text, const std::string& file) {
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    const std::string what = error.what();  // "[json.exception…] parse error at line 1, column 2: …"
    const auto bracket = what.find("] ");
    return usage("read " + file + ": " + (bracket == std::string::npos ? what : what.substr(bracket + 2)));
  }
}

std::size_t json_root(const std::string& text) {
  return after_blanks(text, text.starts_with("\xEF\xBB\xBF") ? 3 : 0);
}

std::vector<JsonMember> json_members(const std::string& text, std::size_t object) {
  std::vector<JsonMember> members;
  for (std::size_t at = after_blanks(text, object + 1); at < text.size() && text[at] == '"';) {
    JsonMember member;
    member.key_at = at;
    const std::size_t key_end = after_string(text, at);
    member.key = nlohmann::json::parse(text.substr(at, key_end - at)).get<std::string>();
    member.value_at = after_blanks(text, after_blanks(text, key_end) + 1);
    member.value_end = after_value(text, member.value_at);
    at = after_blanks(text, member.value_end);
    if (at < text.size() && text[at] == ',') at = after_blanks(text, at + 1);
    members.push_back(std::move(member));
  }
  return members;
}

std::string insert_member(const std::string& text, std::size_t object, const std::string& key,
                          const std::string& value) {
  const std::string member = nlohmann::json(key).dump() + ": " + value;
  const auto members = json_members(text, object);
  std::string changed = text;
  if (!members.empty()) return changed.insert(members.back().value_end, "," + lead_of(text, object, members) + member);
  const std::string line = text.find("\r\n") == std::string::npos ? "\n" : "\r\n", outer = indent_of(text, object);
  return changed.replace(object, after_value(text, object) - object,
                         "{" + line + outer + indent_step(text) + member + line + outer + "}");
}

std::string erase_member(const std::string& text, std::size_t object, const std::string& key) {
  const auto members = json_members(text, object);
  std::string changed = text;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i].key != key) continue;
    if (members.size() == 1) return changed.replace(object, after_value(text, object) - object, "{}");
    const std::size_t begin = i == 0 ? members[0].key_at : members[i - 1].value_end;
    const std::size_t end = i == 0 ? members[1].key_at : members[i].value_end;
    return changed.erase(begin, end - begin);
  }
  return changed;
}

}  // namespace benchsand
