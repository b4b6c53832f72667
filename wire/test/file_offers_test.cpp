// Files pass from one process to another that knows their key, and to no other.
#include "wire/file_offers.h"

#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "test/unit/program.h"
#include "wire/anonymous_file.h"

namespace {

int fileWith(char content) {
  const int file = wire::createAnonymousFile("test", MFD_CLOEXEC);
  CHECK(pwrite(file, &content, 1, 0) == 1);
  return file;
}

char contentOf(int file) {
  char content = '?';
  return file >= 0 && pread(file, &content, 1, 0) == 1 ? content : '?';
}

/// What another process gets for the key.
char fetchedElsewhere(const std::string& address, const wire::FileKey& key) {
  const pid_t child = fork();
  if (child == 0) _exit(contentOf(wire::fetchFile(address, key)));
  int status = 0;
  waitpid(child, &status, 0);
  return static_cast<char>(WEXITSTATUS(status));
}

void check(const std::string& address) {
  auto& offers = *new wire::FileOffers(address);
  wire::FileKey first, second;
  REQUIRE(wire::makeFileKey(first));
  REQUIRE(wire::makeFileKey(second));
  REQUIRE(offers.offer(first, fileWith('a')));
  CHECK(fetchedElsewhere(address, first) == 'a');
  CHECK(fetchedElsewhere(address, first) == 'a');
  CHECK(fetchedElsewhere(address, second) == '?');
  REQUIRE(offers.offer(second, fileWith('b')));
  CHECK(fetchedElsewhere(address, second) == 'b');
  offers.withdraw(first);
  CHECK(fetchedElsewhere(address, first) == '?');
}

}  // namespace

TEST_CASE("a file is fetched through an abstract socket by its key, until it is withdrawn") {
  check("@file-offers-test-" + std::to_string(getpid()));
}

TEST_CASE("a file is fetched through a socket in a directory, also after a dead process had it") {
  const std::string path = "/tmp/file-offers-test-" + std::to_string(getpid());
  const pid_t child = fork();
  if (child == 0) {
    wire::FileKey key{};
    _exit((new wire::FileOffers(path))->offer(key, fileWith('c')) ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(wire::fetchFile(path, {}) == -1);
  check(path);
  unlink(path.c_str());
}

TEST_CASE("an address that no socket can have is refused") {
  wire::FileOffers offers("/tmp/" + std::string(200, 'x'));
  CHECK(!offers.offer({}, fileWith('a')));
  CHECK(wire::fetchFile("", {}) == -1);
}
