// Files of the host that carry code for a GPU: objects of nvcc (ELF), and archives of them.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

namespace fatbin {

/// Calls visit for each fat binary of a file: itself, those in the sections of an ELF file, or
/// those of all members of an archive. False if a length or offset exceeds the file, or the file is
/// neither of these.
bool eachFatbin(std::span<const std::byte> file,
                const std::function<void(std::span<const std::byte>)>& visit);

}  // namespace fatbin
