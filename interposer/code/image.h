// Code images arrive as bare pointers; how long they are stands inside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "wire/image.h"

namespace interposer {

/// Kinds of data behind an image pointer.
enum class ImageKind { none, wrapper, fatbin, elf, text };

ImageKind imageKind(const void* image);

/// Bytes of a fat binary (its header included), an ELF file, or PTX text with its NUL. 0 when it is
/// none of them; a wrapper has no length.
std::size_t imageBytes(const void* image);

/// The images behind a pointer: one, or for the wrapper of a device-linked program (version 2) the
/// linked one and the relocatable ones that it was made of. Empty when the pointer is no image.
std::vector<std::span<const std::byte>> imagesOf(const void* image);

}  // namespace interposer
