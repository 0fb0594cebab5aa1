-- callback.lua: the class Callback, which runs beside the loops of fit, evaluate and predict, and the list of a run.
--
-- A callback is an object with any of Keras' hooks: on_train_begin(logs), on_epoch_begin(epoch, logs), on_train_batch_begin(batch,
-- logs), on_train_batch_end(batch, logs), on_epoch_end(epoch, logs), on_train_end(logs), and on_test_... and on_predict_... alike.
-- Epochs and batches count from 0. Write one with flow.callbacks.Callback:extend("Name").
--
-- A callback that remembers something from epoch to epoch has two more hooks, with which a backup takes it along, so that a resumed
-- run goes on exactly: get_state() returns a table with names as keys and numbers, texts, booleans, tensors and such tables as
-- values; set_state(table) takes such a table back, after on_train_begin. What a callback reads from the model is not part of it.

local errors = require "flow.errors"
local object = require "flow.object"
local signature = require "flow.signature"
local arguments = require "flow.arguments"
local workers = require "flow.distribute.model_workers"
local saving = require "flow.distribute.saving"

local raise = errors.raise
local callback = {}

local HOOKS = {}
for _, what in ipairs { "train", "test", "predict" } do
  for _, where in ipairs { "begin", "end", "batch_begin", "batch_end" } do HOOKS[#HOOKS + 1] = "on_" .. what .. "_" .. where end
end
HOOKS[#HOOKS + 1] = "on_epoch_begin"
HOOKS[#HOOKS + 1] = "on_epoch_end"

local Callback = object.class("Callback")
for _, hook in ipairs(HOOKS) do Callback[hook], Callback.settable[hook] = false, true end
Callback.model = false
Callback.params = false
Callback.get_state = false
Callback.set_state = false
-- Of fit, for BackupAndRestore, with the run (train/fit_position.lua): after on_train_begin, and after on_epoch_begin of an epoch
-- that has begun before; when all callbacks have had the hook of a batch, of an epoch, of the end; when a worker is to end in the middle.
for _, hook in ipairs { "_resume", "_after_batch", "_after_epoch", "_after_train", "_before_end" } do Callback[hook] = false end
-- Of those that write files all along (distribute/saving.lua): _path() says where to; _silent: another worker writes it.
Callback._path, Callback._silent = false, false
Callback._is_stock = false       -- whether it is one of the library's
Callback._draws_bar = false      -- whether it draws the bar, so that the loop draws none
callback.Callback, callback.HOOKS = Callback, HOOKS

-- Makes a class callable: Mine(a, b) calls Mine.init(self, a, b); without init a table of options becomes fields.
local function callable(class, name)
  getmetatable(class).__call = function(_, ...)
    signature.refuse_colon(class, (...))
    local self = object.new(class)
    if class.init then
      object.while_making(self, class.init, ...)
    else
      local options = ...
      if select("#", ...) > 1 or options ~= nil and (type(options) ~= "table" or getmetatable(options)) then
        raise("%s takes a table of options; what it takes by position says function %s:init(...)", name, name)
      end
      for key, value in pairs(options or {}) do self[key] = value end
    end
    return self
  end
  return class
end

-- A class of callbacks of the user's.
function Callback.extend(parent, name)
  return callable(object.open(object.class(name, parent)), name)
end

-- One of those that are in flow.callbacks; what it takes says the text above its init.
function callback.stock(name, parent)
  local class = object.class(name, parent or Callback)
  class._is_stock = true
  return callable(class, name)
end

-- What a callback of the class was given becomes its fields; false stands for what was left out.
function callback.keep(self, class, given)
  for _, parameter in ipairs(signature.of(class).positional) do
    local value = given[parameter.name]
    if parameter.name == "verbose" and type(value) == "boolean" then value = value and 1 or 0 end
    if value == nil then value = false end
    rawset(self, parameter.name, value)
  end
end

---- running them -------------------------------------------------------------------------------------------------------------------

-- The callbacks of one run, asked by hook. list:has(hook) tells whether a hot loop needs to call at all.
local List = {}
List.__index = List

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
  self.members[#self.members + 1] = member
  return member
end

function List:find(class)
  for _, member in ipairs(self.members) do
    if object.is(member, class) then return member end
  end
end

function List:has(hook)
  for _, member in ipairs(self.members) do
    if member[hook] then return true end
  end
  return false
end

function List:call(hook, ...)
  for _, member in ipairs(self.members) do
    local f = member[hook]
    if f then f(member, ...) end
  end
end

return callback
