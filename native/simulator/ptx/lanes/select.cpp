#include "native/simulator/ptx/lanes/lanes.h"

namespace simulator::ptx::SIMULATOR_LANES {

Handler select(const Form& form) {
  switch (form.op) {
    case Op::SetPredicate:
    case Op::SetValue:
    case Op::Select:
    case Op::SelectBySign: return selectCompare(form);
    case Op::Convert:
    case Op::ConvertPair: return selectConvert(form);
    default: break;
  }
  if (form.op >= Op::Load && form.op <= Op::Touch) return selectMemory(form);
  if (form.op >= Op::AtomAdd && form.op <= Op::AtomCompare) return selectAtomic(form);
  if (form.op >= Op::MultiplyMatrices) return selectMatrix(form);
  if (form.op >= Op::ShuffleUp) return selectWarp(form);
  if (form.op >= Op::VideoAdd && form.op <= Op::VideoSet) return selectVideo(form);
  if (form.type == Type::U16x2 || form.type == Type::S16x2) return selectVideo(form);
  switch (form.type) {
    case Type::F32:
    case Type::F64: return form.op == Op::Copy ? selectBits(form) : selectFloat(form);
    case Type::F16:
    case Type::F16x2:
    case Type::BF16:
    case Type::BF16x2: return form.op == Op::Copy ? selectBits(form) : selectHalf(form);
    default: break;
  }
  if (Handler found = selectBits(form)) return found;
  return selectInteger(form);
}

}  // namespace simulator::ptx::SIMULATOR_LANES
