-- config.lua: settings of the process: threads, precision, determinism, devices.
--
-- Threads belong to the process, precision to this Lua state's context; devices and shards are of the process and have to be set before the
-- first strategy is made.

local host = require "flow.host"
local native = require "flow.ffi"
local errors = require "flow.errors"
local devices = require "flow.devices"
local shards = require "flow.shards"

local C, raise = native.C, errors.raise
local signature = require "flow.signature"

local config = signature.module "flow.config"

-- Compute threads of the process; 0 = one per core that may be used.
function config.set_threads(count)
  if type(count) ~= "number" or count < 0 or count ~= math.floor(count) or count >= 2 ^ 31 then
    raise("flow.config.set_threads: a whole number from 0 (one per core), got %s", errors.describe(count))
  end
  native.check(C.flow_set_threads(count))
end

-- The number that is in force: never 0.
function config.get_threads()
  return C.flow_threads()
end

-- "fast" (the default) lets kernels trade rounding for speed: a convolution by Winograd's F(4x4) errs by about 1e-6 of its
-- largest value, and on a GPU factors of float32 have 10 bits (TF32). "exact" takes only algorithms that round no worse than
-- the direct one. Holds for what is computed or traced from now on in this Lua state; traced functions are traced again.
function config.set_precision(name)
  if name ~= "fast" and name ~= "exact" then
    raise("flow.config.set_precision: \"fast\" or \"exact\", got %s", errors.describe(name))
  end
  C.flow_context_set_exact(native.context, name == "exact" and 1 or 0)
end

-- "fast" or "exact".
function config.get_precision()
  return C.flow_context_exact(native.context) == 1 and "exact" or "fast"
end

-- The CPU's kernels add in an order that depends on shapes only: results are the same whatever the number of threads, so
-- for one number of replicas there is nothing to switch. { shards = 8 }, alone or after true: the same bits for any number of workers,
-- too (shards.lua); strategies have 8 replicas, and those that exist already are in the way.
signature.takes "enabled?: boolean, { shards? }"
function config.enable_op_determinism(enabled, options)
  local what = "flow.config.enable_op_determinism"
  if enabled ~= false and host.getenv "FLOW_CUDA_TUNE" == "1" then
    raise("%s: with FLOW_CUDA_TUNE=1 GPUs take the algorithms that were fastest when they were tried, perhaps others elsewhere; unset it",
      what)
  end
  if enabled == false and options.shards then raise("%s: shards go with true, not with false", what) end
  shards.set(what, options.shards)
end

-- Divides the CPU in `count` devices "cpu:0", "cpu:1", ..., each a thread, so that strategies of several replicas can be tried
-- without GPUs. Must be called before the first strategy is made.
function config.set_logical_devices(kind, count)
  devices.set_logical("flow.config.set_logical_devices", kind, count)
end

-- Names of the devices that are there, of one kind if that is given: "cpu:0", "gpu:0".
local function named(list) return require "flow.classes.printed"(list) end
function config.list_devices(kind) return named(devices.physical("flow.config.list_devices", kind)) end
function config.list_physical_devices(kind) return named(devices.physical("flow.config.list_physical_devices", kind)) end
-- The same as set_logical_devices has divided them: what strategies can use.
function config.list_logical_devices(kind) return named(devices.list("flow.config.list_logical_devices", kind)) end

return config
