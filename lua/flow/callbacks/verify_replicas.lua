-- callbacks/verify_replicas.lua: flow.distribute.verify { every = 100 }: every N steps the replicas compare hashes of all variables
-- of model and optimizer, and training ends with the name of the one that has others (distribute/verify.lua).

local errors = require "flow.errors"
local log = require "flow.log"
local is_variable = require("flow.tensor.variable").is_variable
local placement = require "flow.tensor.placement"
local verify = require "flow.distribute.verify"
local callbacks = require "flow.train.callback"
local signature = require "flow.signature"

local VerifyReplicas = callbacks.stock("VerifyReplicas")

-- In fit it is a callback; your own loop calls it after each step: verify(model, optimizer), with models, optimizers, variables or
-- lists of them, the same ones on all workers. It counts its calls; a loop that goes on after a worker was lost gives the number of the
-- step first: verify(step, model, optimizer). checks: how many comparisons there were.
signature.takes_named "every: count = 100"
function VerifyReplicas:init(given)
  callbacks.keep(self, VerifyReplicas, given)
  self.checks, self._step = 0, 0
end

-- Compares the variables on all replicas of placement p, of all workers; raises where they differ. All workers call this at once.
local function compare(self, p, variables, step)
  verify.compare(p, variables, step)
  rawset(self, "checks", self.checks + 1)
end

-- The variables of a model and of its optimizers, in the same order on all workers.
local function variables_of(model)
  local list = { unpack(model.weights) }
  for _, optimizer in ipairs(model:_optimizers()) do
    for _, v in ipairs(optimizer.variables) do list[#list + 1] = v end
  end
  return list
end

function VerifyReplicas:on_train_begin()
  if verify.has_copies(self:_model()._placement) then return end
  log.info("distribute.verify: there is one copy of the variables and nothing to compare")
end

-- done: batches since it was called last.
function VerifyReplicas:_after_batch(run, done)
  local step, p = run.model._train_steps + run.pending, run.model._placement
  if not verify.has_copies(p) or step % self.every >= done then return end
  compare(self, p, variables_of(run.model), step)
end

-- A field of any object; nil if it has none, which our objects say by an error.
local function field(value, name)
  local ok, found = pcall(function() return value[name] end)
  return ok and found or nil
end

-- Adds the variables of what a loop gave.
local function collect(list, value, position)
  if is_variable(value) then
    list[#list + 1] = value
    return
  end
  local is_list = type(value) == "table" and not getmetatable(value)
  local variables = is_list and value or type(value) == "table" and (field(value, "weights") or field(value, "variables"))
  if not variables then
    errors.raise("distribute.verify: argument %d is a model, an optimizer, a variable or a list of them, got %s", position,
      errors.describe(value))
  end
  for _, entry in ipairs(variables) do collect(list, entry, position) end
end

VerifyReplicas.metatable.__call = function(self, ...)
  local step = (...)
  local told = type(step) == "number"
  rawset(self, "_step", told and step or self._step + 1)
  if self._step % self.every ~= 0 then return end
  local list, p = {}, placement.current() or placement.joined()
  for i = told and 2 or 1, select("#", ...) do
    local value = select(i, ...)
    if type(value) == "table" and rawget(value, "_placement") then p = value._placement end
    collect(list, value, i)
  end
  if #list == 0 then errors.raise("distribute.verify: there are no variables: verify(model, optimizer)") end
  if verify.has_copies(p) then compare(self, p, list, self._step) end
end

return VerifyReplicas
