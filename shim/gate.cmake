# The bytes of PROGRAM as a C++ source file.
file(READ ${PROGRAM} bytes HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
file(WRITE ${OUT} "#include \"shim/gate.h\"
namespace benchsand {
static constexpr unsigned char kBytes[] = {${bytes}};
const std::span<const unsigned char> kGateProgram(kBytes);
}
")
