// SPDX-License-Identifier: Apache-2.0
// Stands in for libFuzzer where it is not there: runs the fuzzer's function
// once for each file of the folders (or files) that are given, and once for
// the empty input. So every build proves that the known inputs still pass.

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t n_bytes);

namespace {

void RunFile(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(in)),
                                std::istreambuf_iterator<char>());
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()),
                         bytes.size());
}

}  // namespace

int main(int argc, char** argv) {
  const uint8_t nothing = 0;
  LLVMFuzzerTestOneInput(&nothing, 0);
  int n_files = 0;
  for (int i = 1; i < argc; ++i) {
    const std::filesystem::path path = argv[i];
    if (!std::filesystem::exists(path)) {
      std::fprintf(stderr, "no such corpus: %s\n", argv[i]);
      return 1;
    }
    if (!std::filesystem::is_directory(path)) {
      RunFile(path);
      ++n_files;
      continue;
    }
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(path)) {
      if (!entry.is_regular_file()) continue;
      RunFile(entry.path());
      ++n_files;
    }
  }
  std::printf("%d corpus files replayed\n", n_files);
  return 0;
}
