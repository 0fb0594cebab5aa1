-- mirrored.lua: strategies of this process alone: MirroredStrategy, one replica per device, and OneDeviceStrategy.

local host = require "flow.host"
local errors = require "flow.errors"
local object = require "flow.object"
local log = require "flow.log"
local devices = require "flow.devices"
local cross_device_ops = require "flow.distribute.cross_device_ops"
local placement = require "flow.tensor.placement"
local fn = require "flow.tensor.fn"
local shards = require "flow.shards"
local strategies = require "flow.distribute.strategy"

local raise = errors.raise
local signature = require "flow.signature"

local takes = signature.takes
local mirrored = signature.module "flow.distribute"

local Mirrored = object.class("MirroredStrategy", strategies.Strategy)
local OneDevice = object.class("OneDeviceStrategy", strategies.Strategy)
local Default = object.class("DefaultStrategy", strategies.Strategy)

-- Names of devices as users give them, in one form; nil: the default ones.
local function device_list(what, given)
  if given == nil then return devices.default() end
  if type(given) == "string" then given = { given } end
  if type(given) ~= "table" or getmetatable(given) or errors.check_list(what .. ": devices", given) == 0 then
    raise("%s: devices is a list such as { \"cpu:0\", \"cpu:1\" }, got %s", what,
      type(given) == "table" and "an empty one" or errors.describe(given))
  end
  local list, seen = {}, {}
  for i, name in ipairs(given) do
    local device = devices.canonical(name)
    if seen[device] then
      raise("%s: no duplicates in devices: %q is the same device as %q", what, tostring(name), given[seen[device]])
    end
    list[i], seen[device] = device, i
    if (devices.number(device) < 0) ~= (devices.number(list[1]) < 0) then
      raise("%s: devices are all CPUs or all GPUs, got %q and %q", what, list[1], device)
    end
  end
  return list
end

function mirrored.text_of(list)
  return "(" .. table.concat(list, ", ") .. ")"
end

-- MirroredStrategy { devices = { "cpu:0", "cpu:1" }, cross_device_ops = ... }: a replica on each device of this machine.
takes "devices?, cross_device_ops?"
function mirrored.MirroredStrategy(given, how)
  local what = "MirroredStrategy"
  local list = device_list(what, given)
  cross_device_ops.check(what, how)
  local replicas = shards.replicas(what, list)
  devices.used(what)
  if (host.getenv("TF_CONFIG") or "") ~= "" then
    log.info("MirroredStrategy trains on the devices of this process: TF_CONFIG is ignored; MultiWorkerMirroredStrategy follows it")
  end
  log.info("Using MirroredStrategy with devices %s", mirrored.text_of(list))
  local strategy = strategies.make(Mirrored, { devices = list, replicas = replicas })
  if #list > 1 and devices.number(list[1]) >= 0 and cross_device_ops.goes_by_nccl(how) then
    local problem = placement.connect(strategy._placement)
    local say = how and log.warning or log.info
    if problem then say("%s: the GPUs cannot add up among themselves, sums go through the host: %s", what, problem) end
  end
  return strategy
end

-- OneDeviceStrategy "cpu:0": one replica, on this device.
takes "device?"
function mirrored.OneDeviceStrategy(name)
  local what = "OneDeviceStrategy"
  if name == nil then raise("%s takes a device such as \"cpu:0\"", what) end
  local device = devices.canonical(name)
  local replicas = shards.replicas(what, { device })
  devices.used(what)
  return strategies.make(OneDevice, { devices = { device }, replicas = replicas })
end

-- What get_strategy returns outside of all scopes: one replica. Functions are traced as under other strategies, so that they draw the same
-- random numbers; one that cannot be traced runs as it is.
function mirrored.default()
  return strategies.make(Default, { devices = { "cpu:0" } })
end

function Default:_trace_of(f) return fn.if_possible(f) end

-- f(list's entries) on the one device; list may have holes.
function Default:run(f, list)
  list = strategies.arguments(list)
  strategies.check_arguments(f, list)
  list = list or {}
  return strategies.traced(self, f)(unpack(list, 1, table.maxn(list)))
end

return mirrored
