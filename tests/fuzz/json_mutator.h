// Mutations of a JSON document that leave it one: a value taken from elsewhere or from a list of awkward ones, a key removed,
// doubled or written otherwise. Bytes changed at random hardly ever get past a parser.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace json_mutator {

using nlohmann::json;

inline const json& awkward(std::minstd_rand& random) {
  static const json kValues = {nullptr,
                               true,
                               false,
                               0,
                               1,
                               -1,
                               1.5,
                               1e300,
                               9223372036854775807,
                               18446744073709551615u,
                               -9223372036854775807,
                               "",
                               "/",
                               "..",
                               "/..",
                               "/proc",
                               "/sys/fs/cgroup",
                               "/dev/../proc",
                               "/output",
                               "/host/../..",
                               "rw",
                               "ro",
                               "rbind",
                               "bind",
                               "suid",
                               "dev",
                               "exec",
                               "shared",
                               "idmap",
                               "tmpfs",
                               "proc",
                               "cgroup",
                               "host",
                               "path",
                               "/proc/1/ns/net",
                               "CAP_SYS_ADMIN",
                               "SCMP_ACT_ALLOW",
                               "RLIMIT_NOFILE",
                               "RLIMIT_CORE",
                               "a\u0000b",
                               "\n",
                               "LD_PRELOAD=/x",
                               "PATH=",
                               "=",
                               "1.0.2",
                               "docker.sock",
                               "/var/run/docker.sock",
                               "unconfined",
                               "type",
                               "source",
                               "destination",
                               "options",
                               json::array(),
                               json::object(),
                               {"rw"},
                               {{"type", "network"}},
                               {{"type", "user"}},
                               {{"destination", "/x"}, {"type", "bind"}, {"source", "/"}, {"options", {"rbind", "rw"}}},
                               {{"type", "c"}, {"path", "/dev/kmsg"}, {"major", 1}, {"minor", 11}}};
  return kValues[random() % kValues.size()];
}

// Every node, the root first.
inline void collect(json& node, std::vector<json*>& nodes) {
  nodes.push_back(&node);
  if (node.is_structured())
    for (auto& child : node) collect(child, nodes);
}

inline std::string other_case(std::string key) {
  if (!key.empty()) key[0] = static_cast<char>(key[0] ^ 0x20);
  return key;
}

inline void mutate_once(json& document, std::minstd_rand& random) {
  std::vector<json*> nodes;
  collect(document, nodes);
  json& node = *nodes[random() % nodes.size()];
  if (random() % 3 != 0 || !node.is_structured() || node.empty()) {
    node = random() % 4 ? awkward(random) : json(*nodes[random() % nodes.size()]);
    return;
  }
  const auto at = std::next(node.begin(), static_cast<std::ptrdiff_t>(random() % node.size()));
  if (random() % 2) {
    node.erase(at);
  } else if (node.is_array()) {
    node.push_back(random() % 2 ? json(*at) : awkward(random));
  } else {
    const json value = random() % 2 ? json(at.value()) : awkward(random);
    node[random() % 2 ? other_case(at.key()) : at.key() + "x"] = value;
  }
}

inline std::size_t mutate(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  std::minstd_rand random(seed);
  auto document = json::parse(data, data + size, nullptr, false);
  if (document.is_discarded() || random() % 8 == 0) return LLVMFuzzerMutate(data, size, most);
  for (unsigned i = 0; i <= random() % 3; ++i) mutate_once(document, random);
  const std::string text = document.dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > most) return LLVMFuzzerMutate(data, size, most);
  std::memcpy(data, text.data(), text.size());
  return text.size();
}

}  // namespace json_mutator
