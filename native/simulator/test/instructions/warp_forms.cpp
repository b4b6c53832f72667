// What the lanes of a warp tell each other: shfl, vote, match, redux, elect, activemask.
#include <algorithm>
#include <bit>

#include "native/simulator/test/instructions/integers.h"

namespace instructions {
namespace {

constexpr std::uint32_t kAll = 0xffffffff, kOdd = 0xaaaaaaaa;

/// The lanes that take part: all of them, or those of odd number while the others keep what
/// `before` wrote.
struct Members {
  std::uint32_t lanes;
  const char* text;
  const char* guard;
};
constexpr Members kMembers[] = {{kAll, "0xffffffff", ""}, {kOdd, "0xaaaaaaaa", "@%odd "}};

void add(Forms& forms, const std::string& name, const std::vector<Kind>& results,
         const std::vector<Kind>& sources, const std::string& body, const WarpReference& reference,
         const std::string& remark) {
  forms.push_back({name, results, sources, body, {}, {}, remark, reference});
}

bool has(std::uint32_t lanes, unsigned lane) { return lanes >> lane & 1; }

/// Where lane `lane` reads, and whether that is inside of its segment.
int shuffledFrom(const std::string& mode, unsigned lane, u64 b, u64 c, bool& inside) {
  const int offset = static_cast<int>(b & 31), bound = static_cast<int>(c & 31),
            segment = static_cast<int>(c >> 8 & 31);
  const int self = static_cast<int>(lane), first = self & segment,
            last = first | (bound & ~segment);
  int from = self - offset;
  if (mode == "down") from = self + offset;
  if (mode == "bfly") from = self ^ offset;
  if (mode == "idx") from = first | (offset & ~segment);
  inside = mode == "up" ? from >= last : from <= last;
  return inside ? from : self;
}

void shuffles(Forms& forms) {
  for (const std::string& name : expand("shfl.sync.(up|down|bfly|idx).b32")) {
    const std::string mode = Words(name)[2];
    for (const Members& members : kMembers) {
      const std::uint32_t lanes = members.lanes;
      const auto reference = [=](const u64(*s)[4], u64(*d)[2]) {
        std::uint32_t defined = 0;
        for (unsigned lane = 0; lane < 32; ++lane) {
          if (!has(lanes, lane)) continue;
          bool inside = false;
          const auto from =
              static_cast<unsigned>(shuffledFrom(mode, lane, s[lane][1], s[lane][2], inside));
          d[lane][0] = cut(s[from % 32][0], 32);
          d[lane][1] = inside;
          if (from < 32 && has(lanes, from)) defined |= 1u << lane;
        }
        return defined;
      };
      const std::string operands = ", %s0, %s1, %s2, " + std::string(members.text) + ";",
                        start = members.guard + name;
      const std::vector<Kind> sources{Kind::Int32, Kind::Amount, Kind::Amount};
      add(forms, name, {Kind::Int32, Kind::Pred}, sources, start + " %d0|%d1" + operands, reference,
          members.text);
      add(forms, name, {Kind::Int32}, sources, start + " %d0" + operands, reference, members.text);
      // The bounds that compilers use: segments of 8 lanes.
      const auto segments = [=](const u64(*s)[4], u64(*d)[2]) {
        u64 copy[32][4];
        for (unsigned lane = 0; lane < 32; ++lane) {
          copy[lane][0] = s[lane][0];
          copy[lane][1] = s[lane][1];
          copy[lane][2] = mode == "up" ? 0x1800 : 0x181f;
        }
        return reference(copy, d);
      };
      const std::string bound = mode == "up" ? "0x1800" : "0x181f";
      add(forms, name, {Kind::Int32, Kind::Pred}, {Kind::Int32, Kind::Amount},
          start + " %d0|%d1, %s0, %s1, " + bound + ", " + members.text + ";", segments,
          std::string(members.text) + ", segments of 8");
    }
  }
}

std::uint32_t lanesWith(const u64 (*s)[4], std::uint32_t lanes, bool negated) {
  std::uint32_t yes = 0;
  for (unsigned lane = 0; lane < 32; ++lane)
    yes |= static_cast<std::uint32_t>(bool(s[lane][0] & 1) != negated) << lane;
  return yes & lanes;
}

void votes(Forms& forms) {
  for (const std::string& name : expand("vote.sync.(all.pred|any.pred|uni.pred|ballot.b32)")) {
    const std::string mode = Words(name)[2];
    const bool ballot = mode == "ballot";
    for (const Members& members : kMembers) {
      for (const bool negated : {false, true}) {
        for (const char* how : {"random", "all", "none"}) {
          const std::uint32_t lanes = members.lanes;
          const std::string kind = how;
          const auto reference = [=](const u64(*s)[4], u64(*d)[2]) {
            u64 values[32][4];
            for (unsigned lane = 0; lane < 32; ++lane)
              values[lane][0] = kind == "random" ? s[lane][0] : kind == "all";
            const std::uint32_t yes = lanesWith(values, lanes, negated);
            const bool truth = mode == "all"   ? yes == lanes
                               : mode == "any" ? yes != 0
                                               : yes == 0 || yes == lanes;
            for (unsigned lane = 0; lane < 32; ++lane) d[lane][0] = ballot ? yes : truth;
            return lanes;
          };
          const std::string compare = kind == "random" ? "setp.ne.and.u32 %p, 1, 0, %s0;"
                                      : kind == "all"  ? "setp.eq.u32 %p, 0, 0;"
                                                       : "setp.ne.u32 %p, 0, 0;";
          const std::string body = compare + members.guard + name + " %d0, " +
                                   (negated ? "!%p, " : "%p, ") + members.text + ";";
          add(forms, name, {ballot ? Kind::Int32 : Kind::Pred}, {Kind::Pred}, body, reference,
              std::string(members.text) + ", " + how + (negated ? ", negated" : ""));
        }
      }
    }
  }
}

void matches(Forms& forms) {
  for (const std::string& name : expand("match.(any|all).sync.(b32|b64)")) {
    const Words words(name);
    const bool any = words[1] == "any", wide = words.last() == "b64";
    for (const Members& members : kMembers) {
      for (const unsigned keep : {0u, 3u}) {  // bits of the operand: 0 makes all lanes equal
        const std::uint32_t lanes = members.lanes;
        const auto reference = [=](const u64(*s)[4], u64(*d)[2]) {
          std::uint32_t same[32] = {};
          bool all = true;
          for (unsigned lane = 0; lane < 32; ++lane) {
            for (unsigned other = 0; other < 32; ++other) {
              const bool equal = (s[lane][0] & keep) == (s[other][0] & keep);
              same[lane] |= static_cast<std::uint32_t>(equal && has(lanes, other)) << other;
              all &= equal || !has(lanes, lane) || !has(lanes, other);
            }
          }
          for (unsigned lane = 0; lane < 32; ++lane) {
            d[lane][0] = any ? same[lane] : all ? lanes : 0;
            d[lane][1] = all;
          }
          return lanes;
        };
        const std::string value = wide ? "%x0" : "%t0",
                          cutting = wide ? "and.b64 %x0, %s0, " : "and.b32 %t0, %s0, ";
        const std::string body = cutting + std::to_string(keep) + ";" + members.guard + name +
                                 (any ? " %d0, " : " %d0|%d1, ") + value + ", " + members.text +
                                 ";";
        std::vector<Kind> results{Kind::Int32};
        if (!any) results.push_back(Kind::Pred);
        add(forms, name, results, {wide ? Kind::Int64 : Kind::Int32}, body, reference,
            std::string(members.text) + ", mask " + std::to_string(keep));
      }
    }
  }
}

void reductions(Forms& forms) {
  for (const char* pattern :
       {"redux.sync.(add|min|max).(u32|s32)", "redux.sync.(and|or|xor).b32"}) {
    for (const std::string& name : expand(pattern)) {
      const Words words(name);
      const std::string mode = words[2];
      const Integer type = integerType(words.last());
      for (const Members& members : kMembers) {
        const std::uint32_t lanes = members.lanes;
        const auto reference = [=](const u64(*s)[4], u64(*d)[2]) {
          const auto first = static_cast<unsigned>(std::countr_zero(lanes));
          i128 total = numberIn(s[first][0], type);
          for (unsigned lane = first + 1; lane < 32; ++lane) {
            if (!has(lanes, lane)) continue;
            const i128 v = numberIn(s[lane][0], type);
            total = mode == "add"   ? total + v
                    : mode == "min" ? std::min(total, v)
                    : mode == "max" ? std::max(total, v)
                    : mode == "and" ? total & v
                    : mode == "or"  ? total | v
                                    : total ^ v;
          }
          for (unsigned lane = 0; lane < 32; ++lane) d[lane][0] = cut(static_cast<u128>(total), 32);
          return lanes;
        };
        add(forms, name, {Kind::Int32}, {Kind::Int32},
            members.guard + name + " %d0, %s0, " + members.text + ";", reference, members.text);
      }
    }
  }
}

void others(Forms& forms) {
  for (const Members& members : kMembers) {
    const std::uint32_t lanes = members.lanes;
    const auto masked = [=](const u64(*)[4], u64(*d)[2]) {
      for (unsigned lane = 0; lane < 32; ++lane) d[lane][0] = lanes;
      return lanes;
    };
    add(forms, "activemask.b32", {Kind::Int32}, {},
        std::string(members.guard) + "activemask.b32 %d0;", masked, members.text);
    // Which lane is elected is up to the machine; all agree on it, and it alone gets the predicate.
    const auto elected = [=](const u64(*)[4], u64(*d)[2]) {
      for (unsigned lane = 0; lane < 32; ++lane) d[lane][0] = 1;
      return lanes;
    };
    const std::string mask = members.text, guard = members.guard;
    const std::string body = guard + "elect.sync %t0|%p, " + mask + "; selp.b32 %t1, 1, 0, %p;" +
                             guard + "redux.sync.add.u32 %d0, %t1, " + mask + ";";
    add(forms, "elect.sync", {Kind::Int32}, {}, body, elected, members.text);
  }
}

/// Each lane writes a word of shared memory and reads its neighbour's behind the barrier.
void barriers(Forms& forms) {
  const auto neighbour = [](const u64(*s)[4], u64(*d)[2]) {
    for (unsigned lane = 0; lane < 32; ++lane) d[lane][0] = cut(s[lane ^ 1][0], 32);
    return kAll;
  };
  const std::string body =
      "mov.u32 %t0, %tid.x; mul.lo.u32 %t0, %t0, 4; mov.u32 %a32, scratch; add.u32 %t1, %a32, %t0; "
      "st.shared.u32 [%t1], %s0;"
      "bar.warp.sync 0xffffffff; xor.b32 %t0, %t0, 4; add.u32 %t1, %a32, %t0; ld.shared.u32 %d0, "
      "[%t1];";
  add(forms, "bar.warp.sync", {Kind::Int32}, {Kind::Int32}, body, neighbour, {});
}

}  // namespace

void warpForms(Forms& forms) {
  shuffles(forms);
  votes(forms);
  matches(forms);
  reductions(forms);
  others(forms);
  barriers(forms);
}

}  // namespace instructions
