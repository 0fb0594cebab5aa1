-- callbacks/lambda_callback.lua: hooks given as functions: LambdaCallback { on_epoch_end = function(epoch, logs) ... end }, or by
-- position: on_epoch_begin, on_epoch_end, on_train_begin, on_train_end, on_train_batch_begin, on_train_batch_end.

local callbacks = require "flow.train.callback"
local takes_named = require("flow.signature").takes_named

local BY_POSITION = { "on_epoch_begin", "on_epoch_end", "on_train_begin", "on_train_end", "on_train_batch_begin", "on_train_batch_end" }
local has_position, by_name = {}, {}
for _, hook in ipairs(BY_POSITION) do has_position[hook] = true end
for _, hook in ipairs(callbacks.HOOKS) do
  if not has_position[hook] then by_name[#by_name + 1] = hook end
end

local LambdaCallback = callbacks.stock("LambdaCallback")

takes_named(table.concat(BY_POSITION, "?: callable, ") .. "?: callable, { " .. table.concat(by_name, "?: callable, ") .. "?: callable }")
function LambdaCallback:init(hooks)
  for name, f in pairs(hooks) do
    self[name] = function(_, ...) return f(...) end
  end
end

return LambdaCallback
