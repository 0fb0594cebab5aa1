-- object_graph.lua: what a checkpoint holds of the objects that it is given: variables and states, each with a path that depends on where
-- it is and not on automatic names, so that it is found again in another process.
--
--   layers and models    <path>/kernel, <path>/layers/0/kernel ...; a compiled model's optimizer is <path>/optimizer; those in its
--                         fields, and metrics, are <path>/<field>, which is another name of layers and variables there, too; the seed
--                         of a compiled model's steps and their numbers, from which random layers draw, are the state <path>/draws
--   optimizers, metrics   <path>/0, <path>/1 ... in the order of their variables
--   get_state, set_state  a state, of whatever has these two methods: callbacks, flow.random
--   iterators             a state: the position
--   tables                the objects in them; numbers, texts and booleans in them are a state
--   checkpoints           what they hold, and their save_counter
--
-- What is met twice is held once, under the first path, of which the others are other names; paths are walked in the order of their names.

local errors = require "flow.errors"
local object = require "flow.object"
local variable = require "flow.tensor.variable"
local native = require "flow.ffi"
local Layer = require "flow.layers.layer"
local Iterator = require "flow.data.iterator"

local raise = errors.raise
local C = native.C
local graph = { DRAWS = "draws" }
local MOST_NAMES = 16      -- names of names that are followed: tables may contain themselves

local Graph = {}
Graph.__index = Graph

local function join(path, name) return path == "" and name or path .. "/" .. name end

-- Whether a value was met before: then `path` is another name of where that was.
local function met(self, path, value)
  local before = self.seen[value]
  if not before then self.seen[value] = path
  elseif before ~= path then self.same[path] = before end
  return before ~= nil
end

-- Adds a variable, under its own path: the second one of a name gets _1 after it.
local function add_variable(self, path, value)
  local unique, count = path, 1
  while self.variables[unique] do      -- two variables of a layer may have one name
    unique, count = path .. "_" .. count, count + 1
  end
  if met(self, unique, value) then return end
  self.variables[unique] = value
  self.paths[#self.paths + 1] = unique
end

-- Adds a state: get() returns a table that state_codec.lua can write, set(table) takes it back. optional: a file or a program without it
-- has all that it needs.
local function add_state(self, path, get, set, optional)
  self.states[path] = { get = get, set = set, optional = optional or false }
  self.state_paths[#self.state_paths + 1] = path
end

local function leaf(value) return value.name ~= "" and value.name or "variable" end

local walk

-- An optimizer or a metric, such as steps of a model's own have them in its fields.
local function has_variables(value)
  return type(value) == "table" and getmetatable(value) and not object.is(value, Layer) and not variable.is_variable(value)
    and type(getmetatable(value).class) == "table" and object.has(value, "variables")
end

-- Where a compiled model is in the random numbers of its steps, so that training goes on with those that would have come.
local function add_draws(self, path, model)
  add_state(self, join(path, graph.DRAWS), function()
    return { seed = rawget(model, "_seed"), steps = model._train_steps, others = model._other_steps, traces = model._trace_states }
  end, function(state)
    rawset(model, "_seed", state.seed)
    rawset(model, "_train_steps", state.steps)
    rawset(model, "_other_steps", state.others)
    rawset(model, "_trace_states", state.traces)
  end, true)
end

-- A layer or model: its own variables, its parts, and what it has in its fields besides.
local function walk_layer(self, path, layer)
  self.layers[#self.layers + 1] = layer
  if object.has(layer, "fit") then self.models[#self.models + 1] = layer end      -- before those in it
  if layer._handle then
    for i = 0, C.flow_layer_variable_count(layer._handle) - 1 do
      local own = variable.wrap(C.flow_layer_variable(layer._handle, i))
      add_variable(self, join(path, leaf(own)), own)
    end
  end
  for _, own in ipairs(layer._own) do add_variable(self, join(path, leaf(own)), own) end
  for i, child in ipairs(layer._children) do walk(self, join(path, ("layers/%d"):format(i - 1)), child) end
  local compiled = object.has(layer, "_compiled") and layer._compiled
  if compiled then
    walk(self, join(path, "optimizer"), compiled.optimizer)
    self.owners[compiled.optimizer] = self.owners[compiled.optimizer] or layer
    add_draws(self, path, layer)
  end
  local names = {}
  for name, value in pairs(layer._assignments) do
    if type(name) == "string" and has_variables(value) then names[#names + 1] = name end
    if type(name) == "string" and self.seen[value] then met(self, join(path, name), value) end      -- its own layers and variables
  end
  table.sort(names)
  for _, name in ipairs(names) do walk(self, join(path, name), layer._assignments[name]) end
end

-- An optimizer or metric, whose variables are numbered.
local function walk_list(self, path, owner)
  for i, entry in ipairs(owner.variables) do add_variable(self, join(path, tostring(i - 1)), entry) end
  if object.has(owner, "build") and object.has(owner, "apply_gradients") then self.optimizers[path] = owner end
end

local PLAIN = { number = true, string = true, boolean = true }

-- A table: the objects in it one by one, its plain values as one state.
local function walk_table(self, path, value)
  local names = {}
  for name, entry in pairs(value) do
    if type(name) ~= "string" and type(name) ~= "number" then
      raise("Checkpoint: %s has the key %s; keys are texts and numbers", path, errors.describe(name))
    end
    if not PLAIN[type(entry)] then names[#names + 1] = name end
  end
  table.sort(names, function(a, b) return tostring(a) < tostring(b) end)
  for _, name in ipairs(names) do walk(self, join(path, tostring(name)), value[name]) end
  add_state(self, path, function()
    local kept = {}
    for name, entry in pairs(value) do
      if PLAIN[type(entry)] then kept[name] = entry end
    end
    return kept
  end, function(kept)
    for name, entry in pairs(kept) do value[name] = entry end
  end)
end

-- Objects by names.
local function walk_named(self, path, objects)
  for _, name in ipairs(require("flow.names").sorted(objects)) do walk(self, join(path, name), objects[name]) end
end

-- Calls that a value may have: a table's own functions, or an object's methods.
local function can(value, name)
  if type(rawget(value, name)) == "function" then return true end
  return getmetatable(value) and object.has(value, name) and type(value[name]) == "function"
end

-- Adds what a value holds under its path; a value that was met before adds nothing, which also ends tables that contain themselves. Raises
-- for what a checkpoint cannot hold.
function walk(self, path, value)
  if variable.is_variable(value) then return add_variable(self, path, value) end
  if type(value) ~= "table" then
    raise("Checkpoint: %s is %s; a checkpoint holds models, layers, optimizers, variables, metrics, iterators and tables", path,
      errors.describe(value))
  end
  if met(self, path, value) then return end
  if object.is(value, Layer) then return walk_layer(self, path, value) end
  if object.is(value, Iterator) then
    return add_state(self, path, function() return { position = value:save() } end, function(kept) value:restore(kept.position) end)
  end
  if getmetatable(value) and object.has(value, "_held") then return walk_named(self, path, value:_held()) end
  local remembers = can(value, "get_state") and can(value, "set_state")
  if remembers then add_state(self, path, function() return value:get_state() end, function(kept) value:set_state(kept) end) end
  if getmetatable(value) and object.has(value, "variables") then return walk_list(self, path, value) end
  if remembers then return end
  if getmetatable(value) then
    raise("Checkpoint: %s is a %s, which has no variables and no state%s", path, tostring(value),
      object.has(value, "iter") and "; give its iterator, dataset:iter()" or "")
  end
  walk_table(self, path, value)
end

-- objects: a table of names with objects. Returns { variables = { [path] = variable }, paths = list, states = { [path] = { get =,
-- set = } }, state_paths = list, layers = list, with the models, models = list, optimizers = { [path] = optimizer },
-- owners = { [optimizer] = the model that was compiled with it }, same = { [path] = the path that has what it names } }.
function graph.of(objects)
  local self = setmetatable({ variables = {}, paths = {}, states = {}, state_paths = {}, layers = {}, models = {}, optimizers = {},
                              seen = {}, same = {}, owners = {} }, Graph)
  local names = require("flow.names").sorted(objects)
  for _, name in ipairs(names) do walk(self, name, objects[name]) end
  return self
end

-- The path at which `has` finds something, for one that it finds nothing at: by the other names of its beginnings, the longest first.
-- same: as above. Returns the path itself if there is none.
function graph.held(same, path, has)
  local looked = path
  for _ = 1, next(same) and MOST_NAMES or 0 do
    if has(looked) then return looked end
    local head = looked
    while head and not same[head] do head = head:match "^(.*)/[^/]*$" end
    if not head then break end
    looked = same[head] .. looked:sub(#head + 1)
  end
  return has(looked) and looked or path
end

return graph
