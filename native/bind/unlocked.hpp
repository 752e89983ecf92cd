// Runs work without the interpreter's lock, even on threads that return after the interpreter has finalised.
#pragma once

#include <Python.h>

#include <chrono>
#include <thread>

namespace tonari {

// Releases the interpreter's lock while this object exists.
class Unlocked {
 public:
  Unlocked() : state_(PyEval_SaveThread()) {}
  ~Unlocked() {
    // Once an interpreter finalises, no daemon thread gets the lock again. CPython ends such a thread with pthread_exit
    // (3.14 lets it wait forever), for which glibc unwinds its stack. Unwinding through functions that must not throw,
    // such as this one and nanobind's, calls std::terminate, and SIGABRT ends the process. So the unwinding stops here,
    // and the thread waits until the process ends. It holds nothing that others need.
    try {
      PyEval_RestoreThread(state_);
    } catch (...) {
      for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
    }
  }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

}  // namespace tonari
