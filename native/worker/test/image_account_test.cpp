// Memory of images beyond what a context provides for is charged, and refunded.
#include "native/worker/accounts/image_account.h"

#include <doctest/doctest.h>

TEST_CASE("images are charged beyond what a context provides for") {
  constexpr std::uint64_t kProvided = worker::ImageAccount::kProvided;
  worker::Quota quota;
  worker::ImageAccount account(quota);
  CHECK(account.charge(kProvided - 10));
  CHECK(quota.used() == 0);
  account.remember(1, kProvided - 10, nullptr);
  CHECK(account.charge(30));
  CHECK(quota.used() == 20);
  account.remember(2, 30, nullptr);
  CHECK(account.charge(1000));
  CHECK(quota.used() == 1020);
  account.refund(1000);
  account.forget(1);
  account.forget(1);
  CHECK(quota.used() == 0);
  CHECK(account.charge(kProvided));
  CHECK(quota.used() == 30);
  account.remember(3, kProvided, nullptr);
  account.forget(2);
  account.forget(3);
  CHECK(quota.used() == 0);
}

TEST_CASE("a module ends with its context, a library does not") {
  constexpr std::uint64_t kProvided = worker::ImageAccount::kProvided;
  worker::Quota quota;
  worker::ImageAccount account(quota);
  const int context = 0;
  CHECK(account.charge(kProvided + 5));
  CHECK(account.charge(7));
  CHECK(quota.used() == 12);
  account.remember(4, kProvided + 5, nullptr);
  account.remember(5, 7, &context);
  account.forgetOwned(nullptr);
  CHECK(quota.used() == 12);
  account.forgetOwned(&context);
  account.forget(5);
  CHECK(quota.used() == 5);
  account.forget(4);
  CHECK(quota.used() == 0);
}
