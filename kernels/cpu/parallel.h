// Division of work among the threads of the CPU backend. OpenMP is used here and nowhere else.
#pragma once

#include <omp.h>

#include <cstdint>

namespace tessera {

// body(i) for every i in [0, count), each once, in any order and on any thread: results must not
// depend on either. `body` must not throw. OpenMP ends threads that a smaller team leaves out, so
// the team is always all threads or none.
template <typename Body>
void parallel_for(int64_t count, int num_threads, Body&& body) {
  if (count <= 1 || num_threads == 1) {
    for (int64_t i = 0; i < count; ++i) body(i);
    return;
  }
#pragma omp parallel for num_threads(num_threads) schedule(dynamic)
  for (int64_t i = 0; i < count; ++i) body(i);
}

// The index of the calling thread within parallel_for, in [0, num_threads).
inline int thread_index() { return omp_get_thread_num(); }

// While it lives, libraries that this thread calls and that use OpenMP do not start threads of
// their own; parallel_for still does.
class SerialLibraries {
 public:
  SerialLibraries() : max_threads_before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~SerialLibraries() { omp_set_num_threads(max_threads_before_); }
  SerialLibraries(const SerialLibraries&) = delete;
  SerialLibraries& operator=(const SerialLibraries&) = delete;

 private:
  int max_threads_before_;
};

}  // namespace tessera
