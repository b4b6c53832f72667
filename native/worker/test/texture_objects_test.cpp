#include "native/worker/session/texture_objects.h"

#include "test/unit/program.h"

namespace {

using wire::HandleKind;

TEST_CASE("an object lives in its context, as what it was made, until it is destroyed") {
  wire::HandleTable handles;
  worker::TextureObjects objects(handles);
  int one = 0, other = 0;
  auto* const a = reinterpret_cast<CUcontext>(&one);
  auto* const b = reinterpret_cast<CUcontext>(&other);
  objects.created(HandleKind::texture, a, 7);
  CHECK(objects.lives(HandleKind::texture, a, 7));
  CHECK(!objects.lives(HandleKind::surface, a, 7));
  CHECK(!objects.lives(HandleKind::texture, b, 7));
  CHECK(!objects.lives(HandleKind::texture, a, 8));
  objects.created(HandleKind::texture, b, 7);
  objects.created(HandleKind::surface, a, 7);
  CHECK(handles.size() == 3);
  objects.destroyed(HandleKind::texture, a, 7);
  objects.destroyed(HandleKind::texture, a, 7);
  CHECK(!objects.lives(HandleKind::texture, a, 7));
  CHECK(objects.lives(HandleKind::texture, b, 7));
  CHECK(handles.size() == 2);
}

TEST_CASE("the objects of a context end with it, and the handles that they count as") {
  wire::HandleTable handles;
  worker::TextureObjects objects(handles);
  int contexts[2] = {};
  auto* const a = reinterpret_cast<CUcontext>(&contexts[0]);
  auto* const b = reinterpret_cast<CUcontext>(&contexts[1]);
  for (std::uint64_t value = 0; value < 100; ++value) {
    for (CUcontext context : {a, b}) {
      objects.created(HandleKind::texture, context, value);
      objects.created(HandleKind::surface, context, value);
    }
  }
  CHECK(handles.size() == 400);
  objects.ended(a);
  CHECK(handles.size() == 200);
  CHECK(!objects.lives(HandleKind::texture, a, 5));
  CHECK(objects.lives(HandleKind::surface, b, 99));
  objects.ended(b);
  objects.ended(nullptr);
  CHECK(handles.size() == 0);
}

}  // namespace
