// SPDX-License-Identifier: Apache-2.0
#include <archive.h>
#include <archive_entry.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error_ids.h"
#include "base/file.h"
#include "toolkit/logs/input/archive.h"
#include "toolkit/logs/input/follow.h"
#include "toolkit/logs/input/inputs.h"
#include "toolkit/logs/input/reader.h"

namespace belay::logs {
namespace {

namespace fs = std::filesystem;

class InputTest : public testing::Test {
 protected:
  InputTest() {
    folder_ =
        fs::temp_directory_path() / ("belay_logs_" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  ~InputTest() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  std::string Write(const std::string& name, const std::string& text) {
    const fs::path path = folder_ / name;
    fs::create_directories(path.parent_path());
    EXPECT_TRUE(WriteFileAtomically(path.string(), text).ok());
    return path.string();
  }

  // A tar with gzip, or zstd.
  std::string WriteTar(
      const std::string& name,
      const std::vector<std::pair<std::string, std::string>>& files) {
    const std::string path = (folder_ / name).string();
    archive* a = archive_write_new();
    if (name.ends_with(".gz")) archive_write_add_filter_gzip(a);
    if (name.ends_with(".zst")) archive_write_add_filter_zstd(a);
    archive_write_set_format_pax_restricted(a);
    EXPECT_EQ(archive_write_open_filename(a, path.c_str()), ARCHIVE_OK);
    for (const auto& [inner, text] : files) {
      archive_entry* entry = archive_entry_new();
      archive_entry_set_pathname(entry, inner.c_str());
      archive_entry_set_size(entry, static_cast<la_int64_t>(text.size()));
      archive_entry_set_filetype(entry, AE_IFREG);
      archive_entry_set_perm(entry, 0644);
      EXPECT_EQ(archive_write_header(a, entry), ARCHIVE_OK);
      archive_write_data(a, text.data(), text.size());
      archive_entry_free(entry);
    }
    archive_write_close(a);
    archive_write_free(a);
    return path;
  }

  static std::map<std::string, std::string> Unpack(const std::string& path,
                                                   const ArchiveLimits& limits,
                                                   Status* status) {
    std::map<std::string, std::string> files;
    *status = ReadArchive(path, limits,
                          [&](const std::string& name, std::string_view piece) {
                            files[name] += piece;
                          });
    return files;
  }

  static const Knowledge& Known() {
    static const diag::Catalogue catalogue =
        diag::Catalogue::LoadEmbedded().value();
    static const Knowledge knowledge(catalogue);
    return knowledge;
  }

  fs::path folder_;
};

TEST_F(InputTest, ReadsArchivesInArchives) {
  const std::string inner = WriteTar("inner.tar.gz", {{"x/a.log", "hello\n"}});
  const std::string text = ReadFile(inner).value();
  for (const char* name : {"outer.tar", "outer.tar.gz", "outer.tar.zst"}) {
    SCOPED_TRACE(name);
    const std::string path =
        WriteTar(name, {{"n1.tar.gz", text}, {"b.log", "there\n"}});
    Status status;
    const auto files = Unpack(path, {}, &status);
    EXPECT_TRUE(status.ok()) << status;
    ASSERT_EQ(files.size(), 2u);
    EXPECT_EQ(files.at(path + "/n1.tar.gz/x/a.log"), "hello\n");
    EXPECT_EQ(files.at(path + "/b.log"), "there\n");
  }
}

TEST_F(InputTest, StopsBombs) {
  const std::string bomb =
      WriteTar("bomb.tar.gz", {{"a.log", std::string(8 << 20, '\0')}});
  Status status;
  ArchiveLimits limits;
  limits.free_bytes = 1 << 20;
  auto files = Unpack(bomb, limits, &status);
  EXPECT_EQ(ErrorIdOf(status), "LOGS-002") << status;
  EXPECT_LT(files.begin()->second.size(), 4u << 20);
  // The same inside another archive.
  const std::string nested =
      WriteTar("nested.tar", {{"bomb.tar.gz", ReadFile(bomb).value()}});
  files = Unpack(nested, limits, &status);
  EXPECT_EQ(ErrorIdOf(status), "LOGS-002") << status;
  limits = {};
  limits.max_bytes = 1000;
  EXPECT_TRUE(
      Unpack(WriteTar("small.tar", {{"a", "b"}}), limits, &status).size() ==
          1 &&
      status.ok());
  Unpack(WriteTar("large.tar", {{"a", std::string(2000, 'x')}}), limits,
         &status);
  EXPECT_EQ(ErrorIdOf(status), "LOGS-002");
  limits = {};
  limits.max_files = 2;
  Unpack(WriteTar("many.tar", {{"a", "1"}, {"b", "2"}, {"c", "3"}}), limits,
         &status);
  EXPECT_EQ(ErrorIdOf(status), "LOGS-002");
}

TEST_F(InputTest, TellsDamage) {
  const std::string good =
      ReadFile(WriteTar("good.tar.gz", {{"a.log", "error code is 507014\n"},
                                        {"b.log", std::string(100000, 'y')}}))
          .value();
  Status status;
  Unpack(Write("cut.tar.gz", good.substr(0, good.size() / 2)), {}, &status);
  EXPECT_EQ(ErrorIdOf(status), "LOGS-001") << status;
  // A damaged one inside does not hide its neighbours.
  const std::string outer = WriteTar(
      "outer.tar",
      {{"cut.tar.gz", good.substr(0, good.size() / 2)}, {"z.log", "last\n"}});
  const auto files = Unpack(outer, {}, &status);
  EXPECT_EQ(ErrorIdOf(status), "LOGS-001");
  EXPECT_EQ(files.at(outer + "/z.log"), "last\n");
}

TEST_F(InputTest, FoldersAndPiecesGiveTheSame) {
  std::string text;
  for (int i = 0; i < 2000; ++i) {
    text += "line " + std::to_string(i) + " is quiet\n";
    if (i % 400 == 399) text += "NPU: error code is 507014\n";
  }
  Write("logs/a.log", text);
  WriteTar("logs/b.tar.gz", {{"c.log", text}});
  const std::vector<std::string> paths = {(folder_ / "logs").string()};
  const auto inputs = ListInputs(paths);
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  ASSERT_EQ(inputs->size(), 2u);
  std::vector<uint64_t> lines;
  for (const uint64_t chunk : {1u, 100u, 777u, 1u << 20}) {
    ReadOptions options;
    options.n_threads = 2;
    options.chunk_bytes = chunk == 1 ? 37 : chunk;
    const auto result = ReadInputs(*inputs, Known(), options);
    ASSERT_TRUE(result.ok());
    ASSERT_EQ(result->files.size(), 2u);
    for (const FileFacts& file : result->files) {
      EXPECT_EQ(file.n_lines, 2005u);
      ASSERT_EQ(file.events.size(), 5u);
      EXPECT_EQ(file.events[0].line, 401u);
      EXPECT_EQ(file.events[4].line, 2005u);
    }
  }
}

TEST_F(InputTest, MissingPathsAreErrors) {
  const std::vector<std::string> paths = {(folder_ / "nothing").string()};
  EXPECT_EQ(ErrorIdOf(ListInputs(paths).status()), "SYS-001");
}

TEST_F(InputTest, FollowsGrowingFiles) {
  const std::string path = Write("a.log", "quiet\n");
  Follower follower(Known(), {folder_.string()});
  ASSERT_TRUE(follower.Poll().ok());
  EXPECT_TRUE(follower.News().empty());
  Write("a.log", "quiet\nNPU: error code is 507014\n");
  ASSERT_TRUE(follower.Poll().ok());
  const auto news = follower.News();
  ASSERT_EQ(news.size(), 1u);
  EXPECT_EQ(news[0].entry->id, "RT-039");
  EXPECT_EQ(news[0].place.line, 2u);
  ASSERT_TRUE(follower.Poll().ok());
  EXPECT_TRUE(follower.News().empty());
  Write("b/new.log", "NPU: error code is 507035\n");
  ASSERT_TRUE(follower.Poll().ok());
  ASSERT_EQ(follower.News().size(), 1u);
  EXPECT_EQ(follower.Now().findings.size(), 2u);
}

}  // namespace
}  // namespace belay::logs
