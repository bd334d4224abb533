// The mount tables of real containers against what the policy grants, and every single step away from them.
#include "oci/mountinfo.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

#include "oci/policy.h"
#include "tests/unit/fixtures.h"

namespace benchsand {
namespace {

using Table = std::vector<MountEntry>;
using Words = std::vector<std::string>;

// The policy under which the fixtures were captured.
std::vector<GrantedMount> granted() {
  Policy policy;
  policy.inputs = {{"/srv/bs/inputs", "/task"}};
  policy.output = "/output";
  policy.rootfs_mount = RootfsMount::bind;
  policy.user_namespace = UserNamespace::host;
  policy.masked_paths = {"/proc/acpi",  "/proc/asound",      "/proc/interrupts", "/proc/kallsyms",
                         "/proc/kcore", "/proc/keys",        "/proc/kmsg",       "/proc/latency_stats",
                         "/proc/scsi",  "/proc/sched_debug", "/proc/timer_list", "/proc/timer_stats"};
  policy.readonly_paths = {"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"};
  return granted_mounts(policy);
}

const GrantedMount& grant_of(const std::vector<GrantedMount>& grants, const std::string& target) {
  const auto found = std::find_if(grants.begin(), grants.end(), [&](const auto& one) { return one.target == target; });
  REQUIRE_MESSAGE(found != grants.end(), target);
  return *found;
}

Table table_of(const std::string& door) {
  const auto table = parse_mountinfo(fixture(door + "mountinfo"), door);
  REQUIRE_MESSAGE(table.has_value(), table.error().message);
  return *table;
}

// Runs `change` on each mount of each captured table alone; it returns the differences that are due then.
void on_each_mount(const std::function<Words(MountEntry&, const GrantedMount&)>& change) {
  const std::vector<GrantedMount> grants = granted();
  for (const std::string door : kDoors) {
    const Table good = table_of(door);
    for (std::size_t i = 0; i < good.size(); ++i) {
      Table table = good;
      Words expected = change(table[i], grant_of(grants, good[i].target));
      CAPTURE(door);
      CAPTURE(good[i].target);
      std::sort(expected.begin(), expected.end());
      CHECK(mount_differences(table, grants) == expected);
    }
  }
}

std::string listed(const std::set<std::string>& options) {
  std::string text;
  for (const std::string& option : options) text += (text.empty() ? "" : ",") + option;
  return text;
}

std::string shown(const MountEntry& mount) {
  return mount.type + " " + mount.root + ", " + listed(mount.options);
}

TEST_CASE("the tables of crun and runc are what was granted") {
  for (const std::string door : kDoors) {
    CAPTURE(door);
    CHECK(table_of(door).size() >= 15);
    CHECK(mount_differences(table_of(door), granted()) == Words{});
  }
}

TEST_CASE("ro where rw is due, rw where ro is due") {
  on_each_mount([](MountEntry& mount, const GrantedMount& grant) -> Words {
    const bool writable = mount.options.contains("rw");
    mount.options.erase(writable ? "rw" : "ro");
    mount.options.insert(writable ? "ro" : "rw");
    CHECK(writable == grant.writable);
    return {mount.target + (writable ? ": is ro, must be rw" : ": is rw, must be ro")};
  });
}

TEST_CASE("a flag is missing") {
  for (const std::string flag : {"nosuid", "nodev", "noexec"})
    on_each_mount([&](MountEntry& mount, const GrantedMount& grant) -> Words {
      mount.options.erase(flag);
      if (!grant.required.contains(flag)) return {};
      return {mount.target + ": is mounted without " + flag};
    });
  CHECK(grant_of(granted(), "/output").required == std::set<std::string>{"nodev", "nosuid"});
  CHECK(grant_of(granted(), "/task").required == std::set<std::string>{"nodev", "nosuid"});
}

TEST_CASE("another file system type") {
  on_each_mount([](MountEntry& mount, const GrantedMount& grant) -> Words {
    mount.type = "fuse";
    if (grant.types.empty()) return {};
    Words due = {mount.target + ": is of type fuse, must be " +
                 (grant.types.size() == 1 ? *grant.types.begin() : "devtmpfs or tmpfs")};
    if (grant.mask) due.push_back(mount.target + ": must hide the path, but shows " + shown(mount));
    return due;
  });
}

TEST_CASE("another root of the same file system") {
  on_each_mount([](MountEntry& mount, const GrantedMount& grant) -> Words {
    mount.root = "/zero";
    if (grant.mask) return {mount.target + ": must hide the path, but shows " + shown(mount)};
    if (grant.types == std::set<std::string>{"proc"}) return {mount.target + ": shows /zero of its file system"};
    return {};
  });
}

TEST_CASE("a mask that shows the output instead of hiding") {
  on_each_mount([](MountEntry& mount, const GrantedMount& grant) -> Words {
    if (!grant.mask) return {};
    mount.root = "/";
    mount.type = "tmpfs";
    mount.device = "0:1000";  // an empty file system of its own hides
    return {};
  });
  for (const std::string door : kDoors) {
    Table table = table_of(door);
    const auto at = [&](const std::string& target) -> MountEntry& {
      return *std::find_if(table.begin(), table.end(), [&](const auto& one) { return one.target == target; });
    };
    MountEntry& mask = at("/proc/keys");
    mask.root = "/";
    mask.type = "tmpfs";
    mask.device = at("/output").device;
    CHECK(mount_differences(table, granted()) == Words{"/proc/keys: must hide the path, but shows " + shown(mask)});
  }
}

TEST_CASE("a mount that moved elsewhere") {
  on_each_mount([](MountEntry& mount, const GrantedMount& grant) -> Words {
    const std::string before = mount.target;
    mount.target = "/elsewhere";
    Words due = {"/elsewhere: is not granted (" + shown(mount) + ")"};
    if (!grant.optional) due.push_back(before + ": is missing");
    return due;
  });
}

TEST_CASE("a mount is missing") {
  for (const std::string door : kDoors) {
    const Table good = table_of(door);
    for (std::size_t i = 0; i < good.size(); ++i) {
      Table table = good;
      table.erase(table.begin() + static_cast<std::ptrdiff_t>(i));
      std::vector<GrantedMount> grants = granted();
      const bool optional = grant_of(grants, good[i].target).optional;
      CHECK(mount_differences(table, grants) == (optional ? Words{} : Words{good[i].target + ": is missing"}));
      for (GrantedMount& grant : grants) grant.optional &= grant.target != good[i].target;
      CHECK(mount_differences(table, grants) == Words{good[i].target + ": is missing"});
    }
  }
}

TEST_CASE("a second mount on a target, even an equal one") {
  for (const std::string door : kDoors) {
    const Table good = table_of(door);
    for (const MountEntry& mount : good) {
      Table table = good;
      table.push_back(mount);
      CHECK(mount_differences(table, granted()) == Words{mount.target + ": is mounted more than once"});
      table.push_back(mount);
      CHECK(mount_differences(table, granted()) == Words{mount.target + ": is mounted more than once"});
    }
  }
}

TEST_CASE("a mount that nobody granted") {
  for (const std::string door : kDoors)
    for (const std::string target :
         {"/sys", "/sys/fs/cgroup", "/dev/shm", "/dev/mqueue", "/dev/pts", "/etc/resolv.conf", "/output/x", "/task/x",
          "/proc/self", "/run/secrets", "/a b"}) {
      Table table = table_of(door);
      table.push_back({.root = "/",
                       .target = target,
                       .options = {"ro", "nosuid"},
                       .device = "0:99",
                       .type = "tmpfs",
                       .super_options = {"ro"}});
      CHECK(mount_differences(table, granted()) == Words{target + ": is not granted (tmpfs /, nosuid,ro)"});
    }
}

TEST_CASE("an output whose file system is read-only") {
  for (const std::string door : kDoors) {
    Table table = table_of(door);
    for (MountEntry& mount : table)
      if (mount.target == "/output") mount.super_options = {"ro"};
    CHECK(mount_differences(table, granted()) == Words{"/output: is ro, must be rw"});
  }
}

TEST_CASE("several differences are all named, in order") {
  Table table = table_of(kDoors[0]);
  table.erase(table.begin());
  table.push_back(
      {.root = "/", .target = "/sys", .options = {"rw"}, .device = "0:9", .type = "sysfs", .super_options = {"rw"}});
  CHECK(mount_differences(table, granted()) == Words{"/: is missing", "/sys: is not granted (sysfs /, rw)"});
  CHECK(mount_differences({}, {}) == Words{});
  std::vector<GrantedMount> twice = granted();
  twice.push_back(grant_of(twice, "/task"));
  CHECK(mount_differences(table_of(kDoors[0]), twice) == Words{"/task: is granted twice"});
}

TEST_CASE("a file system of the host where one of the run's own is due") {
  Policy policy;
  policy.inputs = {{"/srv/bs/inputs", "/task"}, {"/srv/bs/file", "/data"}};
  policy.output = "/output";
  const std::string text =
      "102 74 0:40 / / ro,nosuid,nodev,relatime - overlay none ro,lowerdir=/proc/self/fd/17:/proc/self/fd/36\n"
      "103 102 0:50 / /proc ro,nosuid,nodev,noexec,relatime - proc proc rw\n"
      "104 102 0:46 / /dev ro,nosuid,noexec,relatime - tmpfs none rw,size=64k,nr_inodes=16,mode=755\n"
      "105 102 0:43 / /task ro,nosuid,nodev,relatime - overlay none ro,lowerdir=/proc/self/fd/18:/proc/self/fd/36\n"
      "106 102 0:44 /file /data ro,nosuid,nodev,relatime - tmpfs none rw,size=4k,nr_inodes=2,mode=755\n"
      "107 102 0:47 / /output rw,nosuid,nodev,relatime - tmpfs none rw,size=65536k\n";
  const Table good = *parse_mountinfo(text, "FILE");
  CHECK(mount_differences(good, granted_mounts(policy)) == Words{});
  for (std::size_t i : {0U, 3U, 4U}) {
    Table table = good;
    table[i].type = "ext4";
    CHECK(mount_differences(table, granted_mounts(policy)) ==
          Words{table[i].target + ": is of the host's file system (ext4 " + table[i].root + ")"});
    table = good;
    table[i].root = "/srv/bs";
    CHECK(mount_differences(table, granted_mounts(policy)) ==
          Words{table[i].target + ": is of the host's file system (" + table[i].type + " /srv/bs)"});
    policy.rootfs_mount = RootfsMount::bind;
    CHECK(mount_differences(table, granted_mounts(policy)) == Words{});
    policy.rootfs_mount = RootfsMount::overlay;
  }
  for (const std::string flag : {"nosuid", "nodev"}) {
    Table table = good;
    table[0].options.erase(flag);
    CHECK(mount_differences(table, granted_mounts(policy)) == Words{"/: is mounted without " + flag});
    policy.user_namespace = UserNamespace::host;
    CHECK(mount_differences(table, granted_mounts(policy)) == Words{});
    policy.user_namespace = UserNamespace::own;
  }
}

TEST_CASE("escapes and tags of a line") {
  const auto table = parse_mountinfo(
      "5 1 8:1 /a\\040b /c\\134d\\011e\\012f\\043 ro,nosuid shared:1 master:2 propagate_from:3 unbindable - fuse.x "
      "a\\040b "
      "rw,user=x\n",
      "FILE");
  REQUIRE_MESSAGE(table.has_value(), table.error().message);
  const MountEntry& mount = table->front();
  CHECK(mount.root == "/a b");
  CHECK(mount.target == "/c\\d\te\nf#");
  CHECK(mount.options == std::set<std::string>{"ro", "nosuid"});
  CHECK(mount.device == "8:1");
  CHECK(mount.type == "fuse.x");
  CHECK(mount.super_options == std::set<std::string>{"rw", "user=x"});
}

TEST_CASE("a file has a name behind each mount that shows it") {
  const auto table = parse_mountinfo(
      "1 0 8:1 / / rw - ext4 d rw\n"
      "2 1 8:1 /etc /var/lib/docker/volumes/v/_data rw - ext4 d rw\n"
      "3 1 8:2 / /srv rw - ext4 e rw\n"
      "4 1 8:2 /data/a /media/a rw - ext4 e rw\n"
      "5 1 8:3 / /media/a/over rw - tmpfs t rw\n"
      "6 1 8:1 / /media/root rw - ext4 d rw\n",
      "FILE");
  REQUIRE_MESSAGE(table.has_value(), table.error().message);
  CHECK(other_names("/var/lib/docker/volumes/v/_data", *table) == Words{"/etc", "/media/root/etc"});
  CHECK(other_names("/var/lib/docker/volumes/v/_data/ssh", *table) == Words{"/etc/ssh", "/media/root/etc/ssh"});
  CHECK(other_names("/media/a/x", *table) == Words{"/srv/data/a/x"});
  CHECK(other_names("/srv/data/a", *table) == Words{"/media/a"});
  CHECK(other_names("/srv/data/ab", *table) == Words{});
  CHECK(other_names("/media/a/over/x", *table) == Words{});  // of another file system
  CHECK(other_names("/media/root", *table) == Words{"/"});
  CHECK(other_names("/opt", *table) == Words{"/media/root/opt"});
}

}  // namespace
}  // namespace benchsand
