#include "native/simulator/test/instructions/form.h"

#include <algorithm>

namespace instructions {

unsigned registerBits(Kind kind) {
  switch (kind) {
    case Kind::Pred: return 0;
    case Kind::Int16:
    case Kind::Byte16:
    case Kind::F16:
    case Kind::BF16: return 16;
    case Kind::Int64:
    case Kind::F64: return 64;
    default: return 32;
  }
}

Words::Words(std::string_view name) {
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t end = std::min(name.find('.', at), name.size());
    words_.emplace_back(name.substr(at, end - at));
    at = end + 1;
  }
}

bool Words::has(std::string_view word) const {
  return std::find(words_.begin() + 1, words_.end(), word) != words_.end();
}

std::vector<std::string> expand(std::string_view pattern) {
  const std::size_t open = pattern.find('(');
  if (open == std::string_view::npos) return {std::string(pattern)};
  const std::size_t close = pattern.find(')', open);
  const std::vector<std::string> rests = expand(pattern.substr(close + 1));
  std::vector<std::string> all;
  for (std::size_t at = open + 1; at <= close;) {
    const std::size_t end = std::min(pattern.find('|', at), close);
    for (const std::string& rest : rests) {
      all.push_back(std::string(pattern.substr(0, open)) +
                    std::string(pattern.substr(at, end - at)) + rest);
    }
    at = end + 1;
  }
  return all;
}

Forms allForms() {
  Forms forms;
  integerForms(forms);
  carryForms(forms);
  bitForms(forms);
  videoForms(forms);
  floatForms(forms);
  halfForms(forms);
  approximateForms(forms);
  compareForms(forms);
  convertForms(forms);
  memoryForms(forms);
  atomicForms(forms);
  spaceForms(forms);
  warpForms(forms);
  matrixForms(forms);
  asyncForms(forms);
  return forms;
}

}  // namespace instructions
