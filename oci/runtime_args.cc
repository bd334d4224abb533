#include "oci/runtime_args.h"

#include <string_view>

#include "oci/runtime_flags.h"

namespace benchsand {

namespace {

constexpr std::size_t kLongestId = 1024;
constexpr std::size_t kMostArguments = 4096;

std::unexpected<Error> bad(const std::string& what) {
  return usage("read the command line: " + what);
}

// What a caller wrote, for a message: cut, and without what a terminal or a log would act on.
std::string quoted(std::string_view text) {
  std::string shown = "'";
  for (const char c : text.substr(0, 60)) shown += c >= ' ' && c < 0x7f ? c : '?';
  return shown + (text.size() > 60 ? "…'" : "'");
}

std::string flag_text(const FlagRow& row) {
  return std::string("--") + row.name;
}

bool is_help(const std::string& word) {
  return word == "--help" || word == "-help" || word == "-h" || word == "-?" || word == "--usage";
}

bool is_version(const std::string& word) {
  return word == "--version" || word == "-version" || word == "-v" || word == "-V";
}

bool is_rootless_value(const std::string& text) {
  return text == "true" || text == "false" || text == "auto";
}

class Reader {
 public:
  Reader(const std::vector<std::string>& arguments, ArgumentRules rules) : arguments_(arguments), rules_(rules) {}

  Result<RuntimeCall> read() {
    TRY_VOID(read_before_verb());
    if (call_.verb == RuntimeVerb::help || call_.verb == RuntimeVerb::version) return call_;
    TRY_VOID(read_after_verb());
    if (call_.help) return call_;
    TRY_VOID(check_form());
    if (rules_ == ArgumentRules::walls) TRY_VOID(check_walls());
    return call_;
  }

 private:
  Result<void> read_before_verb();
  Result<void> read_after_verb();
  Result<void> read_flag(VerbSet verb);
  Result<const FlagRow*> find_flag(const std::string& word, const std::string& name, VerbSet verb) const;
  Result<void> store(const FlagRow& row, const std::string& value);
  Result<void> store_positional(const std::string& word);
  Result<void> check_form() const;
  Result<void> check_id() const;
  Result<void> check_walls() const;

  const std::vector<std::string>& arguments_;
  ArgumentRules rules_;
  std::size_t at_ = 0;
  RuntimeCall call_;
  std::map<std::string, std::string> given_;  // flags that may be given once
  const VerbRow* verb_ = nullptr;
  bool have_id_ = false;
};

const VerbRow* find_verb(const std::string& word) {
  for (const auto& row : runtime_verbs())
    if (word == row.name) return &row;
  return nullptr;
}

std::unexpected<Error> unknown_verb(const std::string& word) {
  if (word == "mounts") return bad("the verb mounts is refused: no mount is added to a container (wall mounts)");
  std::string names;
  for (const auto& row : runtime_verbs()) names += (names.empty() ? "" : " ") + std::string(row.name);
  return bad("unknown verb " + quoted(word) + "; the verbs are " + names);
}

Result<void> Reader::read_before_verb() {
  if (arguments_.size() > kMostArguments) return bad("more than 4096 words");
  for (const auto& word : arguments_)
    if (word.find('\0') != std::string::npos) return bad("a word with a NUL in it");
  while (at_ < arguments_.size()) {
    const std::string& word = arguments_[at_];
    if (is_help(word) || word == "help" || is_version(word)) {
      call_.verb = is_version(word) ? RuntimeVerb::version : RuntimeVerb::help;
      return {};
    }
    if (word == "--") return bad("'--' stands before the verb");
    if (word.size() > 1 && word[0] == '-') {
      TRY_VOID(read_flag(kBeforeVerb));
      continue;
    }
    verb_ = find_verb(word);
    if (!verb_) return unknown_verb(word);
    call_.verb = verb_->verb;
    ++at_;
    return {};
  }
  return bad("no verb was given; see --help");
}

Result<void> Reader::read_after_verb() {
  given_.clear();
  bool only_words = false;
  while (at_ < arguments_.size()) {
    const std::string& word = arguments_[at_];
    // What follows the id is the command, or options of ps, whatever it looks like.
    const bool in_command = have_id_ && (call_.verb == RuntimeVerb::exec || call_.verb == RuntimeVerb::ps);
    if (!only_words && !in_command && word == "--") {
      only_words = true;
      ++at_;
      continue;
    }
    if (!only_words && !in_command && is_help(word)) {
      call_.help = true;
      return {};
    }
    if (!only_words && !in_command && word.size() > 1 && word[0] == '-') {
      TRY_VOID(read_flag(only(call_.verb)));
      continue;
    }
    TRY_VOID(store_positional(word));
    ++at_;
  }
  return {};
}

// `--name`, `-name` (as Go's flag package has it) and `-n`; `=VALUE` or the next word.
Result<const FlagRow*> Reader::find_flag(const std::string& word, const std::string& name, VerbSet verb) const {
  const bool one_dash = !word.starts_with("--");
  for (const auto& row : runtime_flags())
    if ((row.verbs & verb) && (name == row.name || (one_dash && row.letter && name == row.letter))) return &row;
  for (const auto& row : runtime_flags()) {
    if (name.empty()) break;
    if (name == row.name && (row.verbs & kBeforeVerb)) return bad(flag_text(row) + " belongs before the verb");
    if (name == row.name && verb == kBeforeVerb) return bad(flag_text(row) + " belongs after the verb");
  }
  for (const auto& row : runtime_flags())
    if (!name.empty() && (row.verbs & verb) && std::string_view(row.name).starts_with(name))
      return bad(quoted(word) + " is an abbreviation of " + flag_text(row) + "; write it out");
  const std::string where = verb == kBeforeVerb ? "before the verb" : std::string("of ") + verb_->name;
  return bad("unknown flag " + quoted(word) + " " + where);
}

Result<bool> read_bool(const FlagRow& row, const std::string& text) {
  if (text == "true" || text == "1" || text == "t") return true;
  if (text == "false" || text == "0" || text == "f") return false;
  return bad("flag " + flag_text(row) + " is true or false, not " + quoted(text));
}

Result<void> Reader::read_flag(VerbSet verb) {
  const std::string& word = arguments_[at_++];
  const auto equals = word.find('=');
  const std::string flag = word.substr(0, equals);
  const FlagRow& row = *TRY(find_flag(flag, flag.substr(flag.starts_with("--") ? 2 : 1), verb));
  if (equals != std::string::npos) return store(row, word.substr(equals + 1));
  if (!takes_value(row)) return store(row, "true");
  // --rootless alone is one form of it.
  if (verb == kBeforeVerb && row.name == std::string_view("rootless") &&
      (at_ == arguments_.size() || !is_rootless_value(arguments_[at_])))
    return store(row, "true");
  if (at_ == arguments_.size()) return bad("flag " + flag_text(row) + " has no value");
  return store(row, arguments_[at_++]);
}

Result<void> Reader::store(const FlagRow& row, const std::string& value) {
  if (const auto* list = std::get_if<ListField>(&row.field)) {
    (call_.**list).push_back(value);
    return {};
  }
  std::string kept = value;
  const bool is_switch = !takes_value(row);
  if (is_switch) kept = TRY(read_bool(row, value)) ? "true" : "false";
  if (!is_switch && row.name == std::string_view("rootless") && !is_rootless_value(value))
    return bad("flag --rootless is true, false or auto, not " + quoted(value));
  const auto [first, is_new] = given_.emplace(row.name, kept);
  if (!is_new && first->second != kept)
    return bad("flag " + flag_text(row) + " was given twice, as " + quoted(first->second) + " and " + quoted(kept));
  if (const auto* text = std::get_if<TextField>(&row.field)) call_.** text = kept;
  if (const auto* flag = std::get_if<BoolField>(&row.field)) call_.** flag = kept == "true";
  if (const auto* map = std::get_if<MapField>(&row.field)) (call_.**map)[row.name] = kept;
  if (const auto* in_map = std::get_if<SwitchField>(&row.field); in_map && kept == "true")
    (call_.*in_map->map)[row.name] = "";
  return {};
}

Result<void> Reader::store_positional(const std::string& word) {
  if (!verb_->takes_id) return bad(std::string(verb_->name) + " takes no id, but " + quoted(word) + " was given");
  if (!have_id_) {
    call_.id = word;
    have_id_ = true;
    return {};
  }
  if (call_.verb == RuntimeVerb::kill && call_.signal.empty() && !word.empty()) {
    call_.signal = word;
    return {};
  }
  if (call_.verb == RuntimeVerb::exec || call_.verb == RuntimeVerb::ps) {
    call_.command.push_back(word);
    return {};
  }
  return bad(std::string(verb_->name) + " takes one id; " + quoted(word) + " is a word too many");
}

Result<void> Reader::check_id() const {
  if (!have_id_) return bad(std::string(verb_->name) + " needs the id of a container");
  if (call_.id.empty()) return bad("the id of the container is empty");
  if (call_.id.size() > kLongestId) return bad("the id of the container is longer than 1024 bytes");
  constexpr const char* kAllowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.+-";
  // `.` and `..` are other directories, and a leading `-` would be a flag to whoever gets it next.
  if (call_.id.find_first_not_of(kAllowed) != std::string::npos || call_.id == "." || call_.id == ".." ||
      call_.id[0] == '-')
    return bad("the id " + quoted(call_.id) + " is not made of A-Z a-z 0-9 _ . + - alone, or begins with a '-'");
  return {};
}

bool is_number(const std::string& text) {
  return !text.empty() && text.size() < 10 && text.find_first_not_of("0123456789") == std::string::npos;
}

Result<void> Reader::check_form() const {
  // With --regex it is a pattern, and no name.
  if (verb_->takes_id && !(call_.regex && have_id_)) TRY_VOID(check_id());
  if (call_.regex && call_.id.empty()) return bad("the pattern of --regex is empty: it would be every container");
  if (call_.signal.starts_with("-")) return bad(quoted(call_.signal) + " is not a signal");
  if (!call_.preserve_fds.empty() && !is_number(call_.preserve_fds))
    return bad("flag --preserve-fds is a number, not " + quoted(call_.preserve_fds));
  if (!call_.log_format.empty() && call_.log_format != "text" && call_.log_format != "json")
    return bad("flag --log-format is text or json, not " + quoted(call_.log_format));
  if (!call_.format.empty() && call_.format != "table" && call_.format != "json")
    return bad("flag --format is table or json, not " + quoted(call_.format));
  return {};
}

// What would take a wall down, whatever the rest says.
Result<void> Reader::check_walls() const {
  // By its usual name it is the file that is read anyway.
  if (!call_.config.empty() && call_.config != "config.json")
    return bad("flag --config is refused: the configuration is config.json of the bundle, and no other");
  if (call_.no_pivot) return bad("flag --no-pivot is refused: the host's mounts would stay reachable (wall mounts)");
  if (call_.preserve_fds.find_first_not_of('0') != std::string::npos)
    return bad("flag --preserve-fds " + call_.preserve_fds +
               " is refused: no descriptor is inherited (wall privileges)");
  if (call_.regex) return bad("flag --regex is refused: name one container");
  if (!call_.cgroup.empty()) return bad("flag --cgroup is refused: the container's cgroup is benchsand's own");
  return {};
}

}  // namespace

Result<RuntimeCall> parse_runtime_call(const std::vector<std::string>& arguments, ArgumentRules rules) {
  return Reader(arguments, rules).read();
}

}  // namespace benchsand
