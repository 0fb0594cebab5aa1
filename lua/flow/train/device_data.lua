-- device_data.lua: data of several epochs that stays on the device where a model is trained: uploaded once, its rows gathered there.

local native = require "flow.ffi"
local tensor = require "flow.tensor"
local devices = require "flow.devices"
local steps = require "flow.train.steps"

local C = native.C
local context = native.context
local resident = {}

local SHARE = 0.5      -- of the memory that is free when training begins: the rest is for what comes later

-- The device that may keep data for a model: of one that runs on a device, alone; else nil.
function resident.device(model)
  local placed, device = model._placement, steps.device(model)
  return device >= 0 and (not placed or placed.count == 1) and device or nil
end

local function room(device)
  return SHARE * devices.free_memory(device)
end

-- Copies of the tensors on the model's device; nil where they do not fit, or where that is the CPU.
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

-- Where the passes over a data set keep their rows; nil where that is the CPU.
function resident.row_store(model)
  local device = resident.device(model)
  if not device then return nil end
  native.check(C.flow_row_store_new(context, device, room(device), out))
  return native.own(out, C.flow_row_store_release)
end

return resident
