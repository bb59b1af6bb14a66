// SPDX-License-Identifier: Apache-2.0
#include "toolkit/doctor/machine/elf.h"

#include <dlfcn.h>
#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "base/file.h"
#include "toolkit/doctor/machine/live.h"

namespace belay::doctor {
namespace {

using testing::Contains;
using testing::ElementsAre;

SharedObject Read(const std::string& bytes,
                  const std::vector<std::string>& wanted) {
  return ReadElf(
      [&](uint64_t offset, void* to, size_t n) {
        if (offset > bytes.size() || n > bytes.size() - offset) return false;
        std::memcpy(to, bytes.data() + offset, n);
        return true;
      },
      wanted);
}

template <typename T>
void Append(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// A library that defines "one", refers to "two", needs libx.so and has the old
// kind of hash table, in one segment that is loaded at address 0.
std::string SmallLibrary() {
  const std::string strings("\0one\0two\0libx.so\0$ORIGIN:/y\0", 28);
  std::string symbols, hash;
  Append(symbols, Elf64_Sym{});
  Append(symbols, Elf64_Sym{1, 0, 0, 1, 0x1000, 0});
  Append(symbols, Elf64_Sym{5, 0, 0, SHN_UNDEF, 0, 0});
  // One bucket: 2 -> 1 -> end.
  for (const uint32_t word : {1U, 3U, 2U, 0U, 0U, 1U}) Append(hash, word);
  const uint64_t dynamic = sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Phdr);
  const uint64_t at_strings = dynamic + 6 * sizeof(Elf64_Dyn);
  const uint64_t at_symbols = at_strings + strings.size();
  const uint64_t at_hash = at_symbols + symbols.size();
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_machine = EM_AARCH64;
  header.e_phoff = sizeof(header);
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 2;
  Elf64_Phdr load{};
  load.p_type = PT_LOAD;
  load.p_filesz = at_hash + hash.size();
  Elf64_Phdr part{};
  part.p_type = PT_DYNAMIC;
  part.p_offset = dynamic;
  part.p_filesz = 6 * sizeof(Elf64_Dyn);
  std::string bytes;
  Append(bytes, header);
  Append(bytes, load);
  Append(bytes, part);
  const auto entry = [&](int64_t tag, uint64_t value) {
    Elf64_Dyn dyn{};
    dyn.d_tag = tag;
    dyn.d_un.d_val = value;
    Append(bytes, dyn);
  };
  entry(DT_NEEDED, 9);
  entry(DT_RUNPATH, 17);
  entry(DT_STRTAB, at_strings);
  entry(DT_SYMTAB, at_symbols);
  entry(DT_HASH, at_hash);
  entry(DT_NULL, 0);
  return bytes + strings + symbols + hash;
}

TEST(ElfTest, SmallLibrary) {
  const SharedObject object = Read(SmallLibrary(), {"one", "two", "three"});
  EXPECT_TRUE(object.is_library);
  EXPECT_EQ(object.arch, "aarch64");
  EXPECT_THAT(object.needed, ElementsAre("libx.so"));
  EXPECT_THAT(object.run_path, ElementsAre("$ORIGIN", "/y"));
  EXPECT_THAT(object.lacks, ElementsAre("two", "three"));
}

// A chain that leads to itself ends, and so does every cut and every flipped
// byte.
TEST(ElfTest, DamageEnds) {
  const std::string whole = SmallLibrary();
  for (size_t n = 0; n < whole.size(); ++n) {
    (void)Read(whole.substr(0, n), {"one", "two"});
    std::string flipped = whole;
    flipped[n] = static_cast<char>(~flipped[n]);
    (void)Read(flipped, {"one", "two"});
  }
  std::string loop = whole;
  const uint32_t self = 2;
  std::memcpy(loop.data() + loop.size() - 12 + 8, &self, 4);
  EXPECT_THAT(Read(loop, {"three"}).lacks, ElementsAre("three"));
  EXPECT_FALSE(Read("version https://git-lfs", {}).is_library);
}

// The C library of whoever runs this, as its loader sees it.
TEST(ElfTest, ALibraryOfThisMachine) {
  Dl_info info{};
  ASSERT_NE(dladdr(reinterpret_cast<void*>(&std::abort), &info), 0);
  const auto machine = NewLiveMachine({}, 1000);
  const auto object =
      machine->ReadLibrary(info.dli_fname, {"abort", "malloc", "no_such_one"});
  ASSERT_TRUE(object.has_value()) << info.dli_fname;
  // A program that is linked statically has no C library to look at.
  if (!object->is_library) GTEST_SKIP() << info.dli_fname;
  EXPECT_EQ(object->arch, machine->Arch());
  EXPECT_THAT(object->lacks, Contains("no_such_one"));
  EXPECT_THAT(object->lacks, testing::Not(Contains("abort")));
  EXPECT_THAT(object->lacks, testing::Not(Contains("malloc")));
  EXPECT_FALSE(machine->ReadLibrary("/there/is/nothing", {}).has_value());
}

}  // namespace
}  // namespace belay::doctor
