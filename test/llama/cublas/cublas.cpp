// Stands in for cuBLAS: every call is refused. ggml asks for it only where it has no kernel.

#define REFUSED(call) \
  int call() { return 15; }  // CUBLAS_STATUS_NOT_SUPPORTED

extern "C" {

REFUSED(cublasCreate_v2)
REFUSED(cublasDestroy_v2)
REFUSED(cublasSetStream_v2)
REFUSED(cublasSetWorkspace_v2)
REFUSED(cublasSetMathMode)
REFUSED(cublasLoggerConfigure)
REFUSED(cublasSgemm_v2)
REFUSED(cublasSgemmBatched)
REFUSED(cublasSgemmStridedBatched)
REFUSED(cublasGemmEx)
REFUSED(cublasGemmBatchedEx)
REFUSED(cublasGemmStridedBatchedEx)
REFUSED(cublasStrsmBatched)

const char* cublasGetStatusString() { return "cuBLAS is not in this build"; }

}  // extern "C"
