// Generated. Do not edit, change cuda-api/.
#include "interposer/trace/facts.h"

namespace interposer::trace {

const CallFacts kCalls[] = {
    {7, 0, 1},  // cuToyInit
    {36, 1, 1},  // cuToyLink
    {46, 2, 1},  // cuToyExport
    {58, 3, 1},  // cuToyOld
    {81, 4, 2},  // cuToyOpen
    {91, 6, 2},  // cuToyOpen_v2
    {104, 8, 1},  // cuToyClose
    {115, 9, 1},  // cuToyWait
    {125, 10, 1},  // cuToyMark
    {158, 11, 4},  // cuToyFill
    {182, 15, 3},  // cuToyCopy
    {192, 18, 3},  // cuToyPaint
    {210, 21, 2},  // cuToyPlay
    {226, 23, 3},  // cuToyLoad
    {241, 26, 3},  // cuToyPart
    {322, 29, 7},  // cuToyGather
    {341, 36, 2},  // cuToyAsk
};
const std::size_t kTracedCalls = sizeof kCalls / sizeof *kCalls;
const Parameter kParameters[] = {
    {1, 0, -1},
    {17, 1, -1},
    {17, 1, -1},
    {1, 0, -1},
    {67, 4, -1},
    {74, 6, -1},
    {67, 4, -1},
    {74, 6, -1},
    {67, 5, -1},
    {67, 5, -1},
    {67, 5, -1},
    {135, 7, -1},
    {143, 8, -1},
    {74, 12, -1},
    {67, 5, -1},
    {168, 13, -1},
    {171, 14, -1},
    {176, 15, -1},
    {135, 16, -1},
    {176, 15, -1},
    {67, 5, -1},
    {203, 17, -1},
    {67, 5, -1},
    {203, 18, -1},
    {153, 19, -1},
    {220, 14, -1},
    {236, 20, -1},
    {176, 22, -1},
    {203, 17, -1},
    {251, 23, 3},
    {259, 24, 3},
    {297, 24, 3},
    {302, 0, -1},
    {308, 18, 3},
    {316, 26, 3},
    {143, 28, -1},
    {334, 29, -1},
    {74, 6, -1},
    {},
};
const Type kTypes[] = {
    {Kind::natural, wire::HandleKind::none, 4, 0, 0},  // unsigned int
    {Kind::pointer, wire::HandleKind::none, 8, 2, 0},  // CUtoyNode*
    {Kind::structure, wire::HandleKind::none, 16, 0, 2},  // CUtoyNode
    {Kind::address, wire::HandleKind::none, 8, 0, 0},  // CUtoyCallback
    {Kind::pointer, wire::HandleKind::none, 8, 5, 0},  // CUstream*
    {Kind::handle, wire::HandleKind::stream, 8, 0, 0},  // CUstream
    {Kind::integer, wire::HandleKind::none, 4, 0, 0},  // CUdevice
    {Kind::natural, wire::HandleKind::none, 8, 0, 0},  // unsigned long long
    {Kind::pointer, wire::HandleKind::none, 8, 9, 1},  // const CUtoyBox*
    {Kind::structure, wire::HandleKind::none, 32, 2, 2},  // CUtoyBox
    {Kind::opaque, wire::HandleKind::none, 16, 0, 0},  // CUtoyPlace
    {Kind::integer, wire::HandleKind::none, 1, 0, 0},  // char
    {Kind::pointer, wire::HandleKind::none, 8, 6, 1},  // const CUdevice*
    {Kind::address, wire::HandleKind::none, 8, 0, 0},  // void*
    {Kind::address, wire::HandleKind::none, 8, 0, 0},  // const void*
    {Kind::natural, wire::HandleKind::none, 8, 0, 0},  // size_t
    {Kind::address, wire::HandleKind::none, 8, 0, 0},  // CUtoyAddress
    {Kind::handle, wire::HandleKind::module, 8, 0, 0},  // CUmodule
    {Kind::pointer, wire::HandleKind::none, 8, 17, 0},  // CUmodule*
    {Kind::text, wire::HandleKind::none, 8, 0, 1},  // const char*
    {Kind::pointer, wire::HandleKind::none, 8, 21, 0},  // CUmemGenericAllocationHandle*
    {Kind::handle, wire::HandleKind::genericAllocation, 8, 0, 0},  // CUmemGenericAllocationHandle
    {Kind::pointer, wire::HandleKind::none, 8, 15, 0},  // size_t*
    {Kind::pointer, wire::HandleKind::none, 8, 5, 1},  // const CUstream*
    {Kind::pointer, wire::HandleKind::none, 8, 25, 1},  // const CUtoyOrder*
    {Kind::enumeration, wire::HandleKind::none, 4, 0, 2},  // CUtoyOrder
    {Kind::pointer, wire::HandleKind::none, 8, 27, 0},  // unsigned short*
    {Kind::natural, wire::HandleKind::none, 2, 0, 0},  // unsigned short
    {Kind::pointer, wire::HandleKind::none, 8, 9, 0},  // CUtoyBox*
    {Kind::pointer, wire::HandleKind::none, 8, 30, 0},  // int*
    {Kind::integer, wire::HandleKind::none, 4, 0, 0},  // int
};
const Field kFields[] = {
    {22, 3, 0, 1},
    {31, 1, 8, 1},
    {147, 10, 0, 1},
    {153, 11, 16, 3},
    {},
};
const EnumValue kEnumValues[] = {
    {-1, 266},
    {1, 282},
    {},
};
const WorkFacts kWorks[] = {
    {},
    {0, Work::none},  // cuToyOpen_v2
    {0, Work::none},  // cuToyClose
    {0, Work::none},  // cuToyWait
    {0, Work::none},  // cuToyMark
    {350, Work::memset},  // cuToyFill
    {358, Work::copy},  // cuToyCopy
    {366, Work::kernel},  // cuToyPaint
    {375, Work::kernel},  // cuToyPlay
    {0, Work::none},  // cuToyLoad
    {0, Work::none},  // cuToyPart
    {0, Work::none},  // cuToyGather
    {0, Work::none},  // cuToyAsk
    {0, Work::none},  // toyStage
};
const std::size_t kWorkCount = sizeof kWorks / sizeof *kWorks;
const char kText[] =
    "\0"
    "flags\0"
    "cuToyInit\0"
    "node\0"
    "callback\0"
    "next\0"
    "cuToyLink\0"
    "cuToyExport\0"
    "cuToyOld\0"
    "stream\0"
    "device\0"
    "cuToyOpen\0"
    "cuToyOpen_v2\0"
    "cuToyClose\0"
    "cuToyWait\0"
    "cuToyMark\0"
    "address\0"
    "box\0"
    "place\0"
    "name\0"
    "cuToyFill\0"
    "to\0"
    "from\0"
    "bytes\0"
    "cuToyCopy\0"
    "cuToyPaint\0"
    "module\0"
    "cuToyPlay\0"
    "image\0"
    "cuToyLoad\0"
    "part\0"
    "cuToyPart\0"
    "streams\0"
    "orders\0"
    "CU_TOY_BACKWARD\0"
    "CU_TOY_FORWARD\0"
    "more\0"
    "count\0"
    "modules\0"
    "sizes\0"
    "cuToyGather\0"
    "answer\0"
    "cuToyAsk\0"
    "ToyFill\0"
    "ToyCopy\0"
    "ToyPaint\0"
    "ToyPlay\0";

}  // namespace interposer::trace
