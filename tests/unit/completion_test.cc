#include "oci/completion.h"

#include <doctest/doctest.h>

#include <string>

using namespace benchsand;

namespace {

CommandTree sample() {
  CommandTree run{"run", "run it: all", {}, {}, {}};
  run.options = {{"--engine", "who's who [1]", true, {"crun", "runc"}, false},
                 {"--profile", "a name", true, {"strict"}, true},
                 {"--out", "where", true, {}, true},
                 {"--json", "alone", false, {}, false}};
  run.positionals = {{"TASK", "", true, {}, true}};
  CommandTree install{"install", "make known", {}, {{"ENGINE", "", true, {"docker", "podman"}, false}}, {}};
  return {"tool", "", {{"--version", "its version", false, {}, false}}, {}, {run, install}};
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a completion for each shell") {
  const std::string bash = *completion(sample(), "bash"), zsh = *completion(sample(), "zsh"),
                    fish = *completion(sample(), "fish");
  CHECK(has(bash, "      run|install) command=$word; break ;;\n"));
  CHECK(has(bash, "    run:--engine) words='crun runc' ;;\n"));
  CHECK(has(bash, "    run:-*) words='--engine --profile --out --json' ;;\n"));
  CHECK(has(bash, "    install:*) words='docker podman' ;;\n"));
  CHECK(has(bash, "    :*) words='run install' ;;\n"));
  CHECK_FALSE(has(bash, "run:--json)"));
  CHECK(has(zsh, "'--engine[who'\\''s who \\[1\\]]:engine:(crun runc)'"));
  CHECK(has(zsh, "    'run:run it: all'\n"));
  CHECK(has(zsh, "'--out[where]:out:_files'"));
  CHECK(has(zsh, "':ENGINE:(docker podman)'"));
  CHECK(has(fish,
            "complete -c tool -n '__fish_seen_subcommand_from run' -l engine -x -a 'crun runc' -d 'who'\\''s who "
            "[1]'\n"));
  CHECK(has(fish, "-l profile -r -a 'strict' -d 'a name'\n"));
  CHECK(has(fish, "complete -c tool -n '__fish_seen_subcommand_from install' -f -a 'docker podman'\n"));
}

TEST_CASE("a command of commands is completed as one") {
  CommandTree tree = sample();
  const CommandTree ls{"ls", "list", {{"--engine", "of", true, {"docker"}, false}}, {}, {}};
  const CommandTree rm{
      "rm", "remove", {{"--engine", "of", true, {"docker"}, false}, {"--old", "", false, {}, false}}, {}, {}};
  tree.commands.push_back({"image", "images", {}, {}, {ls, rm}});
  CHECK(has(*completion(tree, "bash"), "    image:-*) words='--engine --old' ;;\n"));
  CHECK(has(*completion(tree, "bash"), "    image:*) words='ls rm' ;;\n"));
  CHECK(has(*completion(tree, "bash"), "    image:--engine) words='docker' ;;\n"));
  CHECK(has(*completion(tree, "zsh"), "':COMMAND:(ls rm)'"));
  CHECK(has(*completion(tree, "fish"), "complete -c tool -n '__fish_seen_subcommand_from image' -f -a 'ls rm'\n"));
}

TEST_CASE("a shell that has no completion") {
  const auto none = completion(sample(), "csh");
  REQUIRE_FALSE(none);
  CHECK(none.error().message == "make a completion for csh: the shells are bash, zsh and fish");
}
