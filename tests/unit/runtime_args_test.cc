#include "oci/runtime_args.h"

#include <doctest/doctest.h>

#include <sstream>

#include "oci/runtime_flags.h"

using namespace benchsand;

namespace {

using Words = std::vector<std::string>;

Words split(const std::string& text) {
  std::istringstream stream(text);
  Words words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

std::string joined(const Words& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

RuntimeCall parsed(const std::string& text, ArgumentRules rules = ArgumentRules::walls) {
  CAPTURE(text);
  const auto call = parse_runtime_call(split(text), rules);
  REQUIRE_MESSAGE(call.has_value(), (call ? "" : call.error().message));
  return *call;
}

std::string refusal(const Words& words) {
  const auto call = parse_runtime_call(words);
  REQUIRE_FALSE(call.has_value());
  CHECK(call.error().kind == Error::Kind::usage);
  return call.error().message;
}

std::string canonical(const std::string& text, const std::string& delegate) {
  return joined(passthrough_arguments(parsed(text, ArgumentRules::passthrough), delegate));
}

}  // namespace

TEST_CASE("the calls of every caller, as they are written, and as crun gets them") {
  struct Row {
    const char *caller, *call, *crun;
  };
  const Row rows[] = {
      {"containerd 1.6 create",
       "--root /run/containerd/runc/k8s.io --log /b/log.json --log-format json --systemd-cgroup create --bundle /b "
       "--pid-file /b/init.pid c1",
       "--root /run/containerd/runc/k8s.io --log /b/log.json --log-format json --systemd-cgroup create --bundle /b "
       "--pid-file /b/init.pid c1"},
      {"containerd 1.6 with criu and rootless",
       "--root /r --log /b/log.json --log-format json --criu /usr/sbin/criu --rootless=false start c1",
       "--root /r --log /b/log.json --log-format json --rootless false start c1"},
      {"containerd 2 create", "--root /r create --bundle /b --pid-file /b/p --pidfd-socket /b/s --no-new-keyring c1",
       "--root /r create --bundle /b --pid-file /b/p --pidfd-socket /b/s --no-new-keyring c1"},
      {"containerd exec", "--root /r exec --process /tmp/p --console-socket /s --detach --pid-file /b/e.pid c1",
       "--root /r exec --pid-file /b/e.pid --console-socket /s --detach --process /tmp/p c1"},
      {"containerd update", "--root /r update --resources=- c1", "--root /r update --resources - c1"},
      {"containerd restore", "--root /r restore -no-subreaper --image-path /i --work-path /w --bundle /b c1",
       "--root /r restore --bundle /b --no-subreaper --image-path /i --work-path /w c1"},
      {"containerd kill", "--root /r kill --all c1 9", "--root /r kill --all c1 9"},
      {"containerd ps", "--root /r ps --format json c1", "--root /r ps --format json c1"},
      {"containerd events", "--root /r events --stats c1", "--root /r events --stats c1"},
      {"dockerd delete", "--root /run/docker/runtime-runc/moby --log /l --log-format json delete --force c1",
       "--root /run/docker/runtime-runc/moby --log /l --log-format json delete --force c1"},
      {"conmon create", "--systemd-cgroup create --bundle /b --pid-file /b/pidfile --console-socket /s/sock c1",
       "--systemd-cgroup create --bundle /b --pid-file /b/pidfile --console-socket /s/sock c1"},
      {"conmon exec", "exec --pid-file /e/p --process /e/process --detach --preserve-fds 0 c1",
       "exec --pid-file /e/p --preserve-fds 0 --detach --process /e/process c1"},
      {"podman log", "--log-format=json --log /oci-log create --bundle /b --pid-file /p c1",
       "--log /oci-log --log-format json create --bundle /b --pid-file /p c1"},
      {"podman kill", "kill --all c1 15", "kill --all c1 15"},
      {"podman checkpoint probe", "checkpoint --help", "checkpoint --help"},
      {"cri-o update", "--root /r update --resources - c1", "--root /r update --resources - c1"},
      {"cri-o state", "--root=/run/runc --systemd-cgroup state c1", "--root /run/runc --systemd-cgroup state c1"},
      {"buildah create", "create --bundle /b --pid-file /b/pid b1", "create --bundle /b --pid-file /b/pid b1"},
      {"by hand, short", "run -d -b /b c1", "run --bundle /b --detach c1"},
      {"by hand, exec", "exec -t -e A=1 -e B=2 -u 0:0 -c CAP_X c1 sh -c ls --all",
       "exec --env A=1 --env B=2 --tty --user 0:0 --cap CAP_X c1 sh -c ls --all"},
      {"by hand, update", "update --memory 1g --memory-swap -1 --pids-limit=0 c1",
       "update --memory 1g --memory-swap -1 --pids-limit 0 c1"},
      {"crun's test-suite", "--cgroup-manager cgroupfs --root /r run --config config.json c1",
       "--root /r --cgroup-manager cgroupfs run --bundle . --config config.json c1"},
      {"a list", "list -q -f json", "list --format json --quiet"},
      {"true and false", "delete --force=true c1", "delete --force c1"},
      {"false", "kill --all=false c1", "kill c1"},
      {"end of flags", "state -- c1", "state c1"},
      {"a flag behind the id", "kill c1 --all TERM", "kill --all c1 TERM"},
      {"bare rootless", "--rootless state c1", "--rootless true state c1"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.caller);
    CHECK(canonical(row.call, "crun") == row.crun);
    // What was rebuilt means the same, and is rebuilt the same.
    CHECK(canonical(row.crun, "crun") == row.crun);
  }
}

TEST_CASE("what only one delegate has is left out for the other") {
  CHECK(canonical("--criu /c --cgroup-manager cgroupfs state c", "runc") == "--criu /c state c");
  CHECK(canonical("--criu /c --cgroup-manager cgroupfs state c", "crun") == "--cgroup-manager cgroupfs state c");
}

TEST_CASE("a delegate gets the run's own places, and nothing of the caller's that could loosen a wall") {
  const auto call = parsed(
      "--debug --root /engine --log /engine.log --systemd-cgroup --rootless=true create --bundle /b --pid-file /p "
      "--console-socket /s --pidfd-socket /q --no-new-keyring --no-subreaper engine-id");
  const DelegatePlaces places{"crun", "/run/state", "r1", "/run/log", "/run/bundle", "", "", "", ""};
  CHECK(joined(delegate_arguments(call, places)) ==
        "--root /run/state --log /run/log --log-format json --cgroup-manager cgroupfs create --bundle /run/bundle "
        "--no-subreaper r1");
  const auto exec =
      parsed("exec -e A=1 --cap CAP_SYS_ADMIN --tty --user 0 --cwd / --apparmor x --process-label y c sh");
  CHECK(joined(delegate_arguments(exec, {"runc", "/s", "r1", "", "", "/pid", "/con", "/p.json", ""})) ==
        "--root /s exec --pid-file /pid --console-socket /con --process /p.json r1");
  const auto update = parsed("update --memory-swap -1 c");
  CHECK(joined(delegate_arguments(update, {"runc", "/s", "r1", "", "", "", "", "", "/limits"})) ==
        "--root /s update --resources /limits r1");
}

TEST_CASE("refused, with one line that says why") {
  struct Row {
    const char *call, *why;
  };
  const Row rows[] = {
      {"", "no verb was given; see --help"},
      {"frob c", "unknown verb 'frob'; the verbs are create start run"},
      {"mounts add c", "the verb mounts is refused: no mount is added to a container (wall mounts)"},
      {"--config x state c", "--config belongs after the verb"},
      {"create --root /r c", "--root belongs before the verb"},
      {"create --config x c", "flag --config is refused"},
      {"create -f x c", "flag --config is refused"},
      {"create --frob c", "unknown flag '--frob' of create"},
      {"--frob state c", "unknown flag '--frob' before the verb"},
      {"create --bund /b c", "'--bund' is an abbreviation of --bundle; write it out"},
      {"--log-f json state c", "'--log-f' is an abbreviation of --log-format; write it out"},
      {"kill --al c", "'--al' is an abbreviation of --all; write it out"},
      {"create -b/b c", "unknown flag '-b/b' of create"},
      {"create", "create needs the id of a container"},
      {"state a b", "state takes one id; 'b' is a word too many"},
      {"kill a 9 9", "kill takes one id; '9' is a word too many"},
      {"list a", "list takes no id, but 'a' was given"},
      {"state a/b", "the id 'a/b' is not made of"},
      {"state ..", "the id '..' is not made of"},
      {"state -- -x", "the id '-x' is not made of A-Z a-z 0-9 _ . + - alone, or begins with a '-'"},
      {"create --bundle /a --bundle /b c", "flag --bundle was given twice, as '/a' and '/b'"},
      {"create -b /a --bundle=/b c", "flag --bundle was given twice, as '/a' and '/b'"},
      {"delete --force --force=false c", "flag --force was given twice, as 'true' and 'false'"},
      {"delete --force=yes c", "flag --force is true or false, not 'yes'"},
      {"create --preserve-fds 1 c", "flag --preserve-fds 1 is refused: no descriptor is inherited (wall privileges)"},
      {"create --preserve-fds x c", "flag --preserve-fds is a number, not 'x'"},
      {"create --preserve-fds -1 c", "flag --preserve-fds is a number, not '-1'"},
      {"create --no-pivot c", "flag --no-pivot is refused: the host's mounts would stay reachable (wall mounts)"},
      {"exec --cgroup x c sh", "flag --cgroup is refused"},
      {"kill --regex c.*", "flag --regex is refused"},
      {"create c --bundle", "flag --bundle has no value"},
      {"restore --lsm-mount-context", "flag --lsm-mount-context has no value"},
      {"--rootless=yes state c", "flag --rootless is true, false or auto, not 'yes'"},
      {"kill -- c -9", "'-9' is not a signal"},
      {"-- state c", "'--' stands before the verb"},
      {"--log-format xml state c", "flag --log-format is text or json, not 'xml'"},
      {"ps --format yaml c", "flag --format is table or json, not 'yaml'"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.call);
    const std::string message = refusal(split(row.call));
    CAPTURE(message);
    CHECK(message.starts_with(std::string("read the command line: ") + row.why));
    CHECK(message.find('\n') == std::string::npos);
  }
  CHECK(refusal({"state", ""}) == "read the command line: the id of the container is empty");
  CHECK(refusal({"state", std::string(1025, 'a')}) ==
        "read the command line: the id of the container is longer than 1024 bytes");
  CHECK(refusal({"state", "a\nb"}).find("'a?b'") != std::string::npos);
  CHECK(refusal({"state", std::string("a\0b", 3)}) == "read the command line: a word with a NUL in it");
  CHECK(refusal(Words(5000, "state")) == "read the command line: more than 4096 words");
  CHECK(parsed("state " + std::string(1024, 'a')).id.size() == 1024);
}

TEST_CASE("a flag may be given again with the same value, and a list with another") {
  CHECK(parsed("create --bundle /b -b /b c").bundle == "/b");
  CHECK(parsed("create --config config.json c").id == "c");  // what is read anyway
  CHECK(refusal(split("create --config ./config.json c")).find("--config is refused") != std::string::npos);
  CHECK(parsed("exec -e A=1 --env=A=2 c sh").environment == Words{"A=1", "A=2"});
}

TEST_CASE("every flag of the table: each form of it, for each of its verbs, is parsed, rebuilt and parsed again") {
  for (const auto& verb : runtime_verbs()) {
    for (const auto& row : runtime_flags()) {
      if (!(row.verbs & (only(verb.verb) | kBeforeVerb))) continue;
      CAPTURE(verb.name);
      CAPTURE(row.name);
      const std::string name(row.name);
      const std::string value = name == "log-format"     ? "json"
                                : name == "format"       ? "table"
                                : name == "preserve-fds" ? "3"
                                                         : "auto";
      std::vector<Words> forms = {{"--" + name}, {"-" + name}};
      if (takes_value(row)) forms = {{"--" + name, value}, {"--" + name + "=" + value}, {"-" + name + "=" + value}};
      if (row.letter && takes_value(row)) forms.push_back({"-" + std::string(row.letter), value});
      if (row.letter && !takes_value(row)) forms.push_back({"-" + std::string(row.letter)});
      std::string first;
      for (const auto& form : forms) {
        Words words = form;
        words.insert(row.verbs == kBeforeVerb ? words.end() : words.begin(), verb.name);
        if (verb.takes_id) words.push_back("c");
        CAPTURE(joined(words));
        const auto call = parse_runtime_call(words, ArgumentRules::passthrough);
        REQUIRE_MESSAGE(call.has_value(), (call ? "" : call.error().message));
        const std::string rebuilt = joined(passthrough_arguments(*call, row.delegate ? row.delegate : "crun"));
        CHECK(rebuilt.find("--" + name + (takes_value(row) ? " " + value : "")) != std::string::npos);
        if (first.empty()) first = rebuilt;
        CHECK(rebuilt == first);
      }
    }
  }
}

TEST_CASE("help and version") {
  for (const char* word : {"--help", "-h", "-?", "help"}) CHECK(parsed(word).verb == RuntimeVerb::help);
  for (const char* word : {"--version", "-v", "-V"}) CHECK(parsed(word).verb == RuntimeVerb::version);
  CHECK(parsed("--root /r --version").verb == RuntimeVerb::version);
  CHECK(parsed("create --help").help);
  // Of the command inside, not of exec.
  CHECK_FALSE(parsed("exec c ls --help").help);
  CHECK(parsed("ps c -ef").command == Words{"-ef"});
  CHECK(parsed("exec c ls -- --help").command == Words{"ls", "--", "--help"});
  for (const auto& verb : runtime_verbs()) {
    CHECK(runtime_help().find(std::string("\n  ") + verb.name + " ") != std::string::npos);
    const std::string help = runtime_help(verb.verb);
    for (const auto& row : runtime_flags()) {
      CAPTURE(row.name);
      if (row.verbs & only(verb.verb)) CHECK(help.find(std::string("--") + row.name) != std::string::npos);
    }
  }
}

TEST_CASE("no two flags of one verb have one name") {
  for (const auto& a : runtime_flags())
    for (const auto& b : runtime_flags()) {
      if (&a == &b || !(a.verbs & b.verbs)) continue;
      CAPTURE(a.name);
      CHECK(std::string(a.name) != b.name);
      CHECK_FALSE((a.letter && b.letter && std::string(a.letter) == b.letter));
    }
}

TEST_CASE("a pattern of every container is refused, by whatever rules") {
  for (const auto rules : {ArgumentRules::walls, ArgumentRules::passthrough})
    for (const char* flag : {"-r", "--regex"}) {
      const auto call = parse_runtime_call({"delete", flag, ""}, rules);
      REQUIRE_FALSE(call);
      CHECK(call.error().message ==
            "read the command line: the pattern of --regex is empty: it would be every container");
    }
}
