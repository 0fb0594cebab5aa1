-- cross_device_ops.lua: TensorFlow's choices of how replicas of one process add up. On the CPU each is the same: in the memory that
-- replicas share. GPUs do so among themselves by NCCL, which is the default; else they send what is to be added up to the host's memory.

local errors = require "flow.errors"
local object = require "flow.object"
local arguments = require "flow.arguments"
local devices = require "flow.devices"

local raise = errors.raise
local CrossDeviceOps = object.class("CrossDeviceOps")
local classes = { CrossDeviceOps = CrossDeviceOps }

local function packs(what, ...)
  local options = errors.check_options(what, arguments.named(what, { "num_packs" }, 1, ...), { num_packs = true })
  local count = options.num_packs == nil and 1 or options.num_packs
  if type(count) ~= "number" or count < 0 or count ~= math.floor(count) then
    raise("%s: num_packs is a whole number from 0, got %s", what, errors.describe(count))
  end
  return { num_packs = count }
end

local NcclAllReduce = object.class("NcclAllReduce", CrossDeviceOps)
function classes.NcclAllReduce(...) return object.new(NcclAllReduce, packs("NcclAllReduce", ...)) end

local HierarchicalCopyAllReduce = object.class("HierarchicalCopyAllReduce", CrossDeviceOps)
function classes.HierarchicalCopyAllReduce(...)
  return object.new(HierarchicalCopyAllReduce, packs("HierarchicalCopyAllReduce", ...))
end

local ReductionToOneDevice = object.class("ReductionToOneDevice", CrossDeviceOps)
function classes.ReductionToOneDevice(...)
  local what = "ReductionToOneDevice"
  local parameters = { "reduce_to_device", "accumulation_fn" }
  local options = errors.check_options(what, arguments.named(what, parameters, 2, ...), { reduce_to_device = true, accumulation_fn = true })
  if options.accumulation_fn ~= nil then raise("%s: accumulation_fn is not supported: values of replicas are added", what) end
  local device = options.reduce_to_device
  return object.new(ReductionToOneDevice, { reduce_to_device = device ~= nil and devices.canonical(device) })
end

-- Whether GPUs add up among themselves where they can: by name, or by default.
function classes.goes_by_nccl(value) return value == nil or object.is(value, NcclAllReduce) end

-- Whether value is what cross_device_ops takes; what: who asks.
function classes.check(what, value)
  if value == nil or object.is(value, CrossDeviceOps) then return end
  raise("%s: cross_device_ops is flow.distribute.NcclAllReduce(), HierarchicalCopyAllReduce() or ReductionToOneDevice(), got %s", what,
    errors.describe(value))
end

return classes
