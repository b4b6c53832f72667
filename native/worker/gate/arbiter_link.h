// The worker's connection to the arbiter, and the mailbox page. If no arbiter is configured, the
// page is zero, which means: open.
#pragma once

#include <atomic>
#include <string>

#include "native/arbiter/mailbox.h"

namespace worker {

class ArbiterLink {
 public:
  ArbiterLink();
  ~ArbiterLink();
  ArbiterLink(const ArbiterLink&) = delete;
  ArbiterLink& operator=(const ArbiterLink&) = delete;

  /// The address is constant; the page behind it changes with the connection.
  arbiter::Mailbox& mailbox() const { return *mailbox_; }
  /// The same number for all connections, so that any thread may write to it at any time.
  int file() const { return file_; }
  bool connected() const { return connected_; }

  /// Closes the gate until the arbiter's first grant. Call it before other threads use the page.
  void await();
  /// There was no grant yet.
  bool isAwaiting() const { return rule_ == Rule::awaited; }
  /// The grant in the mailbox comes from the arbiter.
  bool isRuled() const { return rule_ == Rule::arbiter; }
  /// Whether the session passes while the arbiter is away: only if it has no fixed share.
  bool isOpenWithoutArbiter() const { return rule_ != Rule::awaited && shareWithoutArbiter_ == 0; }
  /// Parts of a million of the time; 0: no limit.
  std::uint32_t shareWithoutArbiter() const { return shareWithoutArbiter_; }
  /// Sets the grant in place of the arbiter. Only on the gate's thread, and while !isRuled().
  void rule(arbiter::Grant grant);
  /// A futex for threads that wait while !isRuled(). It changes with the grant and with the page.
  std::atomic<std::uint32_t>& changes() { return changes_; }

  /// Tries once; false if no arbiter listens.
  bool connect(const std::string& path);
  /// Receives the mailbox, or a byte that announces a change. False if the arbiter is gone.
  bool receive();
  /// Notifies the arbiter of a change in the mailbox. Any thread.
  void poke() const;

 private:
  enum class Rule : std::uint8_t { none, awaited, arbiter, away };
  bool map(int memory);
  void disconnect();
  void replaceBy(void* page, Rule rule);
  void lift();

  arbiter::Mailbox* mailbox_;
  int file_;
  bool connected_ = false;
  std::atomic<Rule> rule_{Rule::none};
  std::uint32_t shareWithoutArbiter_ = 0;  ///< what the last arbiter said
  std::atomic<std::uint32_t> changes_{0};
};

}  // namespace worker
