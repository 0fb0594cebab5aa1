-- cross_device_ops.lua: TensorFlow's choices of how replicas of one process add up. On the CPU each is the same: in the memory that
-- replicas share. GPUs do so among themselves by NCCL, which is the default; else they send what is to be added up to the host's memory.

local errors = require "flow.errors"
local object = require "flow.object"
local signature = require "flow.signature"
local devices = require "flow.devices"

local raise, takes = errors.raise, signature.takes
local CrossDeviceOps = object.class("CrossDeviceOps")
local classes = signature.module("flow.distribute", { CrossDeviceOps = CrossDeviceOps })

local NcclAllReduce = object.class("NcclAllReduce", CrossDeviceOps)
takes "num_packs: whole = 1"
function classes.NcclAllReduce(count) return object.new(NcclAllReduce, { num_packs = count }) end

local HierarchicalCopyAllReduce = object.class("HierarchicalCopyAllReduce", CrossDeviceOps)
takes "num_packs: whole = 1"
function classes.HierarchicalCopyAllReduce(count) return object.new(HierarchicalCopyAllReduce, { num_packs = count }) end

local ReductionToOneDevice = object.class("ReductionToOneDevice", CrossDeviceOps)
takes "reduce_to_device?, accumulation_fn?"
function classes.ReductionToOneDevice(device, accumulation_fn)
  if accumulation_fn ~= nil then raise("ReductionToOneDevice: accumulation_fn is not supported: values of replicas are added") end
  return object.new(ReductionToOneDevice, { reduce_to_device = device ~= nil and devices.canonical(device) })
end

-- Whether GPUs add up among themselves where they can: by name, or by default.
function classes.goes_by_nccl(value) return value == nil or object.is(value, NcclAllReduce) end

-- Whether value is what cross_device_ops takes; what: the caller, as messages name it.
function classes.check(what, value)
  if value == nil or object.is(value, CrossDeviceOps) then return end
  raise("%s: cross_device_ops is flow.distribute.NcclAllReduce(), HierarchicalCopyAllReduce() or ReductionToOneDevice(), got %s", what,
    errors.describe(value))
end

return classes
