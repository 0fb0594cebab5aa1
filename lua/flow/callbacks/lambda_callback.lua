-- callbacks/lambda_callback.lua: hooks given as functions: LambdaCallback { on_epoch_end = function(epoch, logs) ... end }, or by
-- position: on_epoch_begin, on_epoch_end, on_train_begin, on_train_end, on_train_batch_begin, on_train_batch_end.

local errors = require "flow.errors"
local arguments = require "flow.arguments"
local callbacks = require "flow.train.callback"

local PARAMETERS = { "on_epoch_begin", "on_epoch_end", "on_train_begin", "on_train_end", "on_train_batch_begin", "on_train_batch_end" }
local known = {}
for _, hook in ipairs(callbacks.HOOKS) do known[hook] = true end

local LambdaCallback = callbacks.Callback:extend("LambdaCallback")
function LambdaCallback:init(...)
  local hooks = arguments.named("LambdaCallback", PARAMETERS, #PARAMETERS, ...)
  for name, f in pairs(errors.check_options("LambdaCallback", hooks, known)) do
    if type(f) ~= "function" then errors.raise("LambdaCallback: %s is a function, got %s", name, errors.describe(f)) end
    self[name] = function(_, ...) return f(...) end
  end
end

return LambdaCallback
