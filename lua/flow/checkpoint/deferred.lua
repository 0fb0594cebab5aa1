-- deferred.lua: restores that wait for variables: of layers and models that are called, and of optimizers that are used, for the first time
-- after the restore, as in TensorFlow.
--
--   deferred.wait(walk, file, plan, check_fit)      keeps what the file has for objects that have no variables yet
--
-- Whatever makes variables calls variable.awaited then, if it is set: before a layer's first call computes with them, and before an
-- optimizer's first update. A restore that waits belongs to the objects that it waits for, so that it goes when they do; here it is known
-- weakly. It ends when it has nothing left, or when all its objects have their variables.

local variable = require "flow.tensor.variable"
local graph = require "flow.checkpoint.object_graph"

local deferred = {}
local waiting = setmetatable({}, { __mode = "v" })      -- by its number, in the order of the restores
local last = 0
local OF_OBJECT = "_awaits"      -- the field of an object with the newest restore that waits for it

-- Objects of a graph that have no variables yet.
local function unfinished(parts)
  local list = {}
  for _, layer in ipairs(parts.layers) do
    if not layer._built then list[#list + 1] = layer end
  end
  for _, optimizer in pairs(parts.optimizers) do
    if not rawget(optimizer, "_built_for") then list[#list + 1] = optimizer end
  end
  return list
end

-- Takes a path out of a list, if it is there.
local function take_out(list, path)
  for i, entry in ipairs(list) do
    if entry == path then return table.remove(list, i) end
  end
end

-- Gives the variables that are there now what waits for them. Assignments are made now, whatever is traced: traces and tapes belong to the
-- coroutine that opened them.
local function give(self)
  local parts = self.walk()
  local assign = coroutine.wrap(function()
    for _, path in ipairs(parts.paths) do
      local held = graph.held(self.plan.same, path, function(name) return self.values[name] end)
      local value = self.values[held]
      if value then
        self.values[held] = nil
        self.check_fit(held, value, parts.variables[path])
        parts.variables[path]:assign(value)
        take_out(self.plan.unused, held)
        take_out(self.plan.missing, path)
      end
    end
    return true
  end)
  local ok, problem = pcall(assign)
  local left = unfinished(parts)
  if not ok or not next(self.values) or #left == 0 then
    waiting[self.number] = nil
    self.plan.waits = false
  else
    for _, object in ipairs(left) do rawset(object, OF_OBJECT, self) end      -- some were made meanwhile
  end
  if not ok then error(problem, 0) end
end

-- Layers and optimizers have got variables.
local function awaited()
  variable.awaited = false      -- what is done here is not awaited
  local numbers = {}
  for number in pairs(waiting) do numbers[#numbers + 1] = number end
  table.sort(numbers)
  local ok, problem = true, nil
  for _, number in ipairs(numbers) do
    local one = waiting[number]
    if one and ok then ok, problem = pcall(give, one) end
  end
  variable.awaited = next(waiting) ~= nil and awaited
  if not ok then error(problem, 0) end
end

-- Keeps the values of an open file that nothing took (plan.unused), if there are objects that have no variables yet. walk() returns the
-- objects' graph (object_graph.lua); check_fit(path, value, variable) raises where a value is of another dtype or shape. plan.waits says
-- whether this restore waits; plan.unused and plan.missing change with what it gives.
function deferred.wait(walk, file, plan, check_fit)
  local left = unfinished(walk())
  for _, object in ipairs(left) do rawset(object, OF_OBJECT, nil) end      -- the newest restore counts
  local values = {}
  for _, path in ipairs(plan.unused) do
    if file:find(path) then values[path] = file:read(path) end
  end
  plan.waits = #left > 0 and next(values) ~= nil
  if not plan.waits then return end
  last = last + 1
  local self = { number = last, walk = walk, values = values, plan = plan, check_fit = check_fit }
  for _, object in ipairs(left) do rawset(object, OF_OBJECT, self) end
  waiting[last], variable.awaited = self, awaited
end

return deferred
