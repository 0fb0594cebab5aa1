--- GPUs for specs on machines without one: lets this process see the emulated devices of the build under test
--- (spec/cuda/emulation/emulation.h). To be required before flow's first look for a GPU.
local ffi = require "ffi"
require "spec.support.init"

pcall(ffi.cdef, "int setenv(const char *name, const char *value, int overwrite);")

local folder = os.getenv("FLOWLUA_LIB"):match("^(.*)/[^/]*$") .. "/emulated"
local emulated = { folder = folder }

ffi.C.setenv("FLOW_PLUGINS", folder, 1)

--- As on GPUs float32 would be multiplied in TF32, factors of 10 bits, else: specs compare with the CPU's results.
require("flow").config.set_precision("exact")

--- Why there are none; nil where there are two.
function emulated.missing()
  local file = io.open(folder .. "/libflow_cuda.so")
  if file then file:close() return nil end
  return "this build has no emulated device"
end

return emulated
