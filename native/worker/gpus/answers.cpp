#include "native/worker/gpus/answers.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <tuple>

#include "native/worker/driver/driver_start.h"
#include "nvml/fields.h"

namespace worker {

namespace {

using namespace nvml;

std::string textOf(Return status, const void* bytes, std::size_t count) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text = std::to_string(static_cast<int>(status)) + ' ';
  for (std::size_t i = 0; status == kSuccess && i < count; ++i) {
    const auto byte = static_cast<const unsigned char*>(bytes)[i];
    text += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return text;
}

/// Zeros, also between the members, and the version of a struct that has one.
template <class Value>
void clear(Value& value) {
  std::memset(static_cast<void*>(&value), 0, sizeof value);
  if constexpr (requires { Value::kVersion; }) value.version = versionOf<Value>();
}

/// Asks call(device, keys..., Results*...) and adds the bytes of the results.
template <class... Results, class... Keys>
void add(JsonObject& answers, void* library, Device device, const char* call, Keys... keys) {
  Return (*function)(Device, Keys..., Results * ...) = nullptr;
  if (!find(library, call, function)) return;
  std::tuple<Results...> results;
  std::string bytes;
  const Return status = std::apply(
      [&](Results&... each) {
        (clear(each), ...);
        const Return answered = function(device, keys..., &each...);
        (bytes.append(reinterpret_cast<const char*>(&each), sizeof each), ...);
        return answered;
      },
      results);
  if (status == kNotSupported) return;
  std::string name = call;
  ((name += '/' + std::to_string(keys)), ...);
  answers.add(name, textOf(status, bytes.data(), bytes.size()));
}

template <class... Keys>
void addText(JsonObject& answers, void* library, const char* call, unsigned length,
             const std::string& suffix, Keys... keys) {
  Return (*function)(Keys..., char*, unsigned) = nullptr;
  if (!find(library, call, function)) return;
  std::string text(length, '\0');
  const Return status = function(keys..., text.data(), length);
  if (status != kNotSupported)
    answers.add(call + suffix, textOf(status, text.data(), strnlen(text.data(), length)));
}

/// Keys 0 to count - 1 in each place.
template <class Result>
void addKeyed(JsonObject& answers, void* library, Device device, const char* call, unsigned count) {
  for (unsigned a = 0; a < count; ++a) add<Result>(answers, library, device, call, a);
}

template <class Result>
void addKeyed(JsonObject& answers, void* library, Device device, const char* call, unsigned first,
              unsigned second) {
  for (unsigned i = 0; i < first * second; ++i)
    add<Result>(answers, library, device, call, i / second, i % second);
}

template <class Result>
void addKeyed(JsonObject& answers, void* library, Device device, const char* call, unsigned first,
              unsigned second, unsigned third) {
  for (unsigned i = 0; i < first * second * third; ++i)
    add<Result>(answers, library, device, call, i / (second * third), i / third % second,
                i % third);
}

}  // namespace

#define VALUE(call, Type) add<Type>(answers, library_, device, #call);
#define PAIR(call, First, Second) add<First, Second>(answers, library_, device, #call);
#define FOUR(call, Type) add<Type, Type, Type, Type>(answers, library_, device, #call);
#define TEXT(call, bytes) addText(answers, library_, #call, bytes, "", device);
#define BUFFER(call, bytes) add<Buffer<bytes>>(answers, library_, device, #call);
#define KEYED(call, keys, Type) addKeyed<Type>(answers, library_, device, #call, keys);
#define KEYED_TEXT(call, keys, bytes)       \
  for (unsigned key = 0; key < keys; ++key) \
    addText(answers, library_, #call, bytes, '/' + std::to_string(key), device, key);
#define KEYED2(call, first, second, Type) \
  addKeyed<Type>(answers, library_, device, #call, first, second);
#define KEYED3(call, first, second, third, Type) \
  addKeyed<Type>(answers, library_, device, #call, first, second, third);
#define VERSIONED(call, Struct) add<Struct>(answers, library_, device, #call);

JsonObject NvmlAnswers::constants(Device device) const {
  JsonObject answers;
#include "nvml/constants.def"
  return answers;
}

JsonObject NvmlAnswers::readings(Device device) const {
  JsonObject answers;
#include "nvml/readings.def"
  addFields(answers, device);
  return answers;
}

JsonObject NvmlAnswers::system() const {
  constexpr unsigned kLength = 96;
  JsonObject answers;
  addText(answers, library_, "nvmlSystemGetDriverVersion", kLength, "");
  addText(answers, library_, "nvmlSystemGetNVMLVersion", kLength, "");
  Return (*version)(int*) = nullptr;
  int number = 0;
  if (find(library_, "nvmlSystemGetCudaDriverVersion_v2", version) &&
      version(&number) == kSuccess) {
    number = std::min(number, kNewestApi);
    answers.add("nvmlSystemGetCudaDriverVersion_v2", textOf(kSuccess, &number, sizeof number));
  }
  Return (*branch)(DriverBranch*, unsigned) = nullptr;
  DriverBranch found;
  clear(found);
  if (find(library_, "nvmlSystemGetDriverBranch", branch) &&
      branch(&found, sizeof found.branch) == kSuccess)
    answers.add("nvmlSystemGetDriverBranch",
                textOf(kSuccess, found.branch, strnlen(found.branch, sizeof found.branch)));
  return answers;
}

void NvmlAnswers::addPeer(JsonObject& answers, Device device, Device peer,
                          const std::string& uuid) const {
  constexpr unsigned kCapabilities = 5;
  Return (*function)(Device, Device, unsigned, unsigned*) = nullptr;
  if (!find(library_, "nvmlDeviceGetP2PStatus", function)) return;
  for (unsigned capability = 0; capability < kCapabilities; ++capability) {
    unsigned status = 0;
    if (function(device, peer, capability, &status) == kSuccess)
      answers.add("nvmlDeviceGetP2PStatus/" + uuid + '/' + std::to_string(capability),
                  textOf(kSuccess, &status, sizeof status));
  }
}

/// The answer of a field: the type of its value, and the value.
void NvmlAnswers::addFields(JsonObject& answers, Device device) const {
  Return (*function)(Device, int, FieldValue*) = nullptr;
  if (!find(library_, "nvmlDeviceGetFieldValues", function)) return;
  std::vector<FieldValue> fields;
  for (const FieldRange& range : kFields) {
    for (unsigned i = 0; i < (range.last - range.first + 1) * range.scopes; ++i)
      fields.push_back({.fieldId = range.first + i / range.scopes, .scopeId = i % range.scopes});
  }
  if (function(device, static_cast<int>(fields.size()), fields.data()) != kSuccess) return;
  for (const FieldValue& field : fields) {
    char bytes[sizeof field.valueType + sizeof field.value];
    std::memcpy(bytes, &field.valueType, sizeof field.valueType);
    std::memcpy(bytes + sizeof field.valueType, &field.value, sizeof field.value);
    if (field.status != kNotSupported)
      answers.add("nvmlDeviceGetFieldValues/" + std::to_string(field.fieldId) + '/' +
                      std::to_string(field.scopeId),
                  textOf(field.status, bytes, sizeof bytes));
  }
}

}  // namespace worker
