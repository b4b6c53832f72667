// The image that the linker makes: an ELF file of a GPU, with the linked texts.
#pragma once

#include <span>
#include <string>

namespace simulator {

std::string linkedImage(std::span<const std::string> texts);

}  // namespace simulator
