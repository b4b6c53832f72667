// The one function of libm that libc++'s hash tables call. Defined here, programs that are loaded
// with this library do not load libm, which takes a quarter of the time.

extern "C" float ceilf(float value) {
  const auto whole = static_cast<float>(static_cast<long>(value));
  return whole < value ? whole + 1 : whole;
}
