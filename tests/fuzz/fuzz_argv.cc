// Command lines, a word a line. What is accepted must be made of known words, be rebuilt to the same each time, and reach a
// delegate with nothing that could take a wall down.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "oci/runtime_args.h"
#include "oci/runtime_error.h"

using namespace benchsand;

namespace {

void must(bool holds) {
  if (!holds) std::abort();
}

std::vector<std::string> lines(const std::uint8_t* data, std::size_t size) {
  std::vector<std::string> words(1);
  for (std::size_t i = 0; i < size; ++i) {
    if (data[i] == '\n')
      words.emplace_back();
    else
      words.back() += static_cast<char>(data[i]);
  }
  return words;
}

bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

void behind_walls(const RuntimeCall& call) {
  must(!call.no_pivot && !call.regex && call.cgroup.empty());
  must(call.config.empty() || call.config == "config.json");
  must(call.preserve_fds.find_first_not_of('0') == std::string::npos);
  must(call.id.find('/') == std::string::npos && call.id != "..");
  const DelegatePlaces places{"crun", "/s", "r1", "/l", "/b", "/p", "", "/f", "/u"};
  const auto words = delegate_arguments(call, places);
  for (const char* never : {"--config", "--no-pivot", "--preserve-fds", "--regex", "--systemd-cgroup", "--cgroup",
                            "--no-new-keyring", "--env", "--cap", "--user"})
    must(!has(words, never));
  // Every word that the caller chose and that is a place is gone.
  must(has(words, "/s"));
  if (!call.id.empty()) must(has(words, "r1"));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto words = lines(data, size);
  const auto place = log_place(words);
  must(place.path.size() <= size);
  const auto call = parse_runtime_call(words);
  if (!call) {
    must(call.error().kind == Error::Kind::usage && call.error().message.find('\n') == std::string::npos);
    must(!has_caller_phrase(neutral_wording(call.error().message)));
  } else if (call->verb != RuntimeVerb::help && call->verb != RuntimeVerb::version && !call->help) {
    behind_walls(*call);
  }
  if (const auto passed = parse_runtime_call(words, ArgumentRules::passthrough)) {
    const auto once = passthrough_arguments(*passed, "crun");
    const auto again = parse_runtime_call(once, ArgumentRules::passthrough);
    must(again.has_value());
    must(passthrough_arguments(*again, "crun") == once);
  } else {
    must(!call.has_value());  // the delegate's own rules are the wider ones
  }
  return 0;
}
