// What its author may not have meant to be in an image: commits after the one that is to be solved, secrets, a way to the engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace benchsand {

inline constexpr std::size_t kLintHead = 1024;  // bytes of a file that are looked at

// By its name alone: worth looking into.
bool may_be_secret(const std::string& path);
// With the first bytes of its content.
bool is_secret(const std::string& path, const std::string& head);
bool is_engine_socket(const std::string& path);

// A repository: the commit that HEAD is, and all that other names in it are (refs, ORIG_HEAD, lines of reflogs).
struct GitFacts {
  std::string path;
  std::string head;  // empty: unknown
  std::vector<std::pair<std::string, std::string>> names;
};
// What a repository's files say. `at` is the file inside it; what is no hash there is left out.
void note_git_file(GitFacts& facts, const std::string& at, const std::string& text);
// The hash that HEAD is: its own text, or that of the ref that it names.
void settle_git_head(GitFacts& facts, const std::string& head_text);
// The names that are not HEAD's commit, each once. Some may lie before it: only its history could tell.
std::vector<std::string> beyond_head(const GitFacts& facts);

// A list that grows with an image: the first few, and how many there were.
struct Named {
  std::vector<std::string> first;
  std::uint64_t count = 0;
  void add(const std::string& path);
};
std::string to_text(const Named& named);

struct LintFindings {
  Named secrets, engine_sockets, set_user_id;
  std::vector<GitFacts> repositories;
  bool cut_short = false;  // there was more than could be looked at in time
};
std::vector<std::string> lint_notices(const LintFindings& findings);

}  // namespace benchsand
