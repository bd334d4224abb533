// `docker update` and its like: the limits of a container that runs. They can become lower, never higher.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "oci/admit.h"

namespace benchsand {

struct Tightened {
  Limits limits;
  // All that the delegate has to know of them, and not the difference: runc forgets the tasks and `unified` of what it is not
  // told again, and a lower memory without its swap would open a window for swap.
  nlohmann::json resources;
  std::vector<Edit> edits;        // what was asked for and stays as it is: more than there is, or unknown
  std::vector<Refused> refusals;  // not empty: nothing is to be changed
};

// `policy` has the limits of now. A bound that is not there, 0 or -1 stays; a higher one stays too, and is an edit and no error,
// because engines send all bounds with each change. An error (kind usage) only for a text that is no resources document.
Result<Tightened> tighten(const std::string& resources_text, const Policy& policy, std::uint64_t memory_headroom_bytes,
                          const HostFacts& host, const BundlePlaces& places);

}  // namespace benchsand
