#include "oci/html_page.h"

#include <cstdlib>
#include <initializer_list>

#include "oci/html_style.h"
#include "oci/report.h"
#include "oci/svg_chart.h"
#include "oci/text.h"

namespace benchsand {

using nlohmann::json;

namespace {

constexpr std::size_t kFilesListed = 1000;

std::string tag(const std::string& name, const std::string& content) {
  return "<" + name + ">" + content + "</" + name + ">";
}

// A value of the record, whatever its type, as text to be read.
std::string shown(const json& value) {
  if (value.is_null()) return "–";
  return html_text(value.is_string() ? value.get<std::string>() : value.dump(-1, ' ', true));
}

std::string code(const json& value) {
  return tag("code", shown(value));
}

std::string row(std::initializer_list<std::string> cells) {
  std::string text = "<tr>";
  for (const auto& cell : cells) text += cell;
  return text + "</tr>\n";
}

std::string cell(const std::string& content) {
  return tag("td", content);
}
std::string value_cell(const json& value) {
  return std::string("<td class=\"value") + (value.is_number() ? " fixed" : "") + "\">" + shown(value) + "</td>";
}
std::string number_cell(const json& value) {
  return "<td class=\"number\">" + shown(value) + "</td>";
}
std::string head(const std::string& text) {
  return tag("th", text);
}
std::string number_head(const std::string& text) {
  return "<th class=\"number\">" + text + "</th>";
}

std::string card_of_rows(const std::string& rows) {
  return "<div class=\"card\"><div class=\"wide\"><table>\n" + rows + "</table></div></div>\n";
}

std::string section(const std::string& title, const std::string& content) {
  return tag("h2", title) + "\n" + content;
}

std::string none(const std::string& text) {
  return "<p class=\"none\">" + text + "</p>\n";
}

// Good: as wanted. Mild: the candidate's own doing. Bad: nobody can say.
std::string mood(const json& record) {
  const json& verdict = record.at("verdict");
  if (verdict.at("scored") != true) return "bad";
  return verdict.at("outcome") == "succeeded" ? "good" : "mild";
}

std::string verdict_box(const json& record) {
  const auto [score, why] = headline(record);
  const json &engine = record.at("engine"), &delegate = engine.at("delegate"), &host = record.at("host");
  std::string text = "<div class=\"verdict " + mood(record) + "\">\n<h1>" + shown(record.at("task").at("name")) +
                     "</h1>\n<p><span class=\"score\">" + score + "</span> " + html_text(why) + "</p>\n";
  text += "<p class=\"facts\">profile " + shown(record.at("profile").at("name")) + " · " + shown(delegate.at("name")) +
          " " + shown(delegate.at("version")) + " · Linux " + shown(host.at("kernel")) + ", cgroup " +
          shown(host.at("cgroup")) + " · " + shown(record.at("created")) + " · run " + code(record.at("id")) + "</p>\n";
  for (const auto& relaxation : record.at("policy").at("relaxations"))
    text += "<p class=\"facts\">loosened: " + code(relaxation) + "</p>\n";
  for (const auto& notice : record.at("notices")) text += "<p class=\"facts\">notice: " + shown(notice) + "</p>\n";
  return text + "</div>\n";
}

bool is_failure(const json& verdict, const std::string& wall, const json& entry) {
  const json& seen = entry.at("observed");
  const std::string observed = seen.is_null()     ? "missing: " + entry.at("missing").get<std::string>()
                               : seen.is_string() ? seen.get<std::string>()
                                                  : seen.dump();
  for (const auto& failure : verdict.at("failures"))
    if (failure.at("wall") == wall && failure.at("source") == entry.at("source") &&
        failure.at("expected") == entry.at("expected") && failure.at("observed") == observed)
      return true;
  return false;
}

const char* moment(const std::string& section_name, const std::string& observation) {
  if (section_name == "spent") return "used";
  if (section_name == "after") return "after";
  return observation.ends_with(".end") ? "at the end" : "at the door";
}

std::string evidence_rows(const json& record, const std::string& wall) {
  std::string rows;
  for (const char* name : {"established", "spent", "after"}) {
    const json& walls = record.at("evidence").at(name);
    if (!walls.contains(wall)) continue;
    for (const auto& [observation, entry] : walls.at(wall).items()) {
      const bool broken = is_failure(record.at("verdict"), wall, entry);
      const json& seen = entry.at("observed");
      rows += std::string(broken ? "<tr class=\"broken\">" : "<tr>") + cell(html_text(observation)) +
              "<td class=\"when\">" + std::string(moment(name, observation)) + "</td>" +
              value_cell(entry.at("expected")) +
              (seen.is_null() ? cell("missing: " + shown(entry.at("missing"))) : value_cell(seen)) +
              value_cell(entry.at("source")) + "</tr>\n";
    }
  }
  if (rows.empty()) return none("nothing was observed");
  return "<div class=\"wide\"><table>\n" +
         row({head("observation"), head("when"), head("expected"), head("observed"), head("source")}) + rows +
         "</table></div>\n";
}

const char* pill(WallLine::State state) {
  switch (state) {
    case WallLine::State::held:
    case WallLine::State::stood:
      return "pill";
    case WallLine::State::broken:
      return "pill broken";
    case WallLine::State::not_observed:
      return "pill unknown";
  }
  std::abort();  // not a value of the enumeration
}

std::string walls(const json& record) {
  std::string text;
  for (const auto& line : wall_lines(record)) {
    std::string words;
    for (const auto& part : line.words) words += (words.empty() ? "" : "<br/>") + html_text(part);
    const std::string open = line.state == WallLine::State::broken ? " open=\"open\"" : "";
    text += "<details" + open + "><summary><span class=\"name\">" + line.wall + "</span><span class=\"" +
            pill(line.state) + "\">" + to_text(line.state) + "</span><span class=\"words\">" + words +
            "</span></summary>\n" + evidence_rows(record, line.wall) + "</details>\n";
  }
  return "<div class=\"card\">\n" + text + "</div>\n";
}

std::string refusals(const json& record) {
  const auto found = record.at("evidence").find("refusals");
  if (found == record.at("evidence").end()) return "";
  std::string rows;
  for (const auto& entry : found->at("by_call"))
    rows += row({cell(code(entry.at("call"))), cell(entry.contains("argument") ? code(entry.at("argument")) : ""),
                 cell(code(entry.at("errno"))), number_cell(entry.at("count"))});
  if (rows.empty()) return section("Refused calls", none("none of the calls that are counted was tried"));
  return section(
      "Refused calls",
      card_of_rows(row({head("call"), head("argument"), head("answered with"), number_head("times")}) + rows));
}

std::string timeline(const json& record) {
  const auto all = timeline_series(record);
  if (all.empty()) return section("Timeline", none(html_text(why_no_samples(record))));
  std::string figures;
  for (const auto& series : all) figures += svg_figure(series, timeline_end_us(record));
  return section("Timeline", "<div class=\"charts\">\n" + figures + "</div>\n");
}

template <class Row>
std::string rows_of(const json& list, std::size_t columns, Row line) {
  std::string rows;
  for (std::size_t i = 0; i < list.size() && i < kFilesListed; ++i) rows += line(list[i]);
  if (list.size() > kFilesListed)
    rows += "<tr><td colspan=\"" + std::to_string(columns) + "\">and " + std::to_string(list.size() - kFilesListed) +
            " more, see the record</td></tr>\n";
  return rows;
}

std::string outputs(const json& record) {
  const json &taken = record.at("outputs"), &refused = record.at("outputs_refused"),
             &more = record.at("outputs_refused_more");
  std::string text;
  if (taken.empty())
    text += none("no file was taken from the output");
  else
    text += card_of_rows(
        row({head("file"), number_head("bytes"), head("SHA-256")}) + rows_of(taken, 3, [](const json& file) {
          return row({cell(code(file.at("path"))), number_cell(file.at("size")), value_cell(file.at("sha256"))});
        }));
  text = section("Outputs", text);
  if (refused.empty()) return text;
  std::string rows = rows_of(refused, 2, [](const json& file) {
    return row({cell(code(file.at("path"))), cell(shown(file.at("reason")))});
  });
  if (more != 0) rows += row({"<td colspan=\"2\">and " + shown(more) + " more that the record does not list</td>"});
  return text + section("Not taken", card_of_rows(row({head("file"), head("why")}) + rows));
}

std::string streams(const json& record) {
  std::string rows = row({head("stream"), number_head("bytes"), number_head("kept"), head("SHA-256 of what was kept")});
  if (record.at("policy").value("terminal", false))
    return section("Streams", none("what went through the terminal was not counted"));
  for (const char* name : {"stdout", "stderr"}) {
    const json& stream = record.at(name);
    rows += row(
        {cell(name), number_cell(stream.at("bytes")), number_cell(stream.at("kept")), value_cell(stream.at("sha256"))});
  }
  return section("Streams", card_of_rows(rows));
}

std::string policy(const json& record) {
  const json& decided = record.at("policy");
  std::string rows;
  for (const char* name : {"command", "env", "workdir", "rootfs", "image", "stdin", "inputs", "output", "uid", "gid"})
    if (decided.contains(name)) rows += row({cell(name), value_cell(decided.at(name))});
  for (const auto& [name, value] : decided.at("limits").items())
    rows += row({cell("limits." + html_text(name)), value_cell(value)});
  return section("Policy",
                 "<div class=\"card\"><details><summary><span class=\"words\">What was decided for this run"
                 "</span></summary>\n<div class=\"wide\"><table>\n" +
                     rows + "</table></div></details></div>\n");
}

}  // namespace

std::string html_text(const std::string& text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t valid = utf8_length(text, at), hidden = hidden_length(text, at);
    const std::size_t length = valid == 0 ? 1 : valid;
    if (valid == 0 || hidden != 0)
      result += escaped_bytes(text, at, length);
    else if (text[at] == '&')
      result += "&amp;";
    else if (text[at] == '<')
      result += "&lt;";
    else if (text[at] == '>')
      result += "&gt;";
    else if (text[at] == '"')
      result += "&quot;";
    else if (text[at] == '\'')
      result += "&#39;";
    else
      result.append(text, at, length);
    at += length;
  }
  return result;
}

std::string html_page(const json& record) {
  const std::string name = shown(record.at("task").at("name"));
  return "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n<meta "
         "charset=\"utf-8\"/>\n"
         // A second wall: were anything to get through the escaping, it could neither run nor load.
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\"/>\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>" +
         name + ": " + headline(record).score + "</title>\n<style>" + kPageStyle +
         "</style>\n</head>\n<body>\n<main>\n" + verdict_box(record) + section("Walls", walls(record)) +
         refusals(record) + timeline(record) + outputs(record) + streams(record) + policy(record) +
         "<footer>benchsand " + shown(record.at("benchsand").at("version")) + " · record digest " +
         code(record.at("digest")) + "</footer>\n</main>\n</body>\n</html>\n";
}

}  // namespace benchsand
