// Work without the interpreter's lock, by threads that may come back when there is no interpreter left.
#pragma once

#include <Python.h>

#include <chrono>
#include <thread>

namespace tonari {

// Gives the lock up for as long as this lives.
class Unlocked {
 public:
  Unlocked() : state_(PyEval_SaveThread()) {}
  ~Unlocked() {
    // An interpreter that has begun to finalise lets no daemon thread in again. CPython ends such a thread by
    // pthread_exit (3.14 lets it wait for ever), which glibc does by unwinding its stack; and through functions that
    // must not throw, as this one and nanobind's, that is std::terminate and the end of the process by SIGABRT. Here
    // the unwinding ends, and the thread waits, holding nothing that others need, until the process is gone.
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
