-- distribution.lua: flow.keras.distribution: keras.distribution's names, where flow.distribute has what they do. A DataParallel is a
-- strategy, so its scope is that of the models that are made in it; what cuts a model over devices is not here.

local errors = require "flow.errors"
local signature = require "flow.signature"

local raise, takes = errors.raise, signature.takes
local distribution = signature.module "flow.keras.distribution"

-- What require "flow" returns, passed by init.lua.
local flow

function distribution._of(found)
  flow = found
  return distribution
end

-- A replica of the model on each device of this process, as MirroredStrategy has it.
takes "device_mesh?: any, devices?: any, auto_shard_dataset: boolean = true"
function distribution.DataParallel(device_mesh, devices)
  if device_mesh ~= nil then
    raise("flow.keras.distribution.DataParallel: there are no meshes: give devices, a list such as { \"cpu:0\", \"cpu:1\" }")
  end
  return flow().distribute.MirroredStrategy { devices = devices }
end

-- The names of the devices of a kind, "cpu" or "gpu"; nil: GPUs, or CPUs where there is none.
takes "device_type?: string"
function distribution.list_devices(kind)
  if kind == nil then kind = #flow().config.list_logical_devices "gpu" > 0 and "gpu" or "cpu" end
  return flow().config.list_logical_devices(kind:lower())
end

takes "device_type?: string"
function distribution.get_device_count(kind) return #distribution.list_devices(kind) end

-- The strategy of the scope that is open; nil: none.
function distribution.distribution()
  local distribute = flow().distribute
  return distribute.has_strategy() and distribute.get_strategy() or nil
end

takes "value?: any"
function distribution.set_distribution(value)
  if value == nil and not flow().distribute.has_strategy() then return end
  raise("flow.keras.distribution.set_distribution: a distribution counts in its scope alone: distribution.scope(function() ... end) makes "
    .. "the model")
end

return distribution
