// Writes the kernels of all forms into a directory, for an assembler to read: write_forms
// DIRECTORY.
#include <cstdio>
#include <fstream>
#include <span>
#include <string>

#include "native/simulator/test/instructions/kernel.h"

int main(int count, char** arguments) {
  if (count != 2) return std::fputs("Usage: write_forms DIRECTORY\n", stderr), 2;
  constexpr std::size_t kFormsInModule = 64;
  const std::string directory = arguments[1];
  const instructions::Forms forms = instructions::allForms();
  const std::span<const instructions::Form> all(forms);
  for (std::size_t at = 0; at < all.size(); at += kFormsInModule) {
    std::ofstream(directory + "/" + std::to_string(at / kFormsInModule) + ".ptx")
        << instructions::moduleFor(all.subspan(at, std::min(kFormsInModule, all.size() - at)));
  }
  std::ofstream(directory + "/refused.ptx")
      << instructions::bareModuleFor(instructions::refusedForms());
}
