-- devices.lua: the devices of this process and their names: "cpu:0", and as many more logical CPU devices as were asked for, each a
-- thread, to try a strategy of several replicas without GPUs.

local errors = require "flow.errors"

local raise = errors.raise
local devices = {}

local MOST = 64
local logical                -- CPU devices that were asked for; nil: the one that is there
local used_by = false        -- who relies on their number

-- Kind and number of a device name: "cpu", "CPU:0", "/cpu:0", "/device:CPU:0", "/job:worker/task:0/device:CPU:0".
local function parse(name)
  return name:lower():gsub("^/job:.*/device:", ""):gsub("^/", ""):gsub("^device:", ""):match("^(%a+):?(%d*)$")
end

-- Whether a text names a device, be it there or not.
function devices.is_name(name)
  local kind = type(name) == "string" and parse(name)
  return kind == "cpu" or kind == "gpu" or kind == "cuda"
end

local function cpu_names()
  local list = {}
  for i = 1, logical or 1 do list[i] = ("cpu:%d"):format(i - 1) end
  return list
end

-- The name in one form, "cpu:0", of a device that exists. Raises otherwise.
function devices.canonical(name)
  if type(name) ~= "string" then raise("a device is a string such as \"cpu\", got %s", errors.describe(name)) end
  local kind, number = parse(name)
  if kind == "gpu" or kind == "cuda" then raise("device %q: there is no GPU back end in this build; use \"cpu\"", name) end
  if kind ~= "cpu" then raise("unknown device %q: use \"cpu\"", name) end
  number = tonumber(number) or 0
  if number >= (logical or 1) then
    local list = cpu_names()
    raise("device %q does not exist: this process has only %s%s", name,
      #list == 1 and '"cpu:0"' or ('"%s" to "%s"'):format(list[1], list[#list]),
      #list == 1 and "; flow.config.set_logical_devices(\"cpu\", 4) gives it more, to try a strategy" or "")
  end
  return ("cpu:%d"):format(number)
end

local function kind_of(what, kind)
  if kind == nil then return nil end
  if type(kind) ~= "string" then raise("%s: \"cpu\" or \"gpu\", got %s", what, errors.describe(kind)) end
  local lower = kind:lower()
  if lower ~= "cpu" and lower ~= "gpu" then raise("%s: \"cpu\" or \"gpu\", got %q", what, kind) end
  return lower
end

-- Names of the devices that are there, of one kind or of all (nil); what: who asks.
function devices.physical(what, kind)
  return kind_of(what, kind) == "gpu" and {} or { "cpu:0" }
end

-- The same with logical devices in place of the physical one.
function devices.list(what, kind)
  return kind_of(what, kind) == "gpu" and {} or cpu_names()
end

-- What a strategy takes when it is not told: all GPUs, else all logical CPU devices.
function devices.default()
  return cpu_names()
end

-- Divides the CPU in `count` devices. Only before a strategy relies on them.
function devices.set_logical(what, kind, count)
  if kind_of(what, kind) == nil then raise("%s: \"cpu\", got nil", what) end
  if kind_of(what, kind) == "gpu" then raise("%s: there is no GPU back end in this build; use \"cpu\"", what) end
  if type(count) ~= "number" or count < 1 or count > MOST or count ~= math.floor(count) then
    raise("%s: a whole number of devices from 1 to %d, got %s", what, MOST, errors.describe(count))
  end
  if used_by and count ~= (logical or 1) then
    raise("%s: %s was made with the devices as they are, %d: call it at the beginning of the program", what, used_by, logical or 1)
  end
  logical = count
end

-- From now on the number of devices stays as it is: a strategy of this name was made.
function devices.used(by)
  used_by = used_by or by
end

return devices
