// The functions of cuBLASLt, whose shared library is loaded when a GPU is used and not before.
#pragma once

#include <cublasLt.h>

namespace tessera {

// Each field is the library's function of that name, `create` its cublasLtCreate.
//
// Linked as usual, the library's half a gigabyte would be loaded before main() by every process,
// also by those that compute on the CPU: over 0.1 s each, and without the file nothing would start.
struct CublasLibrary {
  decltype(&cublasLtCreate) create;
  decltype(&cublasLtDestroy) destroy;
  decltype(&cublasLtGetStatusString) get_status_string;
  decltype(&cublasLtMatmul) matmul;
  decltype(&cublasLtMatmulAlgoConfigGetAttribute) matmul_algo_config_get_attribute;
  decltype(&cublasLtMatmulAlgoGetHeuristic) matmul_algo_get_heuristic;
  decltype(&cublasLtMatmulDescCreate) matmul_desc_create;
  decltype(&cublasLtMatmulDescDestroy) matmul_desc_destroy;
  decltype(&cublasLtMatmulDescSetAttribute) matmul_desc_set_attribute;
  decltype(&cublasLtMatmulPreferenceCreate) matmul_preference_create;
  decltype(&cublasLtMatmulPreferenceDestroy) matmul_preference_destroy;
  decltype(&cublasLtMatmulPreferenceSetAttribute) matmul_preference_set_attribute;
  decltype(&cublasLtMatrixLayoutCreate) matrix_layout_create;
  decltype(&cublasLtMatrixLayoutDestroy) matrix_layout_destroy;
  decltype(&cublasLtMatrixLayoutSetAttribute) matrix_layout_set_attribute;
};

// Loads the library at the first call, from where the system and the program's run path look for
// libraries, else from where this program was built. Any thread may call it; the others wait.
// Throws Error with the loader's words where the file or a function is missing.
const CublasLibrary& cublas();

}  // namespace tessera
