// The rules by which an image is looked over.
#include "oci/image_lint.h"

#include <doctest/doctest.h>

using namespace benchsand;

namespace {

const std::string kHead(40, '1'), kAfter(40, '2'), kZero(40, '0');

GitFacts repository(const std::string& head_text) {
  GitFacts facts{"/repo/.git", "", {}};
  note_git_file(facts, "packed-refs",
                "# pack-refs with: peeled fully-peeled sorted\n" + kHead + " refs/heads/main\n" + kAfter +
                    " refs/tags/annotated\n^" + kHead + "\n");
  settle_git_head(facts, head_text);
  return facts;
}

}  // namespace

TEST_CASE("a secret is one by its name and by what it begins with") {
  const std::string key = "-----BEGIN OPENSSH PRIVATE KEY-----\n";
  CHECK(is_secret("/root/.ssh/id_rsa", key));
  CHECK(is_secret("/srv/tls/server.key", "-----BEGIN PRIVATE KEY-----"));
  CHECK(is_secret("/x.pem", "Bag\n-----BEGIN RSA PRIVATE KEY-----"));
  CHECK_FALSE(is_secret("/etc/ssl/certs/ca.pem", "-----BEGIN CERTIFICATE-----"));
  CHECK_FALSE(is_secret("/root/.ssh/id_rsa.pub", key));
  CHECK_FALSE(is_secret("/root/.ssh/id_rsa", ""));
  CHECK(is_secret("/srv/.netrc", "machine example.org login a password b"));
  CHECK(is_secret("/root/.aws/credentials", "[default]\naws_secret_access_key = x"));
  CHECK_FALSE(is_secret("/srv/aws/credentials", "aws_secret_access_key = x"));
  CHECK(is_secret("/root/.docker/config.json", R"({"auths": {"x": {"auth": "eDp5"}}})"));
  CHECK_FALSE(is_secret("/root/.docker/config.json", R"({"detachKeys": "x"})"));
  CHECK(is_secret("/app/.env", "TOKEN=1"));
  CHECK(is_secret("/root/.vault-token", "s.x"));
  CHECK_FALSE(is_secret("/root/.vault-token", ""));
  CHECK_FALSE(may_be_secret("/usr/bin/env"));
  CHECK(is_engine_socket("/var/run/docker.sock"));
  CHECK_FALSE(is_engine_socket("/usr/share/doc/docker.sock.md"));
}

TEST_CASE("a repository that knows HEAD alone is not told of") {
  for (const std::string& head : {std::string("ref: refs/heads/main\n"), kHead + "\n"}) {
    const auto facts = repository(head);
    CHECK(facts.head == kHead);
    CHECK(beyond_head(facts).empty());
  }
}

TEST_CASE("whatever names another commit than HEAD is told of") {
  auto facts = repository("ref: refs/heads/main\n");
  note_git_file(facts, "refs/remotes/origin/dev", kAfter + "\n");
  note_git_file(facts, "ORIG_HEAD", kAfter + "\n");
  note_git_file(facts, "logs/HEAD",
                kZero + " " + kHead + " A <a> 1 +0\tclone\n" + kHead + " " + kAfter + " A <a> 1 +0\treset\n");
  note_git_file(facts, "logs/refs/heads/main", kZero + " " + kHead + " A <a> 1 +0\tclone\n");
  note_git_file(facts, "FETCH_HEAD", kAfter + "\t\tbranch 'dev' of x\n");
  CHECK(beyond_head(facts) ==
        std::vector<std::string>{"refs/remotes/origin/dev", "ORIG_HEAD", "logs/HEAD", "FETCH_HEAD"});
  // A loose ref is newer than a packed one.
  auto moved = repository(kHead);
  note_git_file(moved, "refs/heads/main", kAfter + "\n");
  settle_git_head(moved, "ref: refs/heads/main\n");
  CHECK(moved.head == kAfter);
  CHECK(beyond_head(moved) == std::vector<std::string>{"refs/heads/main", "refs/tags/annotated"});
  // A HEAD that nothing can be said of.
  CHECK(beyond_head(repository("ref: refs/heads/none\n")).size() == 2);
  GitFacts garbage{"/r", "", {}};
  note_git_file(garbage, "packed-refs", "^" + kHead + "\nno hash\n" + kHead + "\n \n");
  note_git_file(garbage, "logs/HEAD", " \n\t\n" + kHead);
  settle_git_head(garbage, "");
  CHECK(beyond_head(garbage).size() <= 1);
}

TEST_CASE("notices name the first few of each kind") {
  LintFindings findings;
  CHECK(lint_notices(findings).empty());
  for (int i = 0; i < 6; ++i) findings.secrets.add("/k" + std::to_string(i));
  findings.engine_sockets.add("/docker.sock");
  findings.set_user_id.add("/bin/su");
  findings.repositories.push_back({"/repo/.git", kHead, {{"refs/heads/dev", kAfter}, {"refs/heads/main", kHead}}});
  findings.cut_short = true;
  CHECK(lint_notices(findings) ==
        std::vector<std::string>{
            "image: the history in \"/repo/.git\" may reach beyond HEAD, where answers are: \"refs/heads/dev\"",
            "image: looks like a secret: \"/k0\", \"/k1\", \"/k2\", \"/k3\" and 2 more",
            "image: an engine's socket has its place here: \"/docker.sock\"",
            "image: set-user-ID programs are without effect: \"/bin/su\"",
            "image: it is too large to be looked over for histories and secrets in full"});
}
