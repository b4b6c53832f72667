// Loads libraries by name and prints from which file each came: NAME FILE DEVICE INODE.
// Compiled with -DLINKED it takes no names: the libraries that it was linked with are printed.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static int show(const char* name, void* symbol) {
  Dl_info info;
  struct stat file;
  if (symbol == NULL || dladdr(symbol, &info) == 0 || stat(info.dli_fname, &file) != 0) {
    printf("%s ! no symbol of it is found\n", name);
    return 1;
  }
  printf("%s %s %lu %lu\n", name, info.dli_fname, file.st_dev, file.st_ino);
  return 0;
}

#ifdef LINKED
int cuInit(unsigned flags);

/// Any argument: it also makes a call, whose result is not of interest.
int main(int count, char** arguments) {
  if (count > 1 && arguments[1] != NULL) cuInit(0);
  return show("-lcuda", (void*)cuInit);
}
#else
int main(int count, char** names) {
  int missing = 0;
  for (int i = 1; i < count; ++i) {
    void* library = dlopen(names[i], RTLD_NOW);
    if (library == NULL) {
      printf("%s ! %s\n", names[i], dlerror());
      missing = 1;
      continue;
    }
    const char* symbol = strstr(names[i], "nvidia-ml") != NULL ? "nvmlInit_v2" : "cuInit";
    missing |= show(names[i], dlsym(library, symbol));
  }
  return missing;
}
#endif
