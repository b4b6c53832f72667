// Stands in for NVIDIA's libraries of an image: they must not be loaded.
int cuInit(unsigned flags) { return flags == 0 ? 999 : 1; }
int nvmlInit_v2(void) { return 999; }
