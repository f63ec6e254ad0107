// oneDNN within the threads of the pool.
#pragma once

#include <omp.h>

namespace tessera {

// While it lives, oneDNN works on the calling thread alone: it is asked by every thread of the
// pool.
class SingleThreadedLibrary {
 public:
  SingleThreadedLibrary() : max_threads_before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~SingleThreadedLibrary() { omp_set_num_threads(max_threads_before_); }
  SingleThreadedLibrary(const SingleThreadedLibrary&) = delete;
  SingleThreadedLibrary& operator=(const SingleThreadedLibrary&) = delete;

 private:
  int max_threads_before_;  // OpenMP keeps this number for every thread by itself
};

}  // namespace tessera
