// The floating-point environment in which every answer is defined: results are rounded to nearest, ties to even,
// subnormal numbers are kept, and no exception traps. A process may have another environment: fesetround,
// torch.set_flush_denormal and libraries that were built with -ffast-math change it, and threads inherit it.
#pragma once

#include <atomic>

#if defined(__x86_64__) || defined(_M_X64) || defined(__SSE2__)
#include <xmmintrin.h>
#elif !defined(__aarch64__)
#include <cfenv>
#endif

namespace tonari {

#if defined(__x86_64__) || defined(_M_X64) || defined(__SSE2__)
// MXCSR. Its six lowest bits are flags of past exceptions and change no result.
class FloatControl {
 public:
  static FloatControl current() { return FloatControl(_mm_getcsr()); }
  static FloatControl usual() { return FloatControl(0x1f80); }
  bool is_usual() const { return (bits_ & ~0x3fu) == usual().bits_; }
  void apply() const { _mm_setcsr(bits_); }

 private:
  explicit FloatControl(unsigned bits) : bits_(bits) {}
  unsigned bits_;
};
#elif defined(__aarch64__)
// FPCR.
class FloatControl {
 public:
  static FloatControl current() {
    unsigned long long bits;
    asm volatile("mrs %0, fpcr" : "=r"(bits));
    return FloatControl(bits);
  }
  static FloatControl usual() { return FloatControl(0); }
  bool is_usual() const { return bits_ == 0; }
  void apply() const { asm volatile("msr fpcr, %0" : : "r"(bits_)); }

 private:
  explicit FloatControl(unsigned long long bits) : bits_(bits) {}
  unsigned long long bits_;
};
#else
class FloatControl {
 public:
  static FloatControl current() {
    FloatControl control;
    std::fegetenv(&control.environment_);
    return control;
  }
  static FloatControl usual() {
    FloatControl control;
    control.is_usual_ = true;
    return control;
  }
  bool is_usual() const { return is_usual_; }
  void apply() const { std::fesetenv(is_usual_ ? FE_DFL_ENV : &environment_); }

 private:
  std::fenv_t environment_{};
  bool is_usual_ = false;  // this platform's environment cannot be read, so every call sets and restores it
};
#endif

// Sets the default environment on this thread while this object exists, then restores the previous one.
class DefaultFloats {
 public:
  DefaultFloats() : before_(FloatControl::current()) {
    if (!before_.is_usual()) FloatControl::usual().apply();
    std::atomic_signal_fence(std::memory_order_seq_cst);  // otherwise compilers may move arithmetic across this
  }
  ~DefaultFloats() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (!before_.is_usual()) before_.apply();
  }
  DefaultFloats(const DefaultFloats&) = delete;
  DefaultFloats& operator=(const DefaultFloats&) = delete;

 private:
  FloatControl before_;
};

}  // namespace tonari
