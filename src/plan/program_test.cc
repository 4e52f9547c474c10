// What a program brings along, and what a hostile checkout can't make it bring.
#include "plan/program.h"

#include <sys/stat.h>
#include <unistd.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace belljar::plan {
namespace {

namespace fs = std::filesystem;

class Bringing : public ::testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/var/tmp/belljar-test-XXXXXX";
    ASSERT_NE(::mkdtemp(path), nullptr);
    root_ = fs::canonical(path);
    home_ = Directory("home/user");
    caller_.Set("HOME", home_.native());
    Write("home/user/.ssh/key", "secret");
  }
  void TearDown() override { fs::remove_all(root_); }

  fs::path Directory(const std::string& name) const {
    fs::create_directories(root_ / name);
    return root_ / name;
  }
  void Write(const std::string& name, const std::string& text = "") const {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << text;
  }
  std::string MakeProgram(const std::string& name, const std::string& text = "#!/bin/sh\n") const {
    Write(name, text);
    ::chmod((root_ / name).c_str(), 0755);
    return root_ / name;
  }
  void Link(const std::string& target, const std::string& name) const {
    fs::create_directories((root_ / name).parent_path());
    fs::create_symlink(target, root_ / name);
  }
  /// A Python as pyenv or uv install it.
  std::string Python(const std::string& prefix) const {
    MakeProgram(prefix + "/bin/python3.12");
    Link("python3.12", prefix + "/bin/python3");
    Write(prefix + "/lib/python3.12/os.py");
    return root_ / prefix;
  }
  std::string Venv(const std::string& prefix, const std::string& target) const {
    Write(prefix + "/pyvenv.cfg");
    Link(target, prefix + "/bin/python");
    return root_ / prefix;
  }
  static std::vector<std::string> Paths(const Program& program) {
    std::vector<std::string> paths;
    paths.reserve(program.brought.size());
    for (const Brought& brought : program.brought) paths.push_back(brought.path);
    std::ranges::sort(paths);
    return paths;
  }
  using Strings = std::vector<std::string>;

  fs::path root_;
  fs::path home_;
  Caller caller_;
};

TEST_F(Bringing, AVirtualEnvironmentAndThePythonThatItIsOf) {
  const std::string python = Python("home/user/.pyenv/versions/3.12.1");
  const std::string venv = Venv("home/user/work/venv", python + "/bin/python3");
  const Program program = FindProgram({}, venv + "/bin/python", caller_);
  EXPECT_FALSE(program.refusal) << program.refusal->Text();
  EXPECT_EQ(Paths(program), (Strings{python, venv}));
  EXPECT_TRUE(program.links.empty());
  EXPECT_EQ(program.exec_paths, Strings{venv + "/bin/python"});
  EXPECT_TRUE(program.path.starts_with(venv + "/bin:"));
}

TEST_F(Bringing, LinksOnTheWayAreMadeAgain) {
  const std::string python = Python("home/user/.local/share/uv/python/cpython-3.12.1");
  Link("cpython-3.12.1", "home/user/.local/share/uv/python/cpython-3.12");
  const std::string venv = Venv("home/user/work/venv", home_ / ".local/share/uv/python/cpython-3.12/bin/python3");
  const Program program = FindProgram({}, venv + "/bin/python", caller_);
  EXPECT_FALSE(program.refusal) << program.refusal->Text();
  EXPECT_EQ(Paths(program), (Strings{python, venv}));
  ASSERT_EQ(program.links.size(), 1U);
  EXPECT_EQ(program.links[0].at, home_ / ".local/share/uv/python/cpython-3.12");
}

// The attack: a link in the way makes the prefix of a program the whole host.
TEST_F(Bringing, ALinkToTheRootBringsNothing) {
  const std::string venv = Venv("home/user/checkout/venv", "../../link/bin/sh");
  Link("/", "home/user/checkout/link");
  const Program program = FindProgram({}, venv + "/bin/python", caller_);
  EXPECT_EQ(Paths(program), Strings{venv});
  for (const sys::Link& link : program.links) EXPECT_EQ(link.at, home_ / "checkout/link");
}

TEST_F(Bringing, NoLinkHandsOverAHome) {
  MakeProgram("home/user/bin/tool");
  Write("home/user/pyvenv.cfg");
  Directory("home/user/conda-meta");
  const std::string venv = Venv("home/user/checkout/venv", "../../../bin/tool");
  const Program program = FindProgram({}, venv + "/bin/python", caller_);
  ASSERT_TRUE(program.refusal);
  EXPECT_NE(program.refusal->Text().find("--ro " + (home_ / "bin/tool").string()), std::string::npos);
  EXPECT_EQ(Paths(program), Strings{venv});
}

TEST_F(Bringing, NoLinkHandsOverSomebodysProject) {
  Venv("home/user/other", "/usr/bin/python3");  // A virtual environment made in the project's own directory.
  MakeProgram("home/user/other/bin/tool");
  Write("home/user/other/.env", "TOKEN=secret");
  const std::string venv = Venv("home/user/checkout/venv", home_ / "other/bin/tool");
  const Program program = FindProgram({}, venv + "/bin/python", caller_);
  ASSERT_TRUE(program.refusal);
  EXPECT_NE(program.refusal->Text().find(".env"), std::string::npos) << program.refusal->Text();
  EXPECT_EQ(Paths(program), Strings{venv});
}

TEST_F(Bringing, NoLinkHandsOverTheHiddenPartsOfAHome) {
  Python("home/user/.local");
  const std::string venv = Venv("home/user/checkout/venv", home_ / ".local/bin/python3");
  const Program program = FindProgram({}, venv + "/bin/python", caller_);
  EXPECT_TRUE(program.refusal);
  EXPECT_EQ(Paths(program), Strings{venv});
}

TEST_F(Bringing, MarksThatAreLinksCountForNothing) {
  Link("/", "home/user/checkout/conda-meta");
  Link("/usr/lib/os-release", "home/user/checkout/pyvenv.cfg");
  const std::string tool = MakeProgram("home/user/checkout/bin/tool");
  EXPECT_EQ(Paths(FindProgram({}, tool, caller_)), Strings{tool});
}

// Without its packages it would be the system's Python, and the reason hard to guess.
TEST_F(Bringing, AnEnvironmentThatIsWithheldSaysSo) {
  const std::string project = Venv("home/user/project", "/usr/bin/python3");
  Write("home/user/project/main.py");
  const Program program = FindProgram({}, project + "/bin/python", caller_);
  ASSERT_TRUE(program.refusal);
  EXPECT_NE(program.refusal->Text().find("main.py"), std::string::npos) << program.refusal->Text();
  EXPECT_NE(program.refusal->Text().find("--ro " + project), std::string::npos) << program.refusal->Text();
  EXPECT_FALSE(FindProgram(Policy().ReadOnly(project, project), project + "/bin/python", caller_).refusal);
}

TEST_F(Bringing, OneFileWhereThereIsNoToolchain) {
  const std::string tool = MakeProgram("home/user/tool");
  Link("tool", "home/user/alias");
  Link(home_, "home/user/checkout/out");
  EXPECT_EQ(Paths(FindProgram({}, tool, caller_)), Strings{tool});
  for (const char* link : {"home/user/alias", "home/user/checkout/out/tool"}) {
    const Program program = FindProgram({}, root_ / link, caller_);
    EXPECT_TRUE(program.refusal) << link;
    EXPECT_TRUE(program.brought.empty()) << link;
  }
}

TEST_F(Bringing, ALinkedToolchainIsTheCallersOwn) {
  const std::string python = Python("home/user/.pyenv/versions/3.12.1");
  const std::string venv = Venv("home/user/work/venv", python + "/bin/python3");
  ::chmod((python + "/bin").c_str(), 0777);
  const Program anybodys = FindProgram({}, venv + "/bin/python", caller_);
  EXPECT_TRUE(anybodys.refusal);
  EXPECT_EQ(Paths(anybodys), Strings{venv});
  ::chmod((python + "/bin").c_str(), 0755);
  const Program writable = FindProgram(Policy().ReadWrite(home_ / ".pyenv", "/data"), venv + "/bin/python", caller_);
  ASSERT_TRUE(writable.refusal);
  EXPECT_NE(writable.refusal->Text().find("/data"), std::string::npos);
}

TEST_F(Bringing, AScriptsFirstLineCountsInItsOwnToolchain) {
  const std::string python = Python("home/user/.pyenv/versions/3.12.1");
  const std::string venv = Venv("home/user/work/venv", python + "/bin/python3");
  const std::string script = MakeProgram("home/user/work/venv/bin/tool", "#!" + venv + "/bin/python\n");
  EXPECT_EQ(Paths(FindProgram({}, script, caller_)), (Strings{python, venv}));
  const std::string other = MakeProgram("home/user/work/venv/bin/other", "#!" + python + "/bin/python3\n");
  EXPECT_EQ(Paths(FindProgram({}, other, caller_)), Strings{venv});
}

TEST_F(Bringing, AShimsVersionIsAName) {
  const std::string shim = MakeProgram("home/user/checkout/shims/python");
  MakeProgram("home/user/checkout/bin/python");
  Directory("home/user/checkout/versions");
  Write("home/user/checkout/version", "..\n");
  caller_.Set("PATH", (home_ / "checkout/shims").native());
  const Program program = FindProgram({}, "python", caller_);
  EXPECT_EQ(program.exec_paths, Strings{shim});
}

TEST(Follow, GoesAsTheKernelDoes) {
  char path[] = "/var/tmp/belljar-test-XXXXXX";
  ASSERT_NE(::mkdtemp(path), nullptr);
  const fs::path root = fs::canonical(path);
  fs::create_directories(root / "a/b");
  std::ofstream(root / "a/file") << "x";
  fs::create_symlink("a/b", root / "down");
  fs::create_symlink("loop", root / "loop");
  const auto trail = sys::Follow(root / "down/../file");
  ASSERT_TRUE(trail);
  EXPECT_EQ(trail->end, root / "a/file");
  ASSERT_EQ(trail->links.size(), 1U);
  EXPECT_EQ(trail->links[0].at, root / "down");
  EXPECT_FALSE(sys::Follow(root / "loop"));
  EXPECT_FALSE(sys::Follow(root / "a/file/x"));
  EXPECT_FALSE(sys::Follow(root / "nothing"));
  EXPECT_EQ(sys::Follow("/")->end, "/");
  fs::remove_all(root);
}

}  // namespace
}  // namespace belljar::plan
