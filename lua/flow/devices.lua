-- devices.lua: the devices of this process and their names: "cpu:0"; more logical CPU devices if a script asks for them, each a thread, to
-- try a strategy of several replicas without GPUs; "gpu:0", "gpu:1", ... if there are GPUs.
--
-- Tensors are made on the CPU, unless flow.device("gpu:0", f) says otherwise, an option does, or the environment variable FLOW_DEVICE.
-- Ops run where their inputs are.
--
-- The library counts GPUs from 0 and calls the CPU -1: devices.number and devices.name convert. Logical CPU devices exist in Lua only:
-- their tensors are all on the CPU, and a strategy gives each a replica with a thread.

local host = require "flow.host"
local native = require "flow.ffi"
local errors = require "flow.errors"
local scopes = require "flow.scopes"
local signature = require "flow.signature"

local C, check, raise = native.C, native.check, errors.raise
local devices = signature.module("flow", {}, nil, true)

local MOST = 64
local logical                -- CPU devices that were asked for; nil: the one that is there
local used_by = false        -- who relies on their number

---- names -----------------------------------------------------------------------------------------------------------

local KINDS = { cpu = "cpu", gpu = "gpu", cuda = "gpu" }

-- Kind and number of a device name: "cpu", "CPU:0", "/cpu:0", "/device:CPU:0", "/job:worker/task:0/device:CPU:0", "gpu:1", "cuda:1".
local function parse(name)
  local kind, number = name:lower():gsub("^/job:.*/device:", ""):gsub("^/", ""):gsub("^device:", ""):match("^(%a+):?(%d*)$")
  return KINDS[kind], tonumber(number) or 0
end

-- Whether a text names a device, be it there or not.
function devices.is_name(name)
  return type(name) == "string" and parse(name) ~= nil
end

-- Names in the order of their numbers.
local function cpu_names()
  local list = {}
  for i = 1, logical or 1 do list[i] = ("cpu:%d"):format(i - 1) end
  return list
end

local function gpu_names()
  local list = {}
  for i = 1, C.flow_gpu_count() do list[i] = ("gpu:%d"):format(i - 1) end
  return list
end

-- One sentence that says why there is no GPU; nil where there is one.
function devices.missing_gpu()
  if C.flow_gpu_count() > 0 then return nil end
  return native.string(C.flow_gpu_missing())
end

local function all_names()
  local list = cpu_names()
  for _, name in ipairs(gpu_names()) do list[#list + 1] = name end
  return list
end

-- '"cpu:0"', or '"gpu:0" to "gpu:3"'.
local function range_text(list)
  return #list == 1 and ("%q"):format(list[1]) or ("%q to %q"):format(list[1], list[#list])
end

-- Raises for a device that does not exist: the message lists those that do, and says what is missing.
local function raise_missing(name)
  local cpus, gpus, hint = cpu_names(), gpu_names(), ""
  if #gpus == 0 and parse(name) == "gpu" then hint = "; there is no GPU: " .. devices.missing_gpu()
  elseif #gpus == 0 and #cpus == 1 then hint = "; flow.config.set_logical_devices(\"cpu\", 4) gives it more, to try a strategy" end
  raise("device %q does not exist: this process has %s%s%s", name, #gpus == 0 and "only " or "", range_text(cpus),
    #gpus > 0 and " and " .. range_text(gpus) or hint)
end

-- The name in one form, "cpu:0", of a device that exists. Raises otherwise.
function devices.canonical(name)
  if type(name) ~= "string" then raise("a device is a string such as \"cpu\", got %s", errors.describe(name)) end
  local kind, number = parse(name)
  if not kind then raise("unknown device %q: use \"cpu\" or \"gpu:0\"", name) end
  if number >= (kind == "gpu" and C.flow_gpu_count() or logical or 1) then raise_missing(name) end
  return ("%s:%d"):format(kind, number)
end

-- A device's number for the library: that of a GPU, or -1 for any CPU device. Raises if there is no such device.
function devices.number(name)
  local kind, number = parse(devices.canonical(name))
  return kind == "gpu" and number or -1
end

-- The other way round. All CPU devices have one memory, "cpu".
function devices.name(number)
  return number < 0 and "cpu" or ("gpu:%d"):format(number)
end

-- "cpu", "gpu" or nil, of an argument of any case; raises for another value. what: names the caller.
local function kind_of(what, kind)
  if kind == nil then return nil end
  if type(kind) ~= "string" then raise("%s: \"cpu\" or \"gpu\", got %s", what, errors.describe(kind)) end
  local lower = kind:lower()
  if lower ~= "cpu" and lower ~= "gpu" then raise("%s: \"cpu\" or \"gpu\", got %q", what, kind) end
  return lower
end

---- lists -----------------------------------------------------------------------------------------------------------

-- Names of the devices that are there, of one kind or of all (nil); what: the caller, as messages name it.
function devices.physical(what, kind)
  kind = kind_of(what, kind)
  local list = kind ~= "gpu" and { "cpu:0" } or {}
  for _, name in ipairs(kind ~= "cpu" and gpu_names() or {}) do list[#list + 1] = name end
  return list
end

-- The same with logical devices in place of the physical one.
function devices.list(what, kind)
  kind = kind_of(what, kind)
  return kind == "gpu" and gpu_names() or kind == "cpu" and cpu_names() or all_names()
end

-- "NVIDIA H200, sm_90, ..." and bytes of memory of a GPU, by its number.
function devices.describe(number)
  local text, bytes = native.out("const char"), native.array("double", 1)
  check(C.flow_gpu_describe(number, text, bytes))
  return native.string(text[0]), bytes[0]
end

-- Bytes of a GPU, by its number, that tensors could take now.
function devices.free_memory(number)
  return C.flow_gpu_free_memory(number)
end

-- What a GPU was asked for since it was first used: { uploads =, uploaded_bytes =, downloads =, downloaded_bytes =, waits =, replays = }.
function devices.traffic(number)
  local counts = native.array("flow_gpu_traffic", 1)[0]
  check(C.flow_gpu_read_traffic(number, counts))
  return { uploads = counts.uploads, uploaded_bytes = counts.uploaded_bytes, downloads = counts.downloads,
           downloaded_bytes = counts.downloaded_bytes, waits = counts.waits, replays = counts.replays }
end

-- What a strategy takes when it is not told: all GPUs; where there is none, all logical CPU devices.
function devices.default()
  local gpus = gpu_names()
  return #gpus > 0 and gpus or cpu_names()
end

-- Divides the CPU in `count` devices. Only before a strategy relies on them.
function devices.set_logical(what, kind, count)
  if kind_of(what, kind) == nil then raise("%s: \"cpu\", got nil", what) end
  if kind_of(what, kind) == "gpu" then raise("%s: a GPU cannot be divided; use \"cpu\"", what) end
  if type(count) ~= "number" or count < 1 or count > MOST or count ~= math.floor(count) then
    raise("%s: a whole number of devices from 1 to %d, got %s", what, MOST, errors.describe(count))
  end
  if used_by and count ~= (logical or 1) then
    raise("%s: %s was made with the devices as they are, %d: call it at the beginning of the program", what, used_by, logical or 1)
  end
  logical = count
end

-- From now on the number of devices is fixed: a strategy of this name was made.
function devices.used(by)
  used_by = used_by or by
end

-- That name, or nil.
function devices.user() return used_by end

---- the current one -------------------------------------------------------------------------------------------------

-- Number of the device where what is made now is.
function devices.current()
  return C.flow_context_device(native.context)
end

-- Calls f(...) with tensors made, and functions traced, on a device of this number; returns its results. The device of before counts again
-- afterwards, also after an error or an interrupt.
function devices.within(number, f, ...)
  local before = devices.current()
  if number == before then return f(...) end
  return native.between(function() check(C.flow_context_set_device(native.context, number)) end,
    function() check(C.flow_context_set_device(native.context, before)) end, f, ...)
end

-- flow.device("gpu:0", f, ...): f's results; what f makes is there.
signature.takes("device, f: callable, arguments...", true)
function devices.device(name, f, ...)
  if not signature.is_callable(f) then raise("flow.device takes a device and a function, got %s", errors.describe(f)) end
  return devices.within(devices.number(name), f, ...)
end

local named = host.getenv("FLOW_DEVICE") or ""
if named ~= "" then
  scopes.set_default_device(devices.number(named))
  check(C.flow_context_set_device(native.context, devices.number(named)))
end

return devices
