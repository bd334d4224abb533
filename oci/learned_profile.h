// Learning a profile: a trusted program runs with every call notified, and what it called becomes the smallest profile it
// needs. Pure; shim/learn.cc runs the program.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "oci/ledger.h"
#include "oci/profile.h"

namespace benchsand {

// Rules under which everything is notified, but for what no learned profile grants anyhow: that is refused as a run under
// the profile would refuse it, so the program falls back now as it will later.
SeccompRules learning_rules(const SeccompRules& base);

// What a program called, by number, and with which values where the value decides.
class LearnedCalls {
 public:
  void saw(int call, const CallArguments& arguments);

  struct Use {
    std::uint64_t count = 0;
    std::map<std::uint64_t, std::uint64_t> values;  // of the deciding argument, with how often
  };
  const std::map<int, Use>& uses() const { return uses_; }
  std::uint64_t total() const;

 private:
  std::map<int, Use> uses_;
};

// A complete profile: `base_text`, the text of `base`, with another name and other system calls, each with a comment of how
// often it was called. Kind usage when the text is not a block mapping with `name` and `seccomp` on lines of their own.
Result<std::string> learned_profile(const LearnedCalls& calls, const Profile& base, const std::string& base_text,
                                    const std::string& name);

}  // namespace benchsand
