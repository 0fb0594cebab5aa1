-- distribute.lua: flow.distribute: where variables live and steps run. This build has the strategy of one device; scripts
-- written against it run unchanged on more.

local cluster = require "flow.cluster"
local errors = require "flow.errors"
local object = require "flow.object"

local raise = errors.raise
local distribute = {}
local Strategy = object.class("Strategy")

local scopes = {}      -- of this Lua state, innermost last

local function scope_of(strategy)
  return function(first, second)
    local f = second or first
    if type(f) ~= "function" then raise("strategy.scope takes a function, got %s", errors.describe(f)) end
    scopes[#scopes + 1] = strategy
    local function finish(ok, ...)
      scopes[#scopes] = nil
      if not ok then error((...), 0) end
      return ...
    end
    return finish(pcall(f))
  end
end

local function new(class_name)
  local strategy = object.new(object.class(class_name, Strategy), { num_replicas_in_sync = 1 })
  rawset(strategy, "scope", scope_of(strategy))
  return strategy
end

-- Runs f(...) on every replica; with one replica its results come back as they are.
function Strategy:run(f, list)
  return f(unpack(list or {}))
end

-- Combines what run() returned: "sum" or "mean" over replicas, over an axis as well if one is named.
function Strategy:reduce(how, value, axis)
  how = type(how) == "string" and how:lower() or how
  if how ~= "sum" and how ~= "mean" then raise("strategy:reduce: \"sum\" or \"mean\", got %s", errors.describe(how)) end
  if axis == nil then return value end
  return how == "sum" and value:sum(axis) or value:mean(axis)
end

function Strategy:gather(value) return value end
function Strategy:experimental_local_results(value) return { value } end
function Strategy:experimental_distribute_dataset(dataset) return dataset end

local DEVICES = { devices = true, cross_device_ops = true }

-- All replicas of this machine: this build has one, the CPU.
function distribute.MirroredStrategy(options)
  options = errors.check_options("MirroredStrategy", options, DEVICES)
  local devices = options.devices
  if type(devices) == "string" then devices = { devices } end
  for _, device in ipairs(devices or {}) do require("flow.tensor").check_device(device) end
  if devices and #devices > 1 then raise("MirroredStrategy: this build has one device, cpu:0; %d were asked for", #devices) end
  return new("MirroredStrategy")
end

function distribute.OneDeviceStrategy(device)
  require("flow.tensor").check_device(device)
  return new("OneDeviceStrategy")
end

-- Who takes part (cluster.lua): from TF_CONFIG, from the environment of mpirun or srun, or as told.
distribute.TFConfigClusterResolver = cluster.TFConfigClusterResolver
distribute.ClusterResolver = cluster.ClusterResolver
distribute.SimpleClusterResolver = cluster.SimpleClusterResolver

local default = nil

-- The strategy whose scope is open, else the default one.
function distribute.get_strategy()
  default = default or new("DefaultStrategy")
  return scopes[#scopes] or default
end
function distribute.has_strategy() return #scopes > 0 end

return setmetatable(distribute, {
  __index = function(_, name) raise("flow.distribute has no %q%s", tostring(name), errors.suggestion(tostring(name), distribute)) end,
})
