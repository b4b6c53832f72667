// Prints what the worker makes of code images: for each file one line with the bytes of device
// memory that it counts, or `refused` and why. PTX text gets the end that it has in the memory of a
// program.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "native/worker/images/vetted_image.h"

int main(int count, char** arguments) {
  for (int i = 1; i < count; ++i) {
    std::ifstream file(arguments[i], std::ios::binary);
    std::string content(std::istreambuf_iterator<char>(file), {});
    if (!file) return std::fprintf(stderr, "%s cannot be read\n", arguments[i]), 1;
    if (content.find('\0') == content.npos) content.push_back('\0');
    const std::span<const std::byte> part = std::as_bytes(std::span(content));
    const worker::VettedImage image({&part, 1});
    if (image.status() == CUDA_SUCCESS)
      std::printf("%llu %s\n", static_cast<unsigned long long>(image.facts().memory),
                  image.sentence().c_str());
    else
      std::printf("refused %s\n", image.sentence().c_str());
  }
}
