-- init.lua: flow.callbacks: what a script can run beside fit, evaluate and predict. The class Callback is train/callback.lua's; the others
-- are in files of this folder, loaded when a script first names them.
--
-- The room: what runs beside fit; event files. May use: tensor, distribute, train, checkpoint.

local errors = require "flow.errors"
local signature = require "flow.signature"
local callback = require "flow.train.callback"

local by_name
local callbacks = signature.module("flow.callbacks", {}, function(_, name) return by_name(name) end)
callbacks.Callback, callbacks.History = callback.Callback, require "flow.train.history"

-- The module that returns the class of each name.
local MODULES = {
  BackupAndRestore = "backup_and_restore",
  CSVLogger = "csv_logger", EarlyStopping = "early_stopping", LambdaCallback = "lambda_callback",
  LearningRateScheduler = "learning_rate_scheduler", ModelCheckpoint = "model_checkpoint", ModelDirectory = "model_directory",
  ProgbarLogger = "progbar_logger", ReduceLROnPlateau = "reduce_lr_on_plateau", RemoteMonitor = "remote_monitor",
  SwapEMAWeights = "swap_ema_weights",
  TensorBoard = "tensor_board", TerminateOnNaN = "terminate_on_nan", VerifyReplicas = "verify_replicas",
}

-- All names of flow.callbacks, for messages and completion.
local function known_names()
  local known = { "Callback", "History" }
  for key in pairs(MODULES) do known[#known + 1] = key end
  return known
end
signature.names_of(callbacks, known_names)

-- Loads the class of a name, once; raises for a name that flow.callbacks does not have.
function by_name(name)
  if not MODULES[name] then
    errors.raise("flow.callbacks has no %q%s", tostring(name),
      errors.elsewhere("flow.callbacks", name) or errors.suggestion(tostring(name), known_names()))
  end
  local class = require("flow.callbacks." .. MODULES[name])
  rawset(callbacks, name, class)
  return class
end

return callbacks
