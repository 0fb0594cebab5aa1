-- mixed_precision.lua: flow.mixed_precision: dtype policies. Under "mixed_bfloat16" and "mixed_float16" layers compute in 16 bits on
-- weights of 32, under "float64" in that. Gradients may be too small for float16: compile() scales the loss then
-- (flow.optimizers.LossScaleOptimizer).
--
--   flow.mixed_precision.set_global_policy("mixed_bfloat16")      for layers that are made from now on and name no dtype
--   layers.Dense(10, { dtype = "float32" })                       a layer's own, as the last one should have it
--   layer.compute_dtype, layer.variable_dtype, layer.dtype_policy.name

local errors = require "flow.errors"
local object = require "flow.object"

local raise = errors.raise
local signature = require "flow.signature"

local mixed_precision = signature.module "flow.mixed_precision"
local internal = signature.internal(mixed_precision)
local Policy = object.class("DTypePolicy")

local COMPUTE = { float32 = "float32", float64 = "float64", mixed_bfloat16 = "bfloat16", mixed_float16 = "float16" }
local NAMES = { "float32", "float64", "mixed_bfloat16", "mixed_float16" }

local made = {}

-- The policy of a name or of itself. what: the caller, as messages name it.
function internal.policy(what, policy)
  if object.is(policy, Policy) then return policy end
  if type(policy) ~= "string" then raise("%s: a policy is a text such as \"mixed_bfloat16\", got %s", what, errors.describe(policy)) end
  if not COMPUTE[policy] then raise("%s: unknown policy %q%s", what, policy, errors.suggestion(policy, NAMES)) end
  made[policy] = made[policy] or object.new(Policy, { name = policy, compute_dtype = COMPUTE[policy],
                                                              variable_dtype = policy == "float64" and policy or "float32" })
  return made[policy]
end

-- Policy "mixed_bfloat16": an object with name, compute_dtype and variable_dtype.
function mixed_precision.Policy(name) return mixed_precision.policy("Policy", name) end
mixed_precision.DTypePolicy = mixed_precision.Policy

function Policy:get_config() return { name = self.name } end
object.static(Policy, "from_config", function(_, config)
  object.check_config("DTypePolicy", config)
  return mixed_precision.policy("Policy", config.name)
end)
function Policy.fields.quantization_mode() return nil end

local global = mixed_precision.policy("", "float32")

function mixed_precision.set_global_policy(policy) global = mixed_precision.policy("set_global_policy", policy) end
function mixed_precision.global_policy() return global end
mixed_precision.set_dtype_policy, mixed_precision.dtype_policy = mixed_precision.set_global_policy, mixed_precision.global_policy

return mixed_precision
