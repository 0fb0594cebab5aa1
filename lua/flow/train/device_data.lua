-- device_data.lua: training data that is copied to the model's device once and stays there for all epochs; batches are gathered there.

local native = require "flow.ffi"
local tensor = require "flow.tensor"
local devices = require "flow.devices"
local steps = require "flow.train.steps"

local C = native.C
local context = native.context
local resident = {}

local SHARE = 0.5      -- of the memory that is free when training begins; the rest stays free for later allocations

-- The device that may keep a model's data, if the model runs on one device without replicas; else nil.
function resident.device(model)
  local placed, device = model._placement, steps.device(model)
  return device >= 0 and (not placed or placed.count == 1) and device or nil
end

-- Bytes that data may take on a device now.
local function room(device)
  return SHARE * devices.free_memory(device)
end

-- Copies of the tensors on the model's device; nil if they do not fit, or if the model runs on the CPU.
function resident.tensors(model, list)
  local device, bytes = resident.device(model), 0
  if not device then return nil end
  for _, t in ipairs(list) do bytes = bytes + t.size * C.flow_dtype_size(native.dtype(t.dtype)) end
  if bytes > room(device) then return nil end
  local there = {}
  for i, t in ipairs(list) do there[i] = tensor.to_device(t, device) end
  return there
end

local out = native.out("flow_row_store")

-- The store in which passes over a data set keep their rows; nil if the model runs on the CPU.
function resident.row_store(model)
  local device = resident.device(model)
  if not device then return nil end
  native.check(C.flow_row_store_new(context, device, room(device), out))
  return native.own(out, C.flow_row_store_release)
end

return resident
