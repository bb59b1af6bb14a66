// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/error_ids.h"

namespace belay {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// A folder of its own for each test, removed at the end.
class FileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = fs::temp_directory_path() / "belay_file_test.XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) const {
    return (folder_ / name).string();
  }
  void Put(const std::string& name, const std::string& text) const {
    std::ofstream(Path(name), std::ios::binary) << text;
  }
  size_t CountFiles() const {
    size_t n = 0;
    for ([[maybe_unused]] const auto& e : fs::directory_iterator(folder_)) ++n;
    return n;
  }

  fs::path folder_;
};

std::string Text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::span<const std::byte> Bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// Makes writes beyond `n_bytes` fail with EFBIG, as a full disk would with
// ENOSPC; works for root too, whom permissions do not stop.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t n_bytes) {
    old_handler_ = std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limit{n_bytes, old_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, old_handler_);
  }

 private:
  rlimit old_{};
  void (*old_handler_)(int);
};

TEST_F(FileTest, MapsWhatIsThere) {
  const std::string text("a\0b\n", 4);
  Put("x", text);
  const auto file = MappedFile::Open(Path("x"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->path(), Path("x"));
  EXPECT_EQ(Text((*file)->bytes()), text);
}

TEST_F(FileTest, MapsAnEmptyFile) {
  Put("x", "");
  const auto file = MappedFile::Open(Path("x"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE((*file)->bytes().empty());
}

TEST_F(FileTest, AMappingOutlivesTheName) {
  Put("x", "kept");
  const auto file = MappedFile::Open(Path("x"));
  ASSERT_TRUE(file.ok());
  fs::remove(Path("x"));
  EXPECT_EQ(Text((*file)->bytes()), "kept");
}

TEST_F(FileTest, UnreadableIsSys001WithTheSystemsWords) {
  Put("file", "x");
  const struct {
    std::string path;
    std::string what;
  } cases[] = {
      {Path("missing"), std::strerror(ENOENT)},
      {folder_.string(), std::strerror(EISDIR)},
      {Path("file/below"), std::strerror(ENOTDIR)},
      {"", std::strerror(ENOENT)},
      {Path(std::string(300, 'n')), std::strerror(ENAMETOOLONG)},
  };
  for (const auto& c : cases) {
    for (const Status& status :
         {MappedFile::Open(c.path).status(), ReadFile(c.path).status()}) {
      EXPECT_EQ(ErrorIdOf(status), kSysUnreadable.id);
      EXPECT_EQ(ErrorFactsOf(status).where, c.path);
      EXPECT_EQ(ErrorFactsOf(status).what, c.what);
    }
  }
}

TEST_F(FileTest, ADeviceIsReadButNotMapped) {
  EXPECT_EQ(ErrorFactsOf(MappedFile::Open("/dev/null").status()).what,
            "not a regular file");
  const auto text = ReadFile("/dev/null");
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(*text, "");
}

TEST_F(FileTest, ReadsFilesThatSayTheyAreEmpty) {
  const auto text = ReadFile("/proc/self/status");
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("Pid:"));
}

TEST_F(FileTest, ReadKeepsToItsLimit) {
  const std::string text(100000, 'x');
  Put("x", text);
  const auto fits = ReadFile(Path("x"), text.size());
  ASSERT_TRUE(fits.ok()) << fits.status();
  EXPECT_EQ(*fits, text);
  const auto too_large = ReadFile(Path("x"), text.size() - 1);
  EXPECT_EQ(ErrorIdOf(too_large.status()), kSysUnreadable.id);
  EXPECT_EQ(ErrorFactsOf(too_large.status()).expected, "99999 bytes at most");
}

TEST_F(FileTest, WritesAndReplaces) {
  ASSERT_TRUE(WriteFileAtomically(Path("x"), "one").ok());
  EXPECT_EQ(ReadFile(Path("x")).value(), "one");
  ASSERT_TRUE(WriteFileAtomically(Path("x"), "").ok());
  EXPECT_EQ(ReadFile(Path("x")).value(), "");
  EXPECT_EQ(CountFiles(), 1u);
}

TEST_F(FileTest, ReplacingKeepsPermissions) {
  Put("x", "old");
  ASSERT_EQ(chmod(Path("x").c_str(), 0640), 0);
  ASSERT_TRUE(WriteFileAtomically(Path("x"), "new").ok());
  struct stat info;
  ASSERT_EQ(stat(Path("x").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0640u);
}

TEST_F(FileTest, NothingIsVisibleBeforeCommit) {
  Put("x", "old");
  const auto writer = AtomicFileWriter::Create(Path("x"));
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE((*writer)->Append(Bytes("new ")).ok());
  ASSERT_TRUE((*writer)->Append(Bytes("text")).ok());
  EXPECT_EQ(ReadFile(Path("x")).value(), "old");
  ASSERT_TRUE((*writer)->Commit().ok());
  EXPECT_EQ(ReadFile(Path("x")).value(), "new text");
  EXPECT_EQ(CountFiles(), 1u);
  EXPECT_FALSE((*writer)->Commit().ok());
  EXPECT_FALSE((*writer)->Append(Bytes("more")).ok());
  EXPECT_EQ(ReadFile(Path("x")).value(), "new text");
}

TEST_F(FileTest, WithoutCommitNothingIsLeft) {
  { const auto writer = AtomicFileWriter::Create(Path("x")); }
  EXPECT_EQ(CountFiles(), 0u);
}

TEST_F(FileTest, TwoWritersOfOneFileDoNotMeet) {
  const auto a = AtomicFileWriter::Create(Path("x"));
  const auto b = AtomicFileWriter::Create(Path("x"));
  ASSERT_TRUE(a.ok() && b.ok());
  ASSERT_TRUE((*a)->Append(Bytes("a")).ok());
  ASSERT_TRUE((*b)->Append(Bytes("b")).ok());
  ASSERT_TRUE((*a)->Commit().ok());
  ASSERT_TRUE((*b)->Commit().ok());
  EXPECT_EQ(ReadFile(Path("x")).value(), "b");
  EXPECT_EQ(CountFiles(), 1u);
}

TEST_F(FileTest, UnwritableIsSys002WithTheSystemsWords) {
  Put("file", "x");
  const struct {
    std::string path;
    std::string what;
  } cases[] = {
      {Path("missing/x"), std::strerror(ENOENT)},
      {Path("file/x"), std::strerror(ENOTDIR)},
      {folder_.string(), std::strerror(EISDIR)},
      {"", std::strerror(ENOENT)},
      {"/proc/belay-cannot-be-here", std::strerror(ENOENT)},
      {"/dev/null", "not a regular file"},  // a rename would replace it
      {"/dev/full", "not a regular file"},
  };
  for (const auto& c : cases) {
    const Status status = WriteFileAtomically(c.path, "text");
    EXPECT_EQ(ErrorIdOf(status), kSysWriteFailed.id) << c.path;
    EXPECT_EQ(ErrorFactsOf(status).where, c.path);
    EXPECT_EQ(ErrorFactsOf(status).what, c.what) << c.path;
  }
  EXPECT_EQ(CountFiles(), 1u);
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(FileTest, AFailedWriteLeavesTheOldFileAndNothingElse) {
  Put("x", "old");
  {
    const FileSizeLimit limit(1000);
    const Status status =
        WriteFileAtomically(Path("x"), std::string(5000, 'n'));
    EXPECT_EQ(ErrorIdOf(status), kSysWriteFailed.id);
    EXPECT_EQ(ErrorFactsOf(status).what, std::strerror(EFBIG));
    EXPECT_EQ(CountFiles(), 1u);

    const auto writer = AtomicFileWriter::Create(Path("x"));
    ASSERT_TRUE(writer.ok());
    EXPECT_FALSE((*writer)->Append(Bytes(std::string(5000, 'n'))).ok());
    EXPECT_EQ(CountFiles(), 1u);  // at once, not only in the destructor
    EXPECT_FALSE((*writer)->Commit().ok());
  }
  EXPECT_EQ(ReadFile(Path("x")).value(), "old");
}

// A rename onto a folder that appeared meanwhile fails after the data is
// written.
TEST_F(FileTest, AFailedRenameLeavesNothing) {
  const auto writer = AtomicFileWriter::Create(Path("x"));
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE((*writer)->Append(Bytes("text")).ok());
  fs::create_directory(Path("x"));
  const Status status = (*writer)->Commit();
  EXPECT_EQ(ErrorIdOf(status), kSysWriteFailed.id);
  EXPECT_EQ(ErrorFactsOf(status).what, std::strerror(EISDIR));
  EXPECT_EQ(CountFiles(), 1u);
}

}  // namespace
}  // namespace belay
