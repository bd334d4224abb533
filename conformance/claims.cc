#include "conformance/claims.h"

#include <algorithm>

#include "oci/walls.h"

namespace benchsand::conformance {

namespace {

constexpr std::size_t kShownIds = 3;

// A cell with each of several words once, in the order in which they came.
class Cell {
 public:
  void add(const std::string& word) {
    if (!word.empty() && std::find(words_.begin(), words_.end(), word) == words_.end()) words_.push_back(word);
  }
  std::string text(const char* between, std::size_t most = std::string::npos) const {
    std::string text;
    for (std::size_t i = 0; i < std::min(most, words_.size()); ++i) text += (i == 0 ? "" : between) + words_[i];
    if (words_.size() > most) text += " and " + std::to_string(words_.size() - most) + " more";
    return text.empty() ? "-" : text;
  }

 private:
  std::vector<std::string> words_;
};

struct Claim {
  std::string wall, asserts;
  Cell ids, refused, host, controls;
};

std::string control_of(const Control& control) {
  Cell parts;
  for (const Relaxation relaxation : control.down) parts.add(to_text(relaxation));
  for (const auto& limit : control.limits) parts.add(limit.key + " " + limit.value);
  for (const auto& verb : control.verbs) parts.add("`" + verb + "`");
  if (control.grant) parts.add("the file granted");
  return (control.down.empty() ? "with " : "without ") + parts.text(" + ");
}

void take(const Case& one, Claim& claim) {
  claim.ids.add(one.id);
  for (const auto& [where, outcome] : one.expect) claim.refused.add(outcome + " (" + one.layer + ")");
  if (!one.ledger.empty()) claim.host.add("ledger");
  if (one.planted) claim.host.add("nobody opened the planted file");
  for (const HostFact& fact : one.host) claim.host.add("`" + fact.place + "`");
  claim.controls.add(control_of(one.control));
}

std::vector<Claim> claims_of(const std::vector<Case>& cases) {
  std::vector<Claim> claims;
  for (const Case& one : cases) {
    if (one.limit) continue;
    auto claim = std::find_if(claims.begin(), claims.end(), [&](const Claim& other) {
      return other.wall == one.wall && other.asserts == one.asserts;
    });
    if (claim == claims.end()) claim = claims.insert(claims.end(), {one.wall, one.asserts, {}, {}, {}, {}});
    take(one, *claim);
  }
  return claims;
}

std::string wall_section(const std::string& wall, const std::vector<Claim>& claims) {
  std::string rows;
  for (const Claim& claim : claims)
    if (claim.wall == wall)
      rows += "| " + claim.asserts + " | " + claim.ids.text(", ", kShownIds) + " | " + claim.refused.text(", ") +
              " | " + claim.host.text(", ") + " | " + claim.controls.text("; ", kShownIds) + " |\n";
  if (rows.empty()) return "";
  return "\n## " + wall +
         "\n\n| claim | checked by | refused with | seen by the host | where it works: the control |\n"
         "|---|---|---|---|---|\n" +
         rows;
}

}  // namespace

std::string claims_page(const std::vector<Case>& cases) {
  std::string page =
      "# What benchsand claims, and how each claim is checked\n\n"
      "Generated from `conformance/cases` by `benchsand conformance --claims`; a test compares. Every attempt has a "
      "control: the same\n"
      "in a sandbox without the named walls, where it has to work. \"Ledger\": the refused call was counted on the "
      "host, exactly as often.\n";
  const auto claims = claims_of(cases);
  for (const auto& wall : wall_names()) page += wall_section(wall, claims);
  page +=
      "\n## Not claimed\n\nThese are attempted too, and work; the day one of them is refused, the suite says "
      "LIMIT-GONE.\n\n"
      "| attempt | what that gives away | checked by |\n|---|---|---|\n";
  for (const Case& one : cases)
    if (one.limit) page += "| " + one.attempt + " | " + one.asserts + " | " + one.id + " |\n";
  return page;
}

}  // namespace benchsand::conformance
