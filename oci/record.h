// The record: one JSON document with everything a verdict rests on. Keys are stable (docs/record.md).
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "oci/policy.h"
#include "oci/verdict.h"

namespace benchsand {

struct CollectedFile {
  std::string path;  // relative to the output
  std::uint64_t size = 0;
  std::string sha256;
  std::uint32_t mode = 0;  // permission bits; for who writes it elsewhere, and not in the record
};

struct RefusedFile {
  std::string path;
  std::string reason;
};

struct StreamFacts {
  std::uint64_t bytes = 0;  // written by the candidate
  std::uint64_t kept = 0;
  std::string sha256;  // of what was kept
};

struct DelegateFacts {
  std::string name, version, sha256;
};

// Of an engine's container. Its id and name are the engine's words: they say whose record this is, and nothing is judged by them.
struct ContainerFacts {
  std::string id, name;
  std::string root, bundle;  // the engine's --root and bundle
  std::string caller;        // the program that called the runtime
};

struct RunFacts {
  std::string id;
  std::string created;  // RFC 3339, UTC; an annotation, no duration is taken from it
  DelegateFacts delegate;
  std::string config_sha256;
  std::vector<CollectedFile> outputs;
  std::vector<RefusedFile> outputs_refused;
  std::uint64_t outputs_refused_more = 0;  // not listed
  StreamFacts stdout_stream, stderr_stream;
  nlohmann::json timeline;  // null: the profile wants none, or the candidate never started
  std::vector<RefusedCalls> refusals;
  std::uint64_t refusals_voided = 0;  // asked, and interrupted by a signal before the answer
  std::vector<std::string> notices;   // what the host saw that breaks no wall
  std::optional<ContainerFacts> container;
  nlohmann::json admission;  // of a container: {edits, refusals}
};

// `policy` may be null when the run failed before one was decided.
nlohmann::json make_record(const Policy& policy, const HostFacts& host, const RunFacts& run,
                           const std::vector<Rule>& rules, const Evidence& evidence, const End& end,
                           const Verdict& verdict);

// Sorted keys, no spaces, ASCII only, integers only: what the digest is taken over.
std::string canonical_json(const nlohmann::json& value);
// SHA-256 of the canonical JSON without the key `digest`.
std::string record_digest(const nlohmann::json& record);
// True when the record carries its own digest.
bool digest_matches(const nlohmann::json& record);

nlohmann::json policy_json(const Policy& policy);

// Any bytes as JSON text: valid UTF-8 stays, other bytes become \xNN, and a backslash is doubled, so that two names never look the same.
std::string printable(const std::string& bytes);

}  // namespace benchsand
