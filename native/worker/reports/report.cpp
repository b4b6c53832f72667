#include "native/worker/reports/report.h"

#include <unistd.h>

#include <cstdio>

namespace worker {

namespace {

std::string quoted(std::string_view text) {
  std::string json = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') json += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) {
      json += c;
      continue;
    }
    char escape[8];
    std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned char>(c));
    json += escape;
  }
  return json + '"';
}

}  // namespace

void JsonObject::addName(std::string_view name) {
  members_ += (members_.empty() ? "" : ",") + quoted(name) + ':';
}

JsonObject& JsonObject::add(std::string_view name, std::string_view text) {
  addName(name);
  members_ += quoted(text);
  return *this;
}

JsonObject& JsonObject::add(std::string_view name, std::uint64_t number) {
  addName(name);
  members_ += std::to_string(number);
  return *this;
}

JsonObject& JsonObject::add(std::string_view name, const JsonObject& object) {
  addName(name);
  members_ += object.text();
  return *this;
}

JsonObject& JsonObject::add(std::string_view name, std::span<const JsonObject> list) {
  addName(name);
  std::string elements;
  for (const JsonObject& object : list)
    elements.append(elements.empty() ? "" : ",").append(object.text());
  members_ += '[' + elements + ']';
  return *this;
}

void Report::event(std::string_view name, const JsonObject& line) {
  std::string text = line.text() + '\n';
  const std::string head = "{\"event\":" + quoted(name) + (text == "{}\n" ? "" : ",");
  text.replace(0, 1, head);
  const std::lock_guard lock(mutex_);
  [[maybe_unused]] const auto written = write(file_, text.data(), text.size());
}

}  // namespace worker
