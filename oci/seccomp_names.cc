// What calls and errnos are called.
#include <seccomp.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "oci/seccomp.h"

namespace benchsand {
namespace {

struct ErrnoName {
  int number;
  std::string_view name;
};

// Linux on x86-64. Interrupt and restart codes are left out: a call refused with one would be tried again for ever.
constexpr std::array<ErrnoName, 47> kErrnoNames{{
    {1, "EPERM"},          {2, "ENOENT"},
    {3, "ESRCH"},          {5, "EIO"},
    {6, "ENXIO"},          {7, "E2BIG"},
    {8, "ENOEXEC"},        {9, "EBADF"},
    {10, "ECHILD"},        {11, "EAGAIN"},
    {12, "ENOMEM"},        {13, "EACCES"},
    {14, "EFAULT"},        {16, "EBUSY"},
    {17, "EEXIST"},        {18, "EXDEV"},
    {19, "ENODEV"},        {20, "ENOTDIR"},
    {21, "EISDIR"},        {22, "EINVAL"},
    {23, "ENFILE"},        {24, "EMFILE"},
    {25, "ENOTTY"},        {26, "ETXTBSY"},
    {27, "EFBIG"},         {28, "ENOSPC"},
    {29, "ESPIPE"},        {30, "EROFS"},
    {31, "EMLINK"},        {32, "EPIPE"},
    {33, "EDOM"},          {34, "ERANGE"},
    {36, "ENAMETOOLONG"},  {38, "ENOSYS"},
    {39, "ENOTEMPTY"},     {40, "ELOOP"},
    {88, "ENOTSOCK"},      {93, "EPROTONOSUPPORT"},
    {95, "EOPNOTSUPP"},    {97, "EAFNOSUPPORT"},
    {98, "EADDRINUSE"},    {99, "EADDRNOTAVAIL"},
    {100, "ENETDOWN"},     {101, "ENETUNREACH"},
    {111, "ECONNREFUSED"}, {113, "EHOSTUNREACH"},
    {122, "EDQUOT"},
}};

}  // namespace

Result<int> errno_number(const std::string& name) {
  for (const ErrnoName& entry : kErrnoNames)
    if (entry.name == name) return entry.number;
  return usage("seccomp: unknown errno name '" + name + "'");
}

std::string errno_name(int number) {
  for (const ErrnoName& entry : kErrnoNames)
    if (entry.number == number) return std::string(entry.name);
  return "errno " + std::to_string(number);
}

Result<int> call_number(const std::string& name) {
  const int number = seccomp_syscall_resolve_name_arch(SCMP_ARCH_X86_64, name.c_str());
  // Negative numbers are libseccomp's own, for calls that exist on other architectures only.
  if (number < 0 || name.find('\0') != std::string::npos)
    return usage("seccomp: unknown system call '" + name + "' on x86-64");
  return number;
}

std::string call_name(int number) {
  const std::unique_ptr<char, decltype(&std::free)> name(seccomp_syscall_resolve_num_arch(SCMP_ARCH_X86_64, number),
                                                         &std::free);
  return name ? std::string(name.get()) : "call " + std::to_string(number);
}

}  // namespace benchsand
