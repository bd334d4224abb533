#include "oci/runtime_error.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace benchsand {

namespace {

constexpr const char* kOfTheProgram[] = {"executable file", "open executable", "exec user process",
                                         "exec container process", "unable to start container process: exec: "};
constexpr char kMeantBegins = '\x01', kMeantEnds = '\x02';

struct Phrase {
  std::string_view callers, neutral;
};
// The longer of two that begin alike comes first. No neutral word may hold a phrase.
constexpr Phrase kPhrases[] = {
    {"no such file or directory", "it is not there"},                           // dockerd, Podman: 127
    {"no such file", "it is not there"},                                        // Podman: the container is gone
    {"no such process", "the process is gone"},                                 // containerd, CRI-O: has ended
    {"os: process already finished", "the process has ended"},                  // containerd: has ended
    {"system cannot find the file specified", "it is not there"},               // dockerd: 127
    {"executable file not found", "the program is not there"},                  // dockerd, Podman: 127
    {"open executable", "open the program"},                                    // Podman: 127
    {"failed to run runc create/exec call", "the call of the runtime failed"},  // dockerd: 127
    {"permission denied", "access was refused"},                                // dockerd, Podman: 126
    {"operation not permitted", "the kernel refused it"},                       // Podman: 126
    {"is a directory", "it is one folder"},                                     // dockerd: 126
    {"not a directory", "it is no folder"},                                     // dockerd: 127
    {"does not exist", "is not there"},                                         // all: the container is gone
    {"container not running", "the container has ended"},                       // containerd, CRI-O: has ended
    {"invalid process", "a process that is not valid"},                         // CRI-O: has ended
};

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::string lower(std::string_view text) {
  std::string small(text);
  std::transform(small.begin(), small.end(), small.begin(), [](char c) { return lower(c); });
  return small;
}

const Phrase* phrase_at(const std::string& small, std::size_t at) {
  for (const auto& phrase : kPhrases)
    if (small.compare(at, phrase.callers.size(), phrase.callers) == 0) return &phrase;
  return nullptr;
}

// A line feed would end a line of text that callers read, and a terminal acts on the other controls.
char printable(char c) {
  return static_cast<unsigned char>(c) < ' ' || c == '\x7f' ? ' ' : c;
}

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \n"), last = text.find_last_not_of(" \n");
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

}  // namespace

std::string runtime_error_line(const std::string& message, const std::string& time) {
  const nlohmann::json line = {{"level", "error"}, {"msg", message}, {"time", time}};
  return line.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string runtime_error_text(const std::string& message, const std::string& time) {
  return "time=" + nlohmann::json(time).dump() +
         " level=error msg=" + nlohmann::json(message).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) +
         "\n";
}

LogPlace log_place(const std::vector<std::string>& arguments) {
  LogPlace place;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (!word.starts_with("-")) break;  // the verb
    const auto equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const bool is_path = name == "--log" || name == "-log", is_format = name == "--log-format" || name == "-log-format";
    const bool has_next = equals == std::string::npos && i + 1 < arguments.size();
    const bool takes_next =
        is_path || is_format || name == "--root" || name == "-root" || name == "--criu" || name == "--cgroup-manager";
    const std::string value = equals != std::string::npos ? word.substr(equals + 1) : has_next ? arguments[i + 1] : "";
    if (is_path) place.path = value.starts_with("file:") ? value.substr(5) : value;
    if (is_format) place.json = value == "json";
    if (has_next && takes_next) ++i;
  }
  // crun's other kinds of log are none that a message could be appended to.
  if (place.path.starts_with("journald:") || place.path.starts_with("syslog:")) place.path.clear();
  return place;
}

std::vector<std::string_view> caller_phrases() {
  std::vector<std::string_view> phrases;
  for (const auto& phrase : kPhrases) phrases.push_back(phrase.callers);
  return phrases;
}

bool has_caller_phrase(std::string_view message) {
  const std::string small = lower(message);
  for (std::size_t at = 0; at < small.size(); ++at)
    if (phrase_at(small, at)) return true;
  return false;
}

std::string meant(const std::string& phrase) {
  return kMeantBegins + phrase + kMeantEnds;
}

std::string neutral_wording(const std::string& message) {
  const std::string small = lower(message);
  std::string words;
  bool is_meant = false;
  for (std::size_t at = 0; at < message.size();) {
    const char c = message[at];
    if (c == kMeantBegins || c == kMeantEnds) {
      is_meant = c == kMeantBegins;
      ++at;
      continue;
    }
    const Phrase* phrase = is_meant ? nullptr : phrase_at(small, at);
    if (phrase)
      words += phrase->neutral;
    else
      words += printable(c);
    at += phrase ? phrase->callers.size() : 1;
  }
  return words;
}

std::string unknown_container(const std::string& id) {
  return "container " + id + " " + meant("does not exist");
}

std::string container_not_running(const std::string& id) {
  return "container " + id + ": " + meant("container not running");
}

bool is_of_the_program(const std::string& said) {
  const std::string small = lower(said);
  return std::any_of(std::begin(kOfTheProgram), std::end(kOfTheProgram),
                     [&](const char* phrase) { return small.find(phrase) != std::string::npos; });
}

std::string program_cure(const std::vector<std::string>& env) {
  std::string path = "PATH";
  for (const auto& variable : env)
    if (variable.starts_with("PATH=")) path = variable;
  return " (cure: the program of the command has to be in the root file system, for anybody to execute; one without a "
         "slash is looked for along " +
         path + ")";
}

std::string delegate_words(const std::string& said) {
  std::string words;
  for (const char c : trimmed(said)) words += printable(c);
  const std::string small = lower(words);
  if (is_of_the_program(words)) {
    // docker's client looks for it as Go spells it; crun takes it from the C library.
    const std::string spelled = "no such file or directory";
    const std::size_t at = small.find(spelled);
    if (at != std::string::npos) words.replace(at, spelled.size(), spelled);
    return meant(words);
  }
  return words;
}

}  // namespace benchsand
