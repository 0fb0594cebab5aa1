--- A host that has called setlocale for a country that writes 0,5: printf writes commas, strtod stops at points. Debian installs no such
--- locale, so that the numeric part of one is made here, as glibc compiles it; spec/c/comma_locale.h says what the bytes are.
local ffi = require "ffi"
local support = require "spec.support.init"

pcall(ffi.cdef, "char *setlocale(int category, const char *name);")
pcall(ffi.cdef, "int setenv(const char *name, const char *value, int overwrite);")
pcall(ffi.cdef, "int unsetenv(const char *name);")
pcall(ffi.cdef, "struct lconv { char *decimal_point; }; struct lconv *localeconv(void);")

local LC_NUMERIC = 1
local BYTES = "\20\17\3\32\6\0\0\0\32\0\0\0\34\0\0\0\36\0\0\0\40\0\0\0\44\0\0\0\48\0\0\0,\0\0\0\255\0\0\0,\0\0\0\0\0\0\0UTF-8\0"

local comma_locale = {}

--- A folder for LOCPATH, in which that locale is called comma.
function comma_locale.folder()
  local folder = support.folder()
  os.execute("mkdir " .. folder .. "/comma")
  support.write(folder .. "/comma/LC_NUMERIC", BYTES)
  return folder
end

--- Calls f() in that locale and returns what it returns; nil and a reason where the C library reads no such file.
function comma_locale.call(f)
  ffi.C.setenv("LOCPATH", comma_locale.folder(), 1)
  local set = ffi.C.setlocale(LC_NUMERIC, "comma") ~= nil and ffi.string(ffi.C.localeconv().decimal_point) == ","
  ffi.C.unsetenv "LOCPATH"
  if not set then return nil, "this C library reads no locale of glibc" end
  local ok, result = pcall(f)
  ffi.C.setlocale(LC_NUMERIC, "C")
  if not ok then error(result, 0) end
  return result
end

return comma_locale
