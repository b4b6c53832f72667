// Generated. Do not edit, change cuda-api/.
#include "interposer/entry/entry_points.h"

#include "cuda_abi.h"

namespace interposer {

const EntryPoint kEntryPoints[] = {
    {"cuToyAsk", 2000, false, true, reinterpret_cast<void*>(&::cuToyAsk)},
    {"cuToyClose", 2000, false, true, reinterpret_cast<void*>(&::cuToyClose)},
    {"cuToyCopy", 2000, false, true, reinterpret_cast<void*>(&::cuToyCopy)},
    {"cuToyCopy", 7000, true, true, reinterpret_cast<void*>(&::cuToyCopy_ptds)},
    {"cuToyExport", 9000, false, true, reinterpret_cast<void*>(&::cuToyExport)},
    {"cuToyFill", 2000, false, true, reinterpret_cast<void*>(&::cuToyFill)},
    {"cuToyFill", 7000, true, true, reinterpret_cast<void*>(&::cuToyFill_ptsz)},
    {"cuToyGather", 2000, false, true, reinterpret_cast<void*>(&::cuToyGather)},
    {"cuToyInit", 2000, false, true, reinterpret_cast<void*>(&::cuToyInit)},
    {"cuToyLink", 9000, false, false, reinterpret_cast<void*>(&::cuToyLink)},
    {"cuToyLoad", 2000, false, true, reinterpret_cast<void*>(&::cuToyLoad)},
    {"cuToyMark", 2000, false, true, reinterpret_cast<void*>(&::cuToyMark)},
    {"cuToyOld", 2000, false, true, reinterpret_cast<void*>(&::cuToyOld)},
    {"cuToyOpen", 2000, false, true, reinterpret_cast<void*>(&::cuToyOpen)},
    {"cuToyOpen", 3000, false, true, reinterpret_cast<void*>(&::cuToyOpen_v2)},
    {"cuToyOpenStream", 4000, false, true, reinterpret_cast<void*>(&::cuToyOpen_v2)},
    {"cuToyPaint", 2000, false, true, reinterpret_cast<void*>(&::cuToyPaint)},
    {"cuToyPart", 2000, false, true, reinterpret_cast<void*>(&::cuToyPart)},
    {"cuToyPlay", 2000, false, true, reinterpret_cast<void*>(&::cuToyPlay)},
    {"cuToyWait", 2000, false, true, reinterpret_cast<void*>(&::cuToyWait)},
    {"cuToyWait", 7000, true, true, reinterpret_cast<void*>(&::cuToyWait_ptsz)},
};
const std::size_t kEntryPointCount = sizeof kEntryPoints / sizeof *kEntryPoints;

}  // namespace interposer
