#include "conformance/ten.h"

namespace benchsand::conformance {

const std::array<TenCheck, kChecks> kTenChecks = {{
    {1, "read a file holding credentials"},
    {2, "open a connection out"},
    {3, "fill the disk past 64 MB"},
    {4, "the thirty-third process"},
    {5, "spin the processor past 2 s"},
    {6, "allocate past 256 MB"},
    {7, "write outside the scratch folder, in every mount"},
    {8, "read another job's submission"},
    {9, "reach the cloud metadata address"},
    {10, "leave a process running after return"},
}};

}  // namespace benchsand::conformance
