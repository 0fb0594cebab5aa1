-- options.lua: what ds:with_options takes: a table, or what flow.data.Options() makes.
--
--   local options = flow.data.Options()
--   options.experimental_distribute.auto_shard_policy = flow.data.AutoShardPolicy.DATA
--   ds = ds:with_options(options)

local errors = require "flow.errors"
local closed = require "flow.errors.closed"
local object = require "flow.object"

local raise = errors.raise
local options = {
  AutoShardPolicy = closed("flow.data.AutoShardPolicy", { OFF = -1, AUTO = 0, FILE = 1, DATA = 2, HINT = 3 }),
}

local SETTINGS = { auto_shard_policy = true, deterministic = true }
local Options = object.class("Options")

function options.Options()
  return object.new(Options, { experimental_distribute = {} })
end

Options.metatable.__newindex = function(self, name, value)
  if not SETTINGS[name] then
    raise("flow.data.Options has no %q%s", tostring(name), errors.elsewhere("options", name)
      or "; it has experimental_distribute.auto_shard_policy, auto_shard_policy and deterministic")
  end
  rawset(self, name, value)
end

local policy_names = {}
for name, value in pairs(options.AutoShardPolicy) do policy_names[value] = name end

-- The name of a policy's number.
function options.policy_name(value) return policy_names[value] end

-- A policy's number; -2: none is given.
local function policy_of(value)
  if value == nil then return -2 end
  local found = type(value) == "string" and rawget(options.AutoShardPolicy, value:upper()) or policy_names[value] and value
  if not found then raise("with_options: auto_shard_policy is AUTO, FILE, DATA, HINT or OFF, got %s", errors.describe(value)) end
  return found
end

-- The policy's number and whether the order is kept, nil: not given.
function options.read(given)
  if object.is(given, Options) then
    local distribute = errors.check_options("with_options: experimental_distribute", given.experimental_distribute,
      { auto_shard_policy = true })
    given = { auto_shard_policy = distribute.auto_shard_policy or rawget(given, "auto_shard_policy"),
              deterministic = rawget(given, "deterministic") }
  end
  errors.check_options("ds:with_options", given, SETTINGS)
  if given.deterministic ~= nil and type(given.deterministic) ~= "boolean" then
    raise("ds:with_options: deterministic is true or false, got %s", errors.describe(given.deterministic))
  end
  return policy_of(given.auto_shard_policy), given.deterministic
end

return options
