#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <cstdlib>

#include "bind/binds.hpp"
#include "exact/kernels.hpp"

namespace nb = nanobind;

namespace tonari {

void bind_cpu(Module& module) {
  module.def(
      "supported_isas",
      [] {
        std::vector<std::string> names;
        for (Isa isa : supported_isas()) names.emplace_back(isa_name(isa));
        return names;
      },
      "Instruction sets of this machine that the kernels were built for, weakest first.");
  module.def(
      "environment",
      [](const char* first, const char* second) {
        const auto value = [](const char* name) -> nb::object {
          // read under the interpreter's lock, as Python's changes to it are
          const char* const text = std::getenv(name);
          return text == nullptr ? nb::none() : nb::object(nb::bytes(text));
        };
        return nb::make_tuple(value(first), value(second));
      },
      nb::arg("first"), nb::arg("second"),
      "Two environment variables, as os.environ sets them: bytes, or None if not set.");
  module.def(
      "kernel_names",
      [] {
        std::vector<std::string> names;
        for (const Kernel* kernel : available_kernels()) names.emplace_back(kernel->name);
        return names;
      },
      "Names of the screen's kernels that can run here: operation/precision/instruction set.");
  module.def(
      "look_kernel", [](const std::string& screen) { return look_kernel(kernel_named(screen)).name; },
      nb::arg("screen"), "The name of the kernel of a look at contracted rows before a screen.");
  module.def(
      "peak_rate",
      [](const std::string& name, double seconds) {
        if (!(seconds > 0 && std::isfinite(seconds))) {  // otherwise the measurement would not end, or give no rate
          refuse("seconds=" + std::to_string(seconds) + ": expected a finite number above 0");
        }
        for (const Kernel* kernel : available_kernels()) {
          if (name == kernel->name) {
            Unlocked unlocked;
            return kernel->peak(seconds);
          }
        }
        refuse("no kernel " + name + " on this machine");
      },
      nb::arg("kernel"), nb::arg("seconds") = 0.2,
      "Operations per second of one core repeating the instruction that the kernel lives on.");
}

}  // namespace tonari
