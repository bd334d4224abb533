#include "oci/image_lint.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include "oci/yaml_tree.h"

namespace benchsand {

namespace {

constexpr std::size_t kMostNamed = 4, kMostRepositories = 4;

enum class Match { name, suffix, path };

// A file is one when its name matches and one of the texts stands in its first bytes; no text: whatever it holds.
struct SecretRule {
  Match match;
  std::string_view name;
  std::array<std::string_view, 2> texts;
};
constexpr SecretRule kSecrets[] = {
    {Match::name, "id_rsa", {"PRIVATE KEY-----", ""}},
    {Match::name, "id_dsa", {"PRIVATE KEY-----", ""}},
    {Match::name, "id_ecdsa", {"PRIVATE KEY-----", ""}},
    {Match::name, "id_ed25519", {"PRIVATE KEY-----", ""}},
    {Match::suffix, ".pem", {"PRIVATE KEY-----", ""}},
    {Match::suffix, ".key", {"PRIVATE KEY-----", ""}},
    {Match::name, ".netrc", {"machine", "default"}},
    {Match::name, ".git-credentials", {"://", ""}},
    {Match::name, ".env", {"=", ""}},
    {Match::name, ".pgpass", {":", ""}},
    {Match::name, ".npmrc", {"_authToken", "_password"}},
    {Match::name, ".pypirc", {"password", ""}},
    {Match::name, ".vault-token", {"", ""}},
    {Match::name, "application_default_credentials.json", {"private_key", "refresh_token"}},
    {Match::path, "/.aws/credentials", {"aws_secret_access_key", "aws_session_token"}},
    {Match::path, "/.docker/config.json", {"\"auth\"", "\"identitytoken\""}},
    {Match::path, "/.kube/config", {"client-key-data", "token:"}},
};
constexpr std::array<std::string_view, 4> kEngineSockets{"docker.sock", "containerd.sock", "podman.sock", "crio.sock"};

std::string_view last_part(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

bool matches(const SecretRule& rule, std::string_view path) {
  switch (rule.match) {
    case Match::name:
      return last_part(path) == rule.name;
    case Match::suffix:
      return path.ends_with(rule.name);
    case Match::path:
      return path.ends_with(rule.name);
  }
  std::abort();  // not a value of the enumeration
}

bool holds(const SecretRule& rule, std::string_view head) {
  if (head.empty()) return false;
  return std::any_of(
             rule.texts.begin(), rule.texts.end(),
             [&](std::string_view text) { return !text.empty() && head.find(text) != std::string_view::npos; }) ||
         rule.texts[0].empty();
}

bool is_hash(std::string_view text) {
  return (text.size() == 40 || text.size() == 64) &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos &&
         text.find_first_not_of('0') != std::string_view::npos;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string_view word(std::string_view line, std::size_t index) {
  for (; index > 0; --index) line.remove_prefix(std::min(line.find(' '), line.size() - 1) + 1);
  return line.substr(0, line.find(' '));
}

// "HASH NAME", and below a tag's "^HASH", the commit that it is of.
void note_packed(GitFacts& facts, std::string_view text) {
  for (const auto line : lines_of(text)) {
    if (line.starts_with('^') && is_hash(line.substr(1)) && !facts.names.empty())
      facts.names.back().second = std::string(line.substr(1));
    else if (const auto hash = word(line, 0); is_hash(hash) && hash.size() < line.size())
      facts.names.emplace_back(line.substr(hash.size() + 1), hash);
  }
}

}  // namespace

bool may_be_secret(const std::string& path) {
  return std::any_of(std::begin(kSecrets), std::end(kSecrets), [&](const auto& rule) { return matches(rule, path); });
}

bool is_secret(const std::string& path, const std::string& head) {
  return std::any_of(std::begin(kSecrets), std::end(kSecrets),
                     [&](const auto& rule) { return matches(rule, path) && holds(rule, head); });
}

bool is_engine_socket(const std::string& path) {
  return std::find(kEngineSockets.begin(), kEngineSockets.end(), last_part(path)) != kEngineSockets.end();
}

void note_git_file(GitFacts& facts, const std::string& at, const std::string& text) {
  if (at == "packed-refs") return note_packed(facts, text);
  const bool log = at.starts_with("logs/");
  // A line of a reflog is "OLD NEW WHO …".
  for (const auto line : lines_of(text))
    if (const auto hash = word(line, log ? 1 : 0); is_hash(hash.substr(0, hash.find('\t'))))
      facts.names.emplace_back(at, hash.substr(0, hash.find('\t')));
}

void settle_git_head(GitFacts& facts, const std::string& head_text) {
  const auto lines = lines_of(head_text);
  if (lines.empty()) return;
  if (is_hash(lines[0])) facts.head = std::string(lines[0]);
  if (!lines[0].starts_with("ref: ")) return;
  const std::string_view name = lines[0].substr(5);
  // A loose ref is newer than one in packed-refs; it was noted after it.
  for (const auto& [ref, hash] : facts.names)
    if (ref == name) facts.head = hash;
}

std::vector<std::string> beyond_head(const GitFacts& facts) {
  std::vector<std::string> names;
  for (const auto& [name, hash] : facts.names)
    if (hash != facts.head && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  return names;
}

void Named::add(const std::string& path) {
  if (++count <= kMostNamed) first.push_back(path);
}

std::string to_text(const Named& named) {
  std::string text;
  for (const auto& name : named.first) text += (text.empty() ? "" : ", ") + in_quotes(name);
  return named.count > named.first.size() ? text + " and " + std::to_string(named.count - named.first.size()) + " more"
                                          : text;
}

std::vector<std::string> lint_notices(const LintFindings& findings) {
  std::vector<std::string> notices;
  const auto note = [&](const std::string& what, const Named& named) {
    if (named.count > 0) notices.push_back("image: " + what + ": " + to_text(named));
  };
  Named repositories;
  for (const auto& facts : findings.repositories) {
    Named names;
    for (const auto& name : beyond_head(facts)) names.add(name);
    if (names.count == 0) continue;
    repositories.add(facts.path);
    if (repositories.count <= kMostRepositories)
      notices.push_back("image: the history in " + in_quotes(facts.path) +
                        " may reach beyond HEAD, where answers are: " + to_text(names));
  }
  if (repositories.count > kMostRepositories) note("histories may reach beyond HEAD", repositories);
  note("looks like a secret", findings.secrets);
  note("an engine's socket has its place here", findings.engine_sockets);
  note("set-user-ID programs are without effect", findings.set_user_id);
  if (findings.cut_short)
    notices.push_back("image: it is too large to be looked over for histories and secrets in full");
  return notices;
}

}  // namespace benchsand
