#pragma once

#include <weir/runtime/bytes.h>
#include <weir/runtime/result.h>
#include <weir/runtime/rng.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir::chat_sessions {

// A numbered line of a session, in messages and answers: "17<tab>make it Paris".
struct Line {
  std::uint64_t number = 0;  // in its session, from 1
  std::string_view text;     // borrows

  // Errors: kInvalidRecord.
  static Result<Line> parse(ByteView bytes);
  std::string to_string() const;
};

struct Message {
  std::string session;
  std::uint64_t number = 0;  // in its session, from 1
  std::string line;
};

// The messages of all travellers, in the order in which they are sent; one seed is one sequence.
// Threading: confined to its owner.
class Chat {
 public:
  // `nonsense`: probability that a message is one that no bot understands.
  Chat(std::uint64_t seed, std::uint64_t sessions, double nonsense);
  Message next();
  // Whether a session is of this seed.
  bool owns(ByteView session) const { return session.starts_with(prefix_); }

 private:
  std::string text(bool is_first);

  Rng rng_;
  double nonsense_;
  std::string prefix_;                  // of sessions
  std::vector<std::uint64_t> numbers_;  // sent, by session
};

// Whether attempt `attempt` at a message fails as if a service were down; drawn by seed, session,
// number and attempt, so that every run fails alike.
bool fails(std::uint64_t seed, ByteView session, std::uint64_t number, std::uint32_t attempt,
           double rate);

}  // namespace weir::chat_sessions
