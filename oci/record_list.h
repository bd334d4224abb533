// The records of containers as a list for people, the newest first.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace benchsand {

struct RecordLine {
  std::string created, file, name, profile, verdict;
};
// Of a document that may be anything: what is not there is "?".
RecordLine record_line(const std::string& file, const nlohmann::json& record);
std::string record_list(const std::vector<RecordLine>& lines);

}  // namespace benchsand
