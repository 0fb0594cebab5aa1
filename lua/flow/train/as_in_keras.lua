-- as_in_keras.lua: what Keras' models and optimizers have beside the rest, and programs ask for now and then: trees of their variables'
-- values, and assignments to lists of variables.

local errors = require "flow.errors"
local native = require "flow.ffi"
local variable = require "flow.tensor.variable"
local object = require "flow.object"
local set_weights = require "flow.layers.set_weights"
local stateless = require "flow.layers.classes.stateless"
local takes = require("flow.signature").takes

local raise = errors.raise
local as_in_keras = {}

---- models ----------------------------------------------------------------------------------------------------------------------------

local TREES = { "trainable_variables", "non_trainable_variables", "optimizer_variables", "metrics_variables" }

-- The variables of a part of a model's state.
local function variables_of(model, part)
  if part ~= "optimizer_variables" then return model[part] end
  return model._compiled and model.optimizer.variables or {}
end

-- Puts entry(variable) for each of a list into a tree by the parts of its name, "dense/kernel". Of two variables with one name the last one
-- stays.
local function tree_of(variables, entry)
  local root = {}
  for _, v in ipairs(variables) do
    local at, last = root, nil
    for part in v.path:gmatch "[^/]+" do
      if last then
        at[last] = at[last] or {}
        at = at[last]
      end
      last = part
    end
    at[last] = entry(v)
  end
  return root
end

-- Assigns to each variable what a tree has under its name. Raises where it has nothing; the variables before that one are assigned then.
local function set_tree(model, variables, tree)
  for _, v in ipairs(variables) do
    local at = tree
    for part in v.path:gmatch "[^/]+" do at = type(at) == "table" and not native.is_tensor(at) and at[part] or nil end
    if at == nil then raise("%s: set_state_tree: the tree has no %q", object.title(model), v.path) end
    v:assign(at)
  end
end

-- Adds fields and methods to the class of all models. Called once, by compile.lua.
function as_in_keras.model(Model)
  local fields = Model.fields
  function fields.compiled(self) return self._compiled and true or false end
  function fields.jit_compile(self) return self._compiled and self._compiled.jit_compile end
  function fields.steps_per_execution(self) return self._compiled and self._compiled.steps_per_execution or 1 end
  function fields.metrics_variables(self)
    local list = {}
    for _, metric in ipairs(self._compiled and self.metrics or {}) do
      for _, v in ipairs(metric.variables) do list[#list + 1] = v end
    end
    return list
  end

  -- The values of all variables, of the optimizer and the metrics, too: tables by the parts of their names.
  function Model:get_state_tree()
    local tree = {}
    for _, part in ipairs(TREES) do tree[part] = tree_of(variables_of(self, part), function(v) return v:value() end) end
    return tree
  end

  -- Sets what get_state_tree() gave, or a part of it.
  takes "state_tree: table"
  function Model:set_state_tree(state_tree)
    for part, tree in pairs(state_tree) do
      local known = false
      for _, name in ipairs(TREES) do known = known or name == part end
      if not known then
        raise("%s: set_state_tree: unknown key %q%s", object.title(self), tostring(part), errors.suggestion(part, TREES))
      end
      set_tree(self, variables_of(self, part), tree)
    end
  end
end

---- optimizers ------------------------------------------------------------------------------------------------------------------------

-- The same for the class of all optimizers. Called once, by optimizers.lua.
function as_in_keras.optimizer(Optimizer)
  for _, name in ipairs { "assign", "assign_add", "assign_sub" } do
    takes "variable, value"
    Optimizer[name] = function(self, v, value)
      if not variable.is_variable(v) then
        raise("%s: %s takes a variable and a value, got %s", object.title(self), name, errors.describe(v))
      end
      v[name](v, value)
    end
  end

  -- Sets all its variables, in the order of `variables`.
  takes "weights: list"
  function Optimizer:set_weights(weights)
    set_weights(setmetatable({ name = self.name, weights = self.variables }, { class = object.class_of(self) }), weights)
  end

  -- Whether it has its slots.
  function Optimizer.fields.built(self) return rawget(self, "_built_for") ~= nil end

  -- One update with other values of its variables and the model's, which keep theirs: the values after it, of the model's variables and of
  -- its own.
  takes "optimizer_variables: list, grads: list, trainable_variables: list"
  function Optimizer:stateless_apply(optimizer_variables, grads, trainable_variables)
    local what, variables, values = object.title(self) .. ": stateless_apply", {}, {}
    if not self.built then raise("%s needs an optimizer that is built: call optimizer:build(variables) before it", what) end
    local own = self.variables
    -- Lists without a hole, in which false marks what is missing until the counts are compared.
    for i, v in ipairs(self._built_for) do variables[i], values[i] = v, trainable_variables[i] or false end
    local count = #variables
    for i, v in ipairs(own) do variables[count + i], values[count + i] = v, optimizer_variables[i] or false end
    if #trainable_variables ~= count or #optimizer_variables ~= #own then
      raise("%s takes the values of %d variables of its own and of %d others, got %d and %d", what, #own, count, #optimizer_variables,
        #trainable_variables)
    end
    local after = stateless(what, variables, values, false, function() self:apply_gradients(grads, { unpack(variables, 1, count) }) end)
    return { unpack(after, 1, count) }, { unpack(after, count + 1) }
  end
end

return as_in_keras
