// The cases of the suite: data (cases/*.yaml, built in), parsed. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "oci/policy.h"
#include "oci/relaxation.h"
#include "oci/result.h"
#include "oci/task_spec.h"

namespace benchsand::conformance {

// What the host must have seen of its sandbox: "spent/output/bytes_used = 67108864" of the record's evidence, "end/cause = memory",
// "stderr/kept <= 1048576", "outputs/NAME = absent" or `present`, "refused/NAME = REASON" of what was not taken,
// "sink/connections >= 1" (sink.h); of calls that the ledger has refused "refusals/socket AF_INET >= 1". Numbers, or texts for `=`.
struct HostFact {
  enum class Relation { equals, at_least, at_most };
  std::string place;
  Relation relation = Relation::equals;
  std::string value;
};

struct Control {
  std::vector<Relaxation> down;
  std::vector<Setting> limits;     // other ones, instead of a wall that is down
  bool grant = false;              // the planted file is an input
  std::vector<std::string> verbs;  // other attempts than the case's, which shows itself what is looked for
  std::vector<HostFact> host;      // what the host must see then
  std::vector<std::string> then;   // outcomes that show that it can be done: flipped
};

struct Case {
  std::string id, wall, attempt, asserts;
  unsigned check = 0;                         // one of the ten, or 0
  std::string verb;                           // with arguments, as the probe takes it; {planted} is the planted file
  std::string program;                        // whose command line the verb is; its root file system is the user's
  std::map<std::string, std::string> expect;  // outcome by delegate or by cgroup layout, or by "" where they agree
  std::string layer;                          // who refuses
  std::string ledger;                         // "CALL" or "CALL ARGUMENT", refused and counted once; empty: not counted
  bool limit = false;                         // what benchsand does not claim to stop
  bool alone = false;                         // in a sandbox of its own, which it may break
  bool planted = false;                       // reads the planted file
  std::vector<Setting> limits;                // other ones than the profile's, of who is alone
  std::vector<Relaxation> behind;  // walls that are down from the start: what refuses has to stand without them
  std::string shown;               // a word of the detail that must be there, e.g. "bytes=67108864"
  std::vector<HostFact> host;
  Control control;
  // What makes it inapplicable, and why: an outcome of the control, or a host fact of it, "sink/ipv6 = no".
  std::map<std::string, std::string> if_control;
  // Of a built-in profile whose filter lets it through: "OUTCOME by LAYER", who refuses it then, or "OUTCOME": nobody does.
  std::map<std::string, std::string> in_profile;
  std::string allowed_by;  // that profile, where nobody refuses

  const std::string& expected_of(const HostFacts& facts) const;
};

// "PLACE = VALUE" or with >= or <=; nothing: it is none.
std::optional<HostFact> host_fact(const std::string& line);

// What the case expects under the profile of that name.
Case for_profile(Case one, const std::string& profile);

// Kind usage, with the place in the file `name`.
Result<std::vector<Case>> parse_cases(const std::string& text, const std::string& name);

struct CaseFile {
  std::string_view name, text;
};
extern const std::span<const CaseFile> kCaseFiles;  // CMakeLists.txt generates the table

struct Cases {
  std::vector<Case> list;  // in the order of the files; ids are unique
  std::string sha256;      // over all files
};
Result<Cases> builtin_cases();

}  // namespace benchsand::conformance
