// What a caller is told when a call fails: one JSON object for --log, in words that say no more than is meant.
//
// dockerd, containerd, Podman and CRI-O look for phrases in a runtime's messages and make exit codes of them. "permission denied"
// somewhere in a refusal of ours would become 126, as if the user's program could not be executed. So every message is put into
// neutral words, unless the phrase is meant().
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace benchsand {

// {"level":"error","msg":…,"time":…} and a line feed; `time` is RFC 3339.
std::string runtime_error_line(const std::string& message, const std::string& time);

std::string runtime_error_text(const std::string& message, const std::string& time);  // the same for --log-format text

// --log and --log-format of a command line, also of one that is refused: its caller looks there for the reason.
struct LogPlace {
  std::string path;  // empty: none
  bool json = false;
};
LogPlace log_place(const std::vector<std::string>& arguments);

// Phrases that some caller looks for, in lower case; compared without regard to case.
std::vector<std::string_view> caller_phrases();
bool has_caller_phrase(std::string_view message);

// Keeps a phrase through neutral_wording(), which takes the marks away.
std::string meant(const std::string& phrase);
std::string neutral_wording(const std::string& message);

// The messages that callers wait for.
std::string unknown_container(const std::string& id);
std::string container_not_running(const std::string& id);

// A delegate's words are of the candidate's program, which it could not execute.
bool is_of_the_program(const std::string& said);
// What to do then; with the environment that the program was to have.
std::string program_cure(const std::vector<std::string>& env);

// What a delegate said, for a message. When it speaks of the candidate's program (not found, not executable), its words are
// meant: `docker run` and `docker exec` end with 127 and 126 by them.
std::string delegate_words(const std::string& said);

}  // namespace benchsand
