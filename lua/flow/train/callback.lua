-- callback.lua: the class Callback, whose hooks the loops of fit, evaluate and predict call, and the list of callbacks of a run.
--
-- A callback is an object with any of Keras' hooks: on_train_begin(logs), on_epoch_begin(epoch, logs), on_train_batch_begin(batch,
-- logs), on_train_batch_end(batch, logs), on_epoch_end(epoch, logs), on_train_end(logs), and on_test_... and on_predict_... alike.
-- Epochs and batches count from 0. Write one with flow.callbacks.Callback:extend("Name").
--
-- A callback that remembers something from epoch to epoch has two more hooks, by which a backup keeps its state: get_state() returns a
-- table with names as keys and numbers, texts, booleans, tensors and such tables as values; set_state(table) gets that table in the
-- resumed run, after on_train_begin. What a callback can read from the model is not part of its state.

local errors = require "flow.errors"
local object = require "flow.object"
local signature = require "flow.signature"
local arguments = require "flow.arguments"
local workers = require "flow.distribute.model_workers"
local printed = require "flow.classes.printed"
local saving = require "flow.distribute.saving"

local raise, takes = errors.raise, signature.takes
local callback = {}

local HOOKS = {}
for _, what in ipairs { "train", "test", "predict" } do
  for _, where in ipairs { "begin", "end", "batch_begin", "batch_end" } do HOOKS[#HOOKS + 1] = "on_" .. what .. "_" .. where end
end
HOOKS[#HOOKS + 1] = "on_epoch_begin"
HOOKS[#HOOKS + 1] = "on_epoch_end"

local Callback = object.class("Callback")
-- What Keras calls the hooks of training batches, too: those of a class that does not define on_train_batch_begin or on_train_batch_end.
local OLD_HOOKS = { on_batch_begin = "on_train_batch_begin", on_batch_end = "on_train_batch_end" }

-- The hooks of Callback itself do nothing, so that loops of scripts can call any hook of any callback, and classes their parent's. Runs
-- leave them out (hook_of).
local idle = {}
local function define_idle(hook, old)
  takes(hook:find("epoch", 1, true) and "epoch, logs?" or hook:find("batch", 1, true) and "batch, logs?" or "logs?", true)
  Callback[hook] = function(self, ...)
    if old then return self[old](self, ...) end
  end
  Callback.settable[hook] = true
  idle[hook] = Callback.methods[hook]
  signature.entries[idle[hook]].any = true      -- those that override it may take what they like
end
for _, hook in ipairs(HOOKS) do define_idle(hook, hook == "on_train_batch_begin" and "on_batch_begin"
  or hook == "on_train_batch_end" and "on_batch_end") end
for old in pairs(OLD_HOOKS) do define_idle(old) end

-- The hook of a callback that does something, or nil.
local function hook_of(member, hook)
  local f = member[hook]
  if f and f ~= idle[hook] then return f end
end
callback.hook_of = hook_of

-- Hooks of the library's own classes always get logs, also where a script's loop gives none.
rawset(Callback, "wraps", {})
for _, hook in ipairs(HOOKS) do
  local has_index = hook:find("epoch", 1, true) or hook:find("batch", 1, true)
  Callback.wraps[hook] = function(f, class)
    if not class._is_stock then return f
    elseif has_index then
      return function(self, index, logs) return f(self, index, logs or {}) end
    end
    return function(self, logs) return f(self, logs or {}) end
  end
end
Callback.model = false
Callback.params = false
Callback.get_state = false
Callback.set_state = false
-- Hooks of fit for BackupAndRestore; they get the run (train/fit_position.lua). They are called after on_train_begin; after on_epoch_begin
-- of a resumed epoch; after all callbacks had the hook of a batch, of an epoch, of the end; and before a worker ends early.
for _, hook in ipairs { "_resume", "_after_batch", "_after_epoch", "_after_train", "_before_end" } do Callback[hook] = false end
-- For callbacks that write a file during training (distribute/saving.lua): _path() returns its path; _silent: another worker writes it.
Callback._path, Callback._silent = false, false
Callback._is_stock = false       -- whether the library defines it
Callback._list = false           -- of the run
Callback._draws_bar = false      -- whether it draws the bar, so that the loop draws none
callback.Callback, callback.HOOKS = Callback, HOOKS

-- Makes a class callable: Mine(a, b) calls Mine.init(self, a, b); without init a table of options becomes fields.
local function callable(class, name)
  getmetatable(class).__call = function(_, ...)
    signature.refuse_colon(class, (...))
    local self = object.new(class)
    local init = object.own_init(class)
    if init and rawget(class, "in_lua") then
      arguments.check_init(name, init, nil, ...)
      object.while_making(self, init, arguments.for_init(name, init, ...))
    elseif init then
      object.while_making(self, init, ...)
    else
      local options = ...
      if select("#", ...) > 1 or options ~= nil and (type(options) ~= "table" or getmetatable(options)) then
        raise("%s takes a table of options; define function %s:init(...) to take arguments by position", name, name)
      end
      for key, value in pairs(options or {}) do self[key] = value end
    end
    return self
  end
  return class
end
callable(Callback, "Callback")

-- A run begins: it gives its callbacks their model and its parameters.
takes "model"
function Callback:set_model(model) rawset(self, "model", model) end
takes "params"
function Callback:set_params(params) rawset(self, "params", params) end

-- The model, for hooks that need one.
function Callback:_model()
  if self.model then return self.model end
  raise("%s has no model yet: call set_model(model) before its hooks, as fit does", object.class_of(self).name)
end

-- Makes a user's class of callbacks.
function Callback.extend(parent, name)
  local class = object.open(object.class(name, parent))
  rawset(class, "in_lua", true)
  object.root_init(class, function() return function() end end)      -- Callback.init(self), as Keras' super().__init__()
  return callable(class, name)
end

-- Makes a class of flow.callbacks; the line above its init says what it takes.
function callback.stock(name, parent)
  local class = object.class(name, parent or Callback)
  class._is_stock = true
  return callable(class, name)
end

-- Sets the arguments of a callback as its fields; those that were left out are false.
function callback.keep(self, class, given)
  for _, parameter in ipairs(signature.of(class).positional) do
    local value = given[parameter.name]
    if parameter.name == "verbose" and type(value) == "boolean" then value = value and 1 or 0 end
    if value == nil then value = false end
    rawset(self, parameter.name, value)
  end
end

---- running them -------------------------------------------------------------------------------------------------------------------

-- The callbacks of one run. list:has(hook) returns whether any of them has the hook, so that a hot loop can skip the call.
local List = {}
List.__index = List

-- The list of a run. given: what fit was given, a list, one callback or nil; raises for anything else. params: what callbacks read as
-- self.params, { epochs =, steps =, verbose = }.
function callback.list(given, model, params)
  local members = {}
  if object.is(given, Callback) then given = { given } end
  if given ~= nil and type(given) ~= "table" then raise("callbacks is a list, got %s", errors.describe(given)) end
  if given and (getmetatable(given) or arguments.is_options(given) and next(given)) then
    raise("callbacks is a list, got %s", errors.describe(given))
  end
  errors.check_list("callbacks", given or {})
  for i, member in ipairs(given or {}) do
    if not object.is(member, Callback) then
      raise("callbacks: entry %d is %s, expected a callback such as flow.callbacks.LambdaCallback { ... }", i, errors.describe(member))
    end
    members[i] = member
  end
  local list = setmetatable({ members = {}, model = model, params = params }, List)
  for _, member in ipairs(members) do list:add(member) end
  saving.divide_files(workers.of(model), members)
  return list
end

-- Appends a callback and returns it.
function List:add(member)
  rawset(member, "model", self.model)
  rawset(member, "params", self.params)
  rawset(member, "_list", self)
  for old, hook in pairs(OLD_HOOKS) do
    if not hook_of(member, hook) and hook_of(member, old) then rawset(member, hook, member[old]) end
  end
  member:set_model(self.model)
  member:set_params(self.params)
  self.members[#self.members + 1] = member
  return member
end

-- The first callback of a class, or of one that extends it; nil: there is none.
function List:find(class)
  for _, member in ipairs(self.members) do
    if object.is(member, class) then return member end
  end
end

function List:has(hook)
  for _, member in ipairs(self.members) do
    if hook_of(member, hook) then return true end
  end
  return false
end

-- Calls a hook of all that have it, in the order of the list. An error ends the run, and the callbacks after it are not called.
function List:call(hook, ...)
  if #self.members > 0 then printed((select(select("#", ...), ...))) end      -- the logs
  for _, member in ipairs(self.members) do
    local f = hook_of(member, hook)
    if f then f(member, ...) end
  end
end

return callback
