"""Loads libraries by name with ctypes and prints from which file each came, as probe.c does."""
import ctypes
import os
import sys


class Information(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p if name.endswith('base') or name == 'address'
                 else ctypes.c_char_p) for name in ('file', 'base', 'name', 'address')]


for library in sys.argv[1:]:
    symbol = 'nvmlInit_v2' if 'nvidia-ml' in library else 'cuInit'
    function = getattr(ctypes.CDLL(library), symbol)
    found = Information()
    ctypes.CDLL(None).dladdr(ctypes.cast(function, ctypes.c_void_p), ctypes.byref(found))
    file = os.stat(found.file)
    print(library, found.file.decode(), file.st_dev, file.st_ino)
