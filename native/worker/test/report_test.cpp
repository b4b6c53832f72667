#include "native/worker/reports/report.h"

#include <doctest/doctest.h>
#include <unistd.h>

TEST_CASE("events are lines of JSON") {
  int ends[2];
  CHECK(pipe(ends) == 0);
  worker::Report report(ends[1]);
  const auto gpu = worker::JsonObject().add("name", "a \"GPU\"\n").add("memory", 7);
  report.event("started", worker::JsonObject().add("pid", 12).add("gpu", gpu));
  report.event("nothing", worker::JsonObject());
  const worker::JsonObject list[] = {gpu, worker::JsonObject().add("n", 1)};
  CHECK(worker::JsonObject().add("gpus", list).text() ==
        R"({"gpus":[{"name":"a \"GPU\"\u000a","memory":7},{"n":1}]})");
  CHECK(worker::JsonObject().add("none", std::span<const worker::JsonObject>()).text() ==
        R"({"none":[]})");
  char text[512];
  const auto bytes = read(ends[0], text, sizeof text);
  CHECK(std::string_view(text, bytes) ==
        "{\"event\":\"started\",\"pid\":12,\"gpu\":{\"name\":\"a "
        "\\\"GPU\\\"\\u000a\",\"memory\":7}}\n{\"event\":\"nothing\"}\n");
}
