#include "shim/doctor.h"

#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "shim/run.h"
#include "shim/run_folder.h"

namespace benchsand {

namespace {

// A whole program for x86-64: exit_group(0). The run needs something to run, and a host may have nothing static.
constexpr unsigned char kProgram[] = {
    0x7F, 'E',  'L',  'F', 2, 1,    1,    0,    0,    0, 0,    0,
    0,    0,    0,    0,                                           // ELF, 64 bits, little-endian
    2,    0,    62,   0,   1, 0,    0,    0,                       // executable, x86-64
    0x78, 0,    0x40, 0,   0, 0,    0,    0,                       // entry 0x400078
    64,   0,    0,    0,   0, 0,    0,    0,                       // program headers follow this header
    0,    0,    0,    0,   0, 0,    0,    0,    0,    0, 0,    0,  // no sections
    64,   0,    56,   0,   1, 0,    0,    0,    0,    0, 0,    0,  // sizes; one program header
    1,    0,    0,    0,   5, 0,    0,    0,    0,    0, 0,    0,
    0,    0,    0,    0,  // load, readable and executable, the whole file
    0,    0,    0x40, 0,   0, 0,    0,    0,    0,    0, 0x40, 0,
    0,    0,    0,    0,  // at 0x400000
    0x81, 0,    0,    0,   0, 0,    0,    0,    0x81, 0, 0,    0,
    0,    0,    0,    0,                                // 129 bytes
    0,    0x10, 0,    0,   0, 0,    0,    0,            // aligned to a page
    0xB8, 0xE7, 0,    0,   0, 0x31, 0xFF, 0x0F, 0x05};  // mov eax, 231; xor edi, edi; syscall
static_assert(sizeof kProgram == 0x81);

constexpr const char* kUsualRunCure = "the parts that are missing are named beside it; cure them first";

// A place that nobody else sees and that ends with this process, however it ends: a tmpfs in a mount namespace of our own.
Result<std::string> private_place() {
  for (const std::string place : {"/tmp", "/var/tmp", "/mnt"}) {
    if (!TRY(sys::exists(sys::kHere, place))) continue;
    if (::unshare(CLONE_NEWNS) != 0) return sys_error("unshare", "CLONE_NEWNS", errno);
    if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
      return sys_error("mount", "/ private", errno);
    if (::mount("tmpfs", place.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, "mode=0700,size=16m") != 0)
      return sys_error("mount tmpfs", place, errno);
    return place;
  }
  return fault("find a place for a root file system: none of /tmp, /var/tmp, /mnt is there; make one of them");
}

Result<std::string> make_rootfs(const std::string& place) {
  const std::string rootfs = place + "/rootfs";
  TRY_VOID(sys::mkdirat(sys::kHere, rootfs, 0755));
  for (const char* name : {"/proc", "/dev", "/output"}) TRY_VOID(sys::mkdirat(sys::kHere, rootfs + name, 0755));
  const std::string program(reinterpret_cast<const char*>(kProgram), sizeof kProgram);
  TRY_VOID(sys::create_file(sys::kHere, rootfs + "/true", program, 0755));
  return rootfs;
}

struct Strict {
  Profile profile;
  std::string sha256;
};

Result<Strict> strict_profile() {
  const auto text = TRY(find_profile("strict"));
  return Strict{TRY(parse_profile(text.text, text.name)), text.sha256};
}

Result<Policy> policy_for(const Strict& strict, const std::string& rootfs, const HostFacts& host) {
  TaskSpec task;
  task.name = "doctor";
  task.rootfs = rootfs;
  task.command = {"/true"};
  return decide(task, {std::string(64, '0'), "/"}, strict.profile, strict.sha256, host);
}

Result<nlohmann::json> record_of(const std::string& engine, const Strict& strict, const std::string& place) {
  const auto host = TRY(require_host(engine));
  auto policy = TRY(policy_for(strict, place + "/rootfs", host.facts));
  return TRY(run_task(host, std::move(policy), std::nullopt)).record;
}

bool something_fails(const std::vector<DoctorPart>& parts) {
  return std::any_of(parts.begin(), parts.end(), [](const DoctorPart& part) { return part.needed && part.problem; });
}

bool filter_dump_fails(const std::vector<DoctorPart>& parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [](const DoctorPart& part) { return part.name == kFilterDump && part.problem; });
}

// All that a run misses stands in one message, a line each.
std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

// What this delegate needs beside what every run needs.
void find_own_problems(DoctorRun& run) {
  const std::string engine = run.delegate.name;
  const auto made = make_base_folders();
  auto binary = made ? find_delegate(engine, kDelegateCache) : Result<DelegateBinary>(std::unexpected(made.error()));
  if (binary) {
    run.delegate = binary->facts;
    run.path = binary->path;
  } else {
    run.problems.push_back(
        finding_of(binary.error().message, "install it again (apt-get install --reinstall " + engine + ")"));
  }
  if (const auto cgroup = CgroupHost::look())
    if (const auto fits = delegate_fits(*cgroup, engine); !fits)
      run.problems.push_back(finding_of(fits.error().message, kUsualRunCure));
}

DoctorRun run_with(const std::string& engine, Strict strict, const Result<std::string>& place,
                   const std::vector<DoctorPart>& parts) {
  DoctorRun run;
  run.delegate.name = engine;
  find_own_problems(run);
  if (!run.problems.empty()) return run;
  const auto record =
      place ? record_of(engine, strict, *place) : Result<nlohmann::json>(std::unexpected(place.error()));
  if (!record) {
    for (const auto& line : lines_of(record.error().message)) run.problems.push_back(finding_of(line, kUsualRunCure));
    run.follows = something_fails(parts);
    return run;
  }
  run.record = *record;
  const bool also_compiled = filter_dump_fails(parts);
  if (!also_compiled) return run;
  // Is the dump all that is missing? Then the loosening is a cure, and is known to be one.
  strict.profile.filter_proof = FilterProof::compiled;
  if (const auto again = record_of(engine, strict, *place)) run.loosened = *again;
  return run;
}

bool has_lines(const char* path, std::ptrdiff_t more_than) {
  const auto text = sys::read_file(sys::kHere, path);
  return text && std::count(text->begin(), text->end(), '\n') > more_than;
}

std::string layout_text() {
  const auto host = CgroupHost::look();
  if (!host) return "unknown";
  return host->has_unified() ? to_text(host->layout()) : host->hierarchies().empty() ? "none" : "v1";
}

DoctorPart root_part() {
  DoctorPart part{"root", "geteuid", wall_names(), true, true, {}};
  if (::geteuid() != 0)
    part.problem =
        Finding{"benchsand must be root to make cgroups and to look at them", "run it as root: sudo benchsand doctor"};
  return part;
}

}  // namespace

// The signal stays pending: a run of the doctor's sees it too.
Result<void> go_on(const Fd& signals) {
  if (TRY(sys::poll_one(signals, POLLIN, 0)) == 0) return {};
  return fault("examine the host: benchsand was told to stop by a signal");
}

Result<DoctorFindings> examine_host() {
  DoctorFindings findings;
  const HostFacts facts = host_facts(CgroupLayout::v2, {});
  findings.kernel = facts.kernel;
  findings.processors = facts.processors;
  findings.cgroup = layout_text();
  findings.root = ::geteuid() == 0;
  findings.systemd = TRY(sys::exists(sys::kHere, "/run/systemd/system"));
  findings.swap = has_lines("/proc/swaps", 1);  // below the heading
  findings.psi = has_lines("/proc/pressure/memory", 0);
  findings.engines = ask_engines();
  findings.parts = {root_part()};
  if (!findings.root) return findings;

  const Fd signals = TRY(sys::signalfd({SIGINT, SIGTERM, SIGHUP, SIGQUIT}));
  const auto strict = TRY(strict_profile());
  const auto place = private_place();
  const auto rootfs = place ? make_rootfs(*place) : Result<std::string>(std::unexpected(place.error()));
  const auto policy = TRY(policy_for(strict, "/", facts));
  for (auto& part : TRY(try_parts(policy, signals))) findings.parts.push_back(std::move(part));
  for (const char* engine : {"crun", "runc"}) {
    TRY_VOID(go_on(signals));
    findings.runs.push_back(run_with(engine, strict, rootfs ? place : rootfs, findings.parts));
  }
  TRY_VOID(go_on(signals));
  // Which of its capabilities a run uses is the delegate's business: some may be missing where all goes well.
  for (auto& part : findings.parts)
    if (part.name == kCapabilities) part.needed = !doctor_able(findings);
  return findings;
}

}  // namespace benchsand
