#include "oci/doctor.h"

#include <algorithm>
#include <set>

#include "oci/report.h"
#include "oci/walls.h"

namespace benchsand {

using nlohmann::json;

namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

// A source without what is different in every run.
std::string general(std::string source, const std::string& run_id) {
  if (!run_id.empty()) replace_all(source, run_id, "ID");
  const std::string proc = "/proc/";
  for (std::size_t at = source.find(proc); at != std::string::npos; at = source.find(proc, at + proc.size())) {
    std::size_t end = at + proc.size();
    while (end < source.size() && is_digit(source[end])) ++end;
    if (end > at + proc.size()) source.replace(at + proc.size(), end - at - proc.size(), "PID");
  }
  return source;
}

std::set<std::string> sources_of(const json& record, const std::string& wall) {
  std::set<std::string> sources;
  for (const char* section : {"established", "spent", "after"}) {
    const json& walls = record.at("evidence").at(section);
    if (!walls.contains(wall)) continue;
    for (const auto& [name, entry] : walls.at(wall).items())
      sources.insert(general(entry.at("source").get<std::string>(), record.at("id").get<std::string>()));
  }
  return sources;
}

bool is_scored(const json& record) {
  return record.is_object() && record.at("verdict").at("scored") == true;
}

json walls_json(const json& record) {
  json walls = json::array();
  if (record.is_null()) return walls;
  for (const auto& line : wall_lines(record)) {
    const bool held = line.state == WallLine::State::held || line.state == WallLine::State::stood;
    walls.push_back({{"wall", line.wall},
                     {"held", held},
                     {"sources", sources_of(record, line.wall)},
                     {"problems", held ? std::vector<std::string>{} : line.words}});
  }
  return walls;
}

json finding_json(const std::string& what, const Finding& finding) {
  return {{"what", what}, {"why", finding.why}, {"cure", finding.cure}};
}

json part_json(const DoctorPart& part) {
  json result = {{"part", part.name},     {"means", part.means}, {"walls", part.walls},
                 {"needed", part.needed}, {"tried", part.tried}, {"works", part.tried && !part.problem},
                 {"why", nullptr},        {"cure", nullptr}};
  if (part.problem) result["why"] = part.problem->why;
  if (part.problem) result["cure"] = part.problem->cure;
  return result;
}

json run_json(const DoctorRun& run) {
  json result = {{"delegate", run.delegate.name},
                 {"version", run.delegate.version},
                 {"path", run.path},
                 {"sha256", run.delegate.sha256},
                 {"every_wall", is_scored(run.record)},
                 {"every_wall_with_filter_proof_compiled", nullptr},
                 {"walls", walls_json(run.record)},
                 {"problems", json::array()}};
  if (run.loosened.is_object()) result["every_wall_with_filter_proof_compiled"] = is_scored(run.loosened);
  for (const auto& problem : run.problems) result["problems"].push_back({{"why", problem.why}, {"cure", problem.cure}});
  return result;
}

json engine_json(const DoctorEngine& engine) {
  const auto text = [](const std::string& value) { return value.empty() ? json() : json(value); };
  return {{"engine", engine.name},
          {"client", text(engine.client)},
          {"socket", text(engine.socket)},
          {"reachable", engine.reachable},
          {"why", text(engine.why)},
          {"hearsay",
           {{"version", text(engine.version)},
            {"default_runtime", text(engine.default_runtime)},
            {"cgroup_driver", text(engine.cgroup_driver)}}}};
}

bool explained(const std::vector<DoctorPart>& parts, const std::string& wall) {
  return std::any_of(parts.begin(), parts.end(), [&](const DoctorPart& part) {
    return part.problem && part.needed && std::find(part.walls.begin(), part.walls.end(), wall) != part.walls.end();
  });
}

// What a delegate's run showed that no part explains.
void add_run(const DoctorFindings& findings, const DoctorRun& run, json& missing) {
  if (!run.follows)
    for (const auto& problem : run.problems) missing.push_back(finding_json(run.delegate.name, problem));
  if (run.record.is_null() || is_scored(run.record)) return;
  for (const auto& line : wall_lines(run.record)) {
    if (line.state != WallLine::State::broken || explained(findings.parts, line.wall)) continue;
    for (const auto& words : line.words)
      missing.push_back(finding_json(
          line.wall + " with " + run.delegate.name,
          finding_of(general(words, run.record.at("id").get<std::string>()),
                     "docs/verdicts.md says what this wall is read from; benchsand run shows the same with a record")));
  }
}

json missing_json(const DoctorFindings& findings) {
  json missing = json::array();
  for (const auto& part : findings.parts)
    if (part.problem && part.needed) missing.push_back(finding_json(part.name, *part.problem));
  for (const auto& run : findings.runs) add_run(findings, run, missing);
  return missing;
}

class Ink {
 public:
  explicit Ink(bool colour) : colour_(colour) {}
  std::string good(const std::string& text) const { return colour_ ? "\033[32m" + text + "\033[0m" : text; }
  std::string bad(const std::string& text) const { return colour_ ? "\033[31m" + text + "\033[0m" : text; }

 private:
  bool colour_;
};

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

std::string text_of(const json& value) {
  return value.is_string() ? on_one_line(value.get<std::string>()) : "?";
}

std::string host_lines(const json& document) {
  const json& host = document.at("host");
  const auto has = [&](const char* key, const char* word) {
    return std::string(", ") + (host.at(key) == true ? "" : "no ") + word;
  };
  std::string text = padded("host", 12) + "Linux " + text_of(host.at("kernel")) + ", cgroup " +
                     text_of(host.at("cgroup")) + ", " + host.at("processors").dump() + " processors" +
                     has("systemd", "systemd") + has("root", "root") + has("swap", "swap") + has("psi", "PSI") + "\n";
  for (const auto& run : document.at("delegates")) {
    text += padded(text_of(run.at("delegate")), 12);
    if (run.at("version") != "") text += text_of(run.at("version")) + ", " + text_of(run.at("path"));
    for (const auto& problem : run.at("problems"))
      text += (text.ends_with(' ') ? "" : "; ") + text_of(problem.at("why"));
    text += "\n";
  }
  for (const auto& engine : document.at("engines")) {
    text += padded(text_of(engine.at("engine")), 12);
    const json& said = engine.at("hearsay");
    const bool is_unknown = engine.at("why").is_null() || engine.at("why") == kNoSocket;
    if (engine.at("client").is_null() && engine.at("socket").is_null() && is_unknown)
      text += "not found\n";
    else if (engine.at("reachable") == true)
      text += "says it is " + text_of(said.at("version")) + ", default runtime " + text_of(said.at("default_runtime")) +
              ", cgroup driver " + text_of(said.at("cgroup_driver")) + "\n";
    else
      text += "client " + (engine.at("client").is_null() ? "not found" : text_of(engine.at("client"))) + ", " +
              text_of(engine.at("why")) + "\n";
  }
  return text;
}

std::string parts_lines(const json& document, const Ink& ink) {
  std::string text;
  for (const auto& part : document.at("parts")) {
    const bool works = part.at("works") == true, needed = part.at("needed") == true, tried = part.at("tried") == true;
    const std::string state = works ? "works" : !tried ? "not tried" : needed ? "MISSING" : "absent";
    text += padded(text_of(part.at("part")), 28) +
            (works             ? ink.good(padded(state, 10))
             : needed && tried ? ink.bad(padded(state, 10))
                               : padded(state, 10)) +
            text_of(part.at("means")) + (works || needed ? "" : " (this policy does not need it)") + "\n";
  }
  return text;
}

// The most telling sources of a wall; all of them are in the document.
std::string some_sources(const json& sources) {
  constexpr std::size_t kShown = 3;
  std::string text;
  for (std::size_t i = 0; i < sources.size() && i < kShown; ++i) {
    std::string source = text_of(sources[i]);
    const std::string leaf = "benchsand/ID/ct/";  // the run's own cgroup: its file says enough
    if (const auto at = source.find(leaf); at != std::string::npos) source = source.substr(at + leaf.size());
    if (source.starts_with(' ')) source = "the cgroup's" + source;
    text += (i == 0 ? "" : ", ") + source;
  }
  return text + (sources.size() > kShown ? ", …" : "");
}

std::string walls_lines(const json& document, const Ink& ink) {
  const json& runs = document.at("delegates");
  std::string text;
  for (const auto& wall : wall_names()) {
    std::string line = padded(wall, 12);
    json sources = json::array();
    for (const auto& run : runs) {
      const json* found = nullptr;
      for (const auto& entry : run.at("walls"))
        if (entry.at("wall") == wall) found = &entry;
      const bool held = found && found->at("held") == true;
      line += held ? ink.good(padded("held", 8)) : found ? ink.bad(padded("not", 8)) : padded("-", 8);
      if (found && sources.empty()) sources = found->at("sources");
    }
    text += line + some_sources(sources) + "\n";
  }
  std::string heading = padded("wall", 12);
  for (const auto& run : runs) heading += padded(text_of(run.at("delegate")), 8);
  return heading + "read from\n" + text;
}

std::string missing_lines(const json& document, const Ink& ink) {
  std::string text;
  for (const auto& entry : document.at("missing"))
    text += ink.bad("missing") + "     " + text_of(entry.at("what")) + ": " + text_of(entry.at("why")) + "\n" +
            padded("cure", 12) + text_of(entry.at("cure")) + "\n";
  return text;
}

std::string last_line(const json& document, const Ink& ink) {
  std::string able, loosened;
  for (const auto& run : document.at("delegates")) {
    const std::string name = text_of(run.at("delegate"));
    if (run.at("every_wall") == true) able += (able.empty() ? "" : ", ") + name;
    if (run.at("every_wall_with_filter_proof_compiled") == true) loosened += (loosened.empty() ? "" : ", ") + name;
  }
  if (!able.empty())
    return ink.good("able") + "        every wall can be enforced and observed here, with " + able + "\n";
  return ink.bad("NOT ABLE") + "    no delegate can keep every wall of strict here" +
         (loosened.empty() ? "" : "; with filter_proof: compiled in the profile, " + loosened + " can") + "\n";
}

}  // namespace

Finding finding_of(const std::string& message, const std::string& usual_cure) {
  const auto at = message.find("; ");
  if (at == std::string::npos) return {message, usual_cure};
  return {message.substr(0, at), message.substr(at + 2)};
}

bool doctor_able(const DoctorFindings& findings) {
  return std::any_of(findings.runs.begin(), findings.runs.end(),
                     [](const DoctorRun& run) { return is_scored(run.record); });
}

json doctor_json(const DoctorFindings& findings) {
  json parts = json::array(), runs = json::array(), engines = json::array();
  for (const auto& part : findings.parts) parts.push_back(part_json(part));
  for (const auto& run : findings.runs) runs.push_back(run_json(run));
  for (const auto& engine : findings.engines) engines.push_back(engine_json(engine));
  return {{"schema", "benchsand.doctor/v1"},
          {"able", doctor_able(findings)},
          {"host",
           {{"kernel", findings.kernel},
            {"cgroup", findings.cgroup},
            {"processors", findings.processors},
            {"root", findings.root},
            {"systemd", findings.systemd},
            {"swap", findings.swap},
            {"psi", findings.psi}}},
          {"delegates", runs},
          {"parts", parts},
          {"engines", engines},
          {"missing", missing_json(findings)}};
}

std::string doctor_table(const json& document, bool colour) {
  const Ink ink(colour);
  return host_lines(document) + "\n" + parts_lines(document, ink) + "\n" + walls_lines(document, ink) + "\n" +
         missing_lines(document, ink) + last_line(document, ink);
}

}  // namespace benchsand
