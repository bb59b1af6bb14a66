// SPDX-License-Identifier: Apache-2.0
#include "toolkit/doctor/machine/elf.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <sstream>

namespace belay::doctor {
namespace {

// Limits of what is believed. Real libraries have 5 to 12 segments, some 40
// entries in their dynamic section, and chains of a few symbols.
constexpr size_t kMaxSegments = 256;
constexpr size_t kMaxEntries = 4096;
constexpr size_t kMaxNeeded = 256;
constexpr size_t kMaxChain = 65536;
constexpr size_t kMaxName = 1024;

uint32_t GnuHash(const std::string& name) {
  uint32_t hash = 5381;
  for (const char c : name) hash = hash * 33 + static_cast<unsigned char>(c);
  return hash;
}

uint32_t SysvHash(const std::string& name) {
  uint32_t hash = 0;
  for (const char c : name) {
    hash = (hash << 4) + static_cast<unsigned char>(c);
    const uint32_t high = hash & 0xf0000000U;
    hash ^= high >> 24;
    hash &= ~high;
  }
  return hash;
}

class ElfReader {
 public:
  explicit ElfReader(const ReadBytes& read) : read_(read) {}

  SharedObject Read(const std::vector<std::string>& wanted) {
    SharedObject object;
    if (!ReadHeader(object) || !ReadDynamic(object)) return object;
    object.is_library = true;
    for (const std::string& name : wanted) {
      if (!Defines(name)) object.lacks.push_back(name);
    }
    return object;
  }

 private:
  struct Segment {
    uint64_t address, offset, bytes;
  };

  template <typename T>
  std::optional<T> At(uint64_t offset) const {
    T value;
    if (!read_(offset, &value, sizeof(value))) return std::nullopt;
    return value;
  }

  // A value at an address of the loaded library.
  template <typename T>
  std::optional<T> Loaded(uint64_t address) const {
    for (const Segment& segment : segments_) {
      const uint64_t into = address - segment.address;
      if (address < segment.address || into >= segment.bytes ||
          sizeof(T) > segment.bytes - into) {
        continue;
      }
      if (segment.offset + into < into) return std::nullopt;
      return At<T>(segment.offset + into);
    }
    return std::nullopt;
  }

  bool ReadHeader(SharedObject& object) {
    const auto header = At<Elf64_Ehdr>(0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_ident[EI_CLASS] != ELFCLASS64 ||
        header->e_ident[EI_DATA] != ELFDATA2LSB ||
        header->e_phentsize != sizeof(Elf64_Phdr)) {
      return false;
    }
    object.arch = header->e_machine == EM_AARCH64 ? "aarch64"
                  : header->e_machine == EM_X86_64
                      ? "x86_64"
                      : fmt::format("machine {}", header->e_machine);
    const size_t n = std::min<size_t>(header->e_phnum, kMaxSegments);
    for (size_t i = 0; i < n; ++i) {
      const auto part =
          At<Elf64_Phdr>(header->e_phoff + i * sizeof(Elf64_Phdr));
      if (!part) return false;
      if (part->p_type == PT_LOAD) {
        segments_.push_back({part->p_vaddr, part->p_offset, part->p_filesz});
      } else if (part->p_type == PT_DYNAMIC) {
        dynamic_ = part->p_offset;
        n_dynamic_ =
            std::min<size_t>(part->p_filesz / sizeof(Elf64_Dyn), kMaxEntries);
      }
    }
    return n_dynamic_ > 0;
  }

  bool ReadDynamic(SharedObject& object) {
    std::vector<uint64_t> needed, run_paths;
    for (size_t i = 0; i < n_dynamic_; ++i) {
      const auto entry = At<Elf64_Dyn>(dynamic_ + i * sizeof(Elf64_Dyn));
      if (!entry) return false;
      if (entry->d_tag == DT_NULL) break;
      const uint64_t value = entry->d_un.d_val;
      if (entry->d_tag == DT_NEEDED) needed.push_back(value);
      if (entry->d_tag == DT_RPATH || entry->d_tag == DT_RUNPATH) {
        run_paths.push_back(value);
      }
      if (entry->d_tag == DT_STRTAB) strings_ = value;
      if (entry->d_tag == DT_SYMTAB) symbols_ = value;
      if (entry->d_tag == DT_GNU_HASH) gnu_hash_ = value;
      if (entry->d_tag == DT_HASH) sysv_hash_ = value;
    }
    for (const uint64_t at : needed) {
      if (object.needed.size() >= kMaxNeeded) break;
      if (const auto name = Name(at)) object.needed.push_back(*name);
    }
    for (const uint64_t at : run_paths) {
      std::istringstream paths(Name(at).value_or(""));
      for (std::string path; std::getline(paths, path, ':');) {
        if (object.run_path.size() >= kMaxNeeded) break;
        object.run_path.push_back(path);
      }
    }
    return true;
  }

  // The text at an offset of the string table.
  std::optional<std::string> Name(uint64_t offset) const {
    std::string name;
    while (name.size() < kMaxName) {
      const auto c = Loaded<char>(strings_ + offset + name.size());
      if (!c) return std::nullopt;
      if (*c == '\0') return name;
      name += *c;
    }
    return std::nullopt;
  }

  bool IsDefinition(uint32_t index, const std::string& name) const {
    const auto symbol =
        Loaded<Elf64_Sym>(symbols_ + uint64_t{index} * sizeof(Elf64_Sym));
    return symbol && symbol->st_shndx != SHN_UNDEF &&
           Name(symbol->st_name) == name;
  }

  bool Defines(const std::string& name) const {
    if (gnu_hash_ != 0) return InGnuHash(name);
    return sysv_hash_ != 0 && InSysvHash(name);
  }

  // Header of four words, a Bloom filter of 64-bit words, buckets, chains whose
  // last hash has its lowest bit set.
  bool InGnuHash(const std::string& name) const {
    const auto n_buckets = Loaded<uint32_t>(gnu_hash_);
    const auto first = Loaded<uint32_t>(gnu_hash_ + 4);
    const auto n_bloom = Loaded<uint32_t>(gnu_hash_ + 8);
    if (!n_buckets || !first || !n_bloom || *n_buckets == 0) return false;
    const uint32_t hash = GnuHash(name);
    const uint64_t buckets = gnu_hash_ + 16 + uint64_t{*n_bloom} * 8;
    const uint64_t chains = buckets + uint64_t{*n_buckets} * 4;
    const auto start =
        Loaded<uint32_t>(buckets + uint64_t{hash % *n_buckets} * 4);
    if (!start || *start < *first) return false;
    for (size_t i = 0; i < kMaxChain; ++i) {
      const uint32_t index = *start + static_cast<uint32_t>(i);
      const auto link =
          Loaded<uint32_t>(chains + (uint64_t{index} - *first) * 4);
      if (!link) return false;
      if ((*link | 1) == (hash | 1) && IsDefinition(index, name)) return true;
      if ((*link & 1) != 0) return false;
    }
    return false;
  }

  // {n buckets, n chains}, buckets, chains: the next symbol of each.
  bool InSysvHash(const std::string& name) const {
    const auto n_buckets = Loaded<uint32_t>(sysv_hash_);
    if (!n_buckets || *n_buckets == 0) return false;
    const uint64_t buckets = sysv_hash_ + 8;
    const uint64_t chains = buckets + uint64_t{*n_buckets} * 4;
    auto index =
        Loaded<uint32_t>(buckets + uint64_t{SysvHash(name) % *n_buckets} * 4);
    for (size_t i = 0; i < kMaxChain && index && *index != 0; ++i) {
      if (IsDefinition(*index, name)) return true;
      index = Loaded<uint32_t>(chains + uint64_t{*index} * 4);
    }
    return false;
  }

  const ReadBytes& read_;
  std::vector<Segment> segments_;
  uint64_t dynamic_ = 0;
  size_t n_dynamic_ = 0;
  uint64_t strings_ = 0, symbols_ = 0, gnu_hash_ = 0, sysv_hash_ = 0;
};

}  // namespace

SharedObject ReadElf(const ReadBytes& read,
                     const std::vector<std::string>& wanted) {
  return ElfReader(read).Read(wanted);
}

}  // namespace belay::doctor
