#include "kernels/cuda/device/cublas_library.h"

#include <dlfcn.h>

#include <string>

#include "kernels/tensor/check.h"

namespace tessera {
namespace {

// Never closed: the library's own threads and handlers may run until the process ends.
void* open_library() {
  const std::string name = concat("libcublasLt.so.", CUBLAS_VER_MAJOR);
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr) return library;
  const std::string problem = dlerror();
  library = dlopen(concat(TESSERA_CUBLAS_FOLDER "/", name).c_str(), RTLD_NOW | RTLD_LOCAL);
  CHECK(library != nullptr, "the GPU's matrix library, ", name,
        " of the CUDA toolkit, cannot be loaded: ", problem,
        "; with its folder in LD_LIBRARY_PATH it is found");
  return library;
}

template <typename Function>
void find(Function*& function, void* library, const char* name) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  CHECK(function != nullptr, "the GPU's matrix library has no ", name);
}

CublasLibrary load() {
  void* library = open_library();
  CublasLibrary all{};
  find(all.create, library, "cublasLtCreate");
  find(all.destroy, library, "cublasLtDestroy");
  find(all.get_status_string, library, "cublasLtGetStatusString");
  find(all.matmul, library, "cublasLtMatmul");
  find(all.matmul_algo_config_get_attribute, library, "cublasLtMatmulAlgoConfigGetAttribute");
  find(all.matmul_algo_get_heuristic, library, "cublasLtMatmulAlgoGetHeuristic");
  find(all.matmul_desc_create, library, "cublasLtMatmulDescCreate");
  find(all.matmul_desc_destroy, library, "cublasLtMatmulDescDestroy");
  find(all.matmul_desc_set_attribute, library, "cublasLtMatmulDescSetAttribute");
  find(all.matmul_preference_create, library, "cublasLtMatmulPreferenceCreate");
  find(all.matmul_preference_destroy, library, "cublasLtMatmulPreferenceDestroy");
  find(all.matmul_preference_set_attribute, library, "cublasLtMatmulPreferenceSetAttribute");
  find(all.matrix_layout_create, library, "cublasLtMatrixLayoutCreate");
  find(all.matrix_layout_destroy, library, "cublasLtMatrixLayoutDestroy");
  find(all.matrix_layout_set_attribute, library, "cublasLtMatrixLayoutSetAttribute");
  return all;
}

}  // namespace

const CublasLibrary& cublas() {
  static const CublasLibrary library = load();
  return library;
}

}  // namespace tessera
