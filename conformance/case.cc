#include "conformance/case.h"

#include <algorithm>
#include <array>
#include <set>

#include "conformance/ten.h"
#include "oci/sha256.h"
#include "oci/walls.h"
#include "oci/yaml_reader.h"

namespace benchsand::conformance {

namespace {

constexpr const char* kEither = "";
constexpr std::size_t kLongestCommand = 900;  // the probe takes 1000 bytes
constexpr const char* kBy = " by ";

// One mapping, whose values are texts.
class CaseReader {
 public:
  CaseReader(const YamlNode& node, std::string path, std::vector<std::string> known, Problems& problems)
      : reader_(node, std::move(path), std::move(known), problems), problems_(problems) {}

  std::string text(std::string_view key) {
    const YamlNode* node = reader_.require(key);
    return node != nullptr ? text_of(*node, key) : "";
  }
  std::string text_if_there(std::string_view key) {
    const YamlNode* node = reader_.find(key);
    return node != nullptr ? text_of(*node, key) : "";
  }
  std::vector<std::string> texts(std::string_view key) {
    const YamlNode* node = reader_.find(key);
    if (node == nullptr) return {};
    return read_texts(*node, reader_.path_of(key), problems_).value_or(std::vector<std::string>());
  }
  // A mapping of texts, or one text for all.
  std::map<std::string, std::string> choices(std::string_view key, bool required) {
    const YamlNode* node = required ? reader_.require(key) : reader_.find(key);
    std::map<std::string, std::string> all;
    if (node == nullptr) return all;
    if (node->is_text()) return {{kEither, node->text}};
    for (const YamlNode& child : node->children) all[child.key] = text_of(child, key);
    if (all.empty()) problems_.add(node->position, reader_.path_of(key) + ": a text or a mapping of texts is due here");
    return all;
  }
  bool flag(std::string_view key) {
    const YamlNode* node = reader_.find(key);
    if (node == nullptr) return false;
    if (node->text != "true") problems_.add(node->position, reader_.path_of(key) + ": only `true` can stand here");
    return true;
  }
  const YamlNode* node(std::string_view key) const { return reader_.find(key); }
  std::string path_of(std::string_view key) const { return reader_.path_of(key); }

 private:
  std::string text_of(const YamlNode& node, std::string_view key) {
    const auto text = read_nonempty_text(node, reader_.path_of(key), problems_);
    return text ? *text : "";
  }

  MappingReader reader_;
  Problems& problems_;
};

std::optional<Relaxation> relaxation_named(const std::string& name) {
  for (const Relaxation relaxation : kRelaxations)
    if (name == to_text(relaxation)) return relaxation;
  return std::nullopt;
}

std::vector<HostFact> read_host_facts(const std::vector<std::string>& lines, Position position, Problems& problems) {
  std::vector<HostFact> facts;
  for (const auto& line : lines) {
    if (const auto fact = host_fact(line))
      facts.push_back(*fact);
    else
      problems.add(position, "host: 'PLACE = VALUE' is due, or >= or <=, not " + in_quotes(line));
  }
  return facts;
}

std::vector<Setting> read_limits(CaseReader& reader) {
  std::vector<Setting> limits;
  for (const auto& [name, value] : reader.choices("limits", false)) limits.push_back({"limits." + name, value});
  return limits;
}

std::vector<Relaxation> read_walls(CaseReader& reader, std::string_view key, Position position, Problems& problems) {
  std::vector<Relaxation> walls;
  for (const auto& name : reader.texts(key)) {
    const auto relaxation = relaxation_named(name);
    if (relaxation)
      walls.push_back(*relaxation);
    else
      problems.add(position, reader.path_of(key) + ": no wall is called " + in_quotes(name));
  }
  return walls;
}

Control read_control(const YamlNode& node, Problems& problems) {
  CaseReader reader(node, "control", {"down", "limits", "grant", "verbs", "host", "then"}, problems);
  Control control;
  control.down = read_walls(reader, "down", node.position, problems);
  control.limits = read_limits(reader);
  control.grant = reader.flag("grant");
  control.verbs = reader.texts("verbs");
  control.host = read_host_facts(reader.texts("host"), node.position, problems);
  control.then = reader.texts("then");
  if (control.down.empty() && control.limits.empty() && control.verbs.empty() && !control.grant)
    problems.add(node.position, "control: nothing is taken down, so nothing can flip");
  if (control.then.empty()) problems.add(node.position, "control.then: an outcome that shows the flip is due");
  return control;
}

void check_names(const Case& one, Position position, Problems& problems) {
  const auto& walls = wall_names();
  if (std::find(walls.begin(), walls.end(), one.wall) == walls.end())
    problems.add(position, "wall: no wall is called " + in_quotes(one.wall));
  if (one.id.empty() || one.id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789.-") != std::string::npos)
    problems.add(position, "id: " + in_quotes(one.id) + " is not of a-z 0-9 . -");
}

// In the sandbox of all the others there is one set of limits, and nobody watches the planted file.
void check_company(const Case& one, Position position, Problems& problems) {
  if (one.alone) return;
  if (!one.limits.empty() || one.planted || !one.control.limits.empty() || one.control.grant || !one.behind.empty())
    problems.add(position, "alone: with limits, `planted`, `behind` or `grant` " + in_quotes(one.id) +
                               " needs a sandbox of its own");
}

// Only another wall, beside those that are down already, can be the one that refuses.
void check_behind(const Case& one, Position position, Problems& problems) {
  const auto& down = one.control.down;
  const bool all = std::all_of(one.behind.begin(), one.behind.end(), [&](Relaxation wall) {
    return std::find(down.begin(), down.end(), wall) != down.end();
  });
  if (!one.behind.empty() && (!all || down.size() <= one.behind.size()))
    problems.add(position, "behind: control.down of " + in_quotes(one.id) + " must have these walls, and another one");
}

void read_claim(CaseReader& reader, Position position, Case& one, Problems& problems) {
  const std::string claim = reader.text_if_there("claim");
  one.limit = claim == "limit";
  if (!claim.empty() && !one.limit) problems.add(position, "claim: only `limit` can stand here");
  if (const YamlNode* control = reader.node("control"))
    one.control = read_control(*control, problems);
  else if (!one.limit)
    problems.add(position, "control: without it nothing shows that " + in_quotes(one.id) + " can fail");
}

// The probe is told whose absence makes the attempt none, and the line that a shell gets. What one program tried cannot be told from
// what another did, so each has a sandbox of its own.
void read_program(CaseReader& reader, Position position, Case& one, Problems& problems) {
  one.program = reader.text_if_there("program");
  if (one.program.empty()) return;
  if (one.program.find(' ') != std::string::npos) problems.add(position, "program: a name is due, without arguments");
  if (one.verb.size() > kLongestCommand || one.verb.find_first_of("\t\n") != std::string::npos)
    problems.add(position, "verb: a command line is due, of at most " + std::to_string(kLongestCommand) + " bytes");
  one.verb = "program " + one.program + " " + one.verb;
  one.alone = true;
}

Case read_case(const YamlNode& node, Problems& problems) {
  CaseReader reader(node, "case", {"id",     "wall",  "check",  "attempt", "asserts",    "verb",      "program",
                                   "expect", "layer", "ledger", "claim",   "alone",      "limits",    "planted",
                                   "shown",  "host",  "behind", "control", "if_control", "in_profile"},
                    problems);
  Case one;
  one.id = reader.text("id");
  one.wall = reader.text("wall");
  one.attempt = reader.text("attempt");
  one.asserts = reader.text("asserts");
  one.verb = reader.text("verb");
  one.expect = reader.choices("expect", true);
  one.layer = reader.text("layer");
  one.ledger = reader.text_if_there("ledger");
  one.shown = reader.text_if_there("shown");
  one.alone = reader.flag("alone");
  one.planted = reader.flag("planted");
  one.if_control = reader.choices("if_control", false);
  one.in_profile = reader.choices("in_profile", false);
  one.limits = read_limits(reader);
  one.behind = read_walls(reader, "behind", node.position, problems);
  one.host = read_host_facts(reader.texts("host"), node.position, problems);
  if (const YamlNode* check = reader.node("check")) {
    const auto number = read_integer(*check, "check", problems);
    if (number && (*number == 0 || *number > kChecks)) problems.add(check->position, "check: there are ten");
    if (number) one.check = static_cast<unsigned>(*number);
  }
  read_program(reader, node.position, one, problems);
  read_claim(reader, node.position, one, problems);
  check_names(one, node.position, problems);
  check_company(one, node.position, problems);
  check_behind(one, node.position, problems);
  return one;
}

}  // namespace

std::optional<HostFact> host_fact(const std::string& line) {
  constexpr std::array<std::pair<std::string_view, HostFact::Relation>, 3> kRelations = {
      {{" = ", HostFact::Relation::equals},
       {" >= ", HostFact::Relation::at_least},
       {" <= ", HostFact::Relation::at_most}}};
  for (const auto& [word, relation] : kRelations)
    if (const std::size_t at = line.find(word); at != std::string::npos)
      return HostFact{line.substr(0, at), relation, line.substr(at + word.size())};
  return std::nullopt;
}

const std::string& Case::expected_of(const HostFacts& facts) const {
  static const std::string nothing;
  for (const std::string& name : {facts.delegate_name, std::string(to_text(facts.cgroup)), std::string(kEither)})
    if (const auto found = expect.find(name); found != expect.end()) return found->second;
  return nothing;
}

Case for_profile(Case one, const std::string& profile) {
  const auto found = one.in_profile.find(profile);
  if (found == one.in_profile.end()) return one;
  const std::string& text = found->second;
  const std::size_t by = text.find(kBy);
  one.expect = {{kEither, text.substr(0, by)}};
  one.ledger.clear();  // who does not ask does not count
  if (by != std::string::npos) {
    one.layer = text.substr(by + std::string_view(kBy).size());
  } else {
    one.limit = true;
    one.allowed_by = profile;
  }
  return one;
}

Result<std::vector<Case>> parse_cases(const std::string& text, const std::string& name) {
  const YamlSource source(name, text);
  const YamlNode root = TRY(parse_yaml(source));
  Problems problems(source);
  std::vector<Case> cases;
  if (read_format_version(root, "benchsand_cases", problems)) {
    const MappingReader reader(root, "", {"benchsand_cases", "cases"}, problems);
    const YamlNode* list = reader.require("cases");
    if (list != nullptr && check_sequence(*list, "cases", problems))
      for (const YamlNode& node : list->children) cases.push_back(read_case(node, problems));
  }
  if (!problems.none()) return problems.report();
  return cases;
}

Result<Cases> builtin_cases() {
  Cases all;
  std::string texts;
  std::set<std::string> ids;
  for (const CaseFile& file : kCaseFiles) {
    for (auto& one : TRY(parse_cases(std::string(file.text), "cases/" + std::string(file.name)))) {
      if (!ids.insert(one.id).second) return fault("read the cases: " + one.id + " stands twice");
      all.list.push_back(std::move(one));
    }
    texts += std::string(file.name) + "\n" + std::string(file.text);
  }
  all.sha256 = sha256_hex(texts);
  return all;
}

}  // namespace benchsand::conformance
