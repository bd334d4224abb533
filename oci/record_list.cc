#include "oci/record_list.h"

#include <algorithm>

#include "oci/columns.h"
#include "oci/report.h"

namespace benchsand {

using nlohmann::json;

namespace {

constexpr std::size_t kIdShown = 12;  // as engines show it

std::string text_at(const json& record, const char* section, const char* key) {
  const auto in = record.find(section);
  if (in == record.end() || !in->is_object()) return "?";
  const auto found = in->find(key);
  return found != in->end() && found->is_string() ? on_one_line(found->get<std::string>()) : "?";
}

std::string verdict_of(const json& record) {
  const auto verdict = record.find("verdict");
  if (verdict == record.end() || !verdict->is_object() || !verdict->contains("scored")) return "?";
  return (verdict->at("scored") == true ? "SCORED " : "NOT SCORED ") + text_at(record, "verdict", "outcome");
}

// ID~2 keeps its number when the id is cut.
std::string short_file(const std::string& file) {
  const auto mark = file.find('~');
  return file.substr(0, std::min(mark, kIdShown)) + (mark == std::string::npos ? "" : file.substr(mark));
}

}  // namespace

RecordLine record_line(const std::string& file, const json& record) {
  RecordLine line{"?", short_file(file), "?", "?", "no record of benchsand"};
  if (!record.is_object()) return line;
  if (const auto created = record.find("created"); created != record.end() && created->is_string())
    line.created = on_one_line(created->get<std::string>());
  line.name = text_at(record, "container", "name");
  line.profile = text_at(record, "profile", "name");
  line.verdict = verdict_of(record);
  return line;
}

std::string record_list(const std::vector<RecordLine>& lines) {
  std::vector<std::vector<std::string>> rows = {{"CREATED", "CONTAINER", "NAME", "PROFILE", "VERDICT"}};
  for (const auto& line : lines) rows.push_back({line.created, line.file, line.name, line.profile, line.verdict});
  return columns(rows);
}

}  // namespace benchsand
