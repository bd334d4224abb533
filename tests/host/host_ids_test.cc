// The host ids of a run: nobody else's, and only as long as somebody holds them.
#include "shim/host_ids.h"

#include <doctest/doctest.h>

#include <optional>
#include <set>

#include "shim/run_folder.h"
#include "support.h"

using namespace benchsand;

TEST_CASE("ids are free that nobody was given and that exist here") {
  const std::vector<IdRange> all = {{0, 4294967295}};
  CHECK(host_ids_are_free(kFirstHostId, {}, all));
  CHECK(host_ids_are_free(kFirstHostId, {{100000, 65536}, {kFirstHostId - 1, 1}, {kFirstHostId + 2, 100}}, all));
  CHECK_FALSE(host_ids_are_free(kFirstHostId, {{kFirstHostId - 1, 2}}, all));
  CHECK_FALSE(host_ids_are_free(kFirstHostId, {{kFirstHostId + 1, 1}}, all));
  CHECK_FALSE(host_ids_are_free(kFirstHostId, {{0, 4294967295}}, all));
  CHECK_FALSE(host_ids_are_free(kFirstHostId, {}, {}));
  CHECK_FALSE(host_ids_are_free(kFirstHostId, {}, {{0, 65536}}));
  CHECK_FALSE(host_ids_are_free(kFirstHostId, {}, {{0, kFirstHostId + 1}}));
}

TEST_CASE("no two that are held have an id in common, and one that was given back can be taken") {
  REQUIRE(make_base_folders());
  std::vector<HostIdSlot> held;
  std::set<std::uint32_t> ids;
  for (int i = 0; i < 300; ++i) {
    auto slot = HostIdSlot::take();
    if (!slot) FAIL(slot.error().message);
    CHECK(slot->ids().root >= kFirstHostId);
    CHECK(slot->ids().candidate < kFirstHostId + 2 * kHostIdSlots);
    ids.insert({slot->ids().root, slot->ids().candidate});
    held.push_back(std::move(*slot));
  }
  CHECK(ids.size() == 600);
}

TEST_CASE("a slot that is held is passed over, by whoever holds it, and free again when given back") {
  REQUIRE(make_base_folders());
  auto taken = HostIdSlot::take_from(7);
  REQUIRE(taken);
  std::optional<HostIdSlot> first = std::move(*taken);
  auto second = HostIdSlot::take_from(7);
  REQUIRE(second);
  CHECK(second->ids().root == first->ids().root + 2);
  const std::uint32_t root = first->ids().root;
  first.reset();
  CHECK(HostIdSlot::take_from(7)->ids().root == root);
  // From the last one on it goes round.
  auto last = HostIdSlot::take_from(kHostIdSlots - 1);
  REQUIRE(last);
  CHECK(last->ids().candidate == kFirstHostId + 2 * kHostIdSlots - 1);
  CHECK(HostIdSlot::take_from(kHostIdSlots - 1)->ids().root == kFirstHostId);
}
